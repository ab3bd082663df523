// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// What a value has encoded so far; containers fill it, and may outlive the call that asked for them.
final class QueryTree {
    enum Kind {
        /// Nothing was encoded: the same as no entries.
        case nothing
        case null
        case text
        case keyed
        case list
        /// A list whose order means nothing.
        case set
        /// Two kinds at once, which is none.
        case mixed
    }

    /// A named child; in lists the name is empty.
    typealias Entry = (name: String, tree: QueryTree)

    /// Where this is, for errors.
    let path: [any CodingKey]
    private(set) var kind = Kind.nothing
    private(set) var text = ""
    /// What the text was made of, when that is `Data`.
    private(set) var bytes: [UInt8]?
    private(set) var entries: [Entry] = []

    init(path: [any CodingKey]) { self.path = path }

    /// Begins a container, or goes on with one of the same kind.
    func open(_ kind: Kind) {
        self.kind = self.kind == .nothing || self.kind == kind ? kind : .mixed
    }

    func put(_ text: String, of bytes: [UInt8]? = nil) {
        kind = kind == .nothing ? .text : .mixed
        self.text = text
        self.bytes = bytes
    }

    func putNil() {
        kind = kind == .nothing ? .null : .mixed
    }

    /// A child that is filled by whoever asked for it.
    func child(_ name: String, key: any CodingKey) -> QueryTree {
        let child = QueryTree(path: path + [key])
        entries.append((name, child))
        return child
    }

    /// The list that was encoded was a set's.
    func forgetOrder() {
        if kind == .list { kind = .set }
    }
}

/// A key of our own: of a dictionary, of an array's element, of a superclass.
struct QueryKey: CodingKey {
    let stringValue: String
    let intValue: Int?

    init(stringValue: String) {
        self.stringValue = stringValue
        intValue = nil
    }

    init(intValue: Int) {
        stringValue = String(intValue)
        self.intValue = intValue
    }
}

extension EncodingError {
    /// An error that has the type in the place of the value, which may be a secret; the message has no values either.
    static func inQuery(_ type: Any.Type, at path: [any CodingKey], _ message: String) -> EncodingError {
        .invalidValue(type, Context(codingPath: path, debugDescription: message))
    }
}
