// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The tree that a value has encoded so far; containers fill it, and may outlive the call that created them.
final class QueryTree {
    enum Kind {
        /// Nothing was encoded, which counts as no entries.
        case nothing
        case null
        case text
        case keyed
        case list
        /// A list without a meaningful order.
        case set
        /// Two kinds at once, which is invalid.
        case mixed
    }

    /// A named child; in lists the name is empty.
    typealias Entry = (name: String, tree: QueryTree)

    /// The coding path of this tree, for errors.
    let path: [any CodingKey]
    private(set) var kind = Kind.nothing
    private(set) var text = ""
    /// The bytes that the text encodes, when the value is `Data`.
    private(set) var bytes: [UInt8]?
    private(set) var entries: [Entry] = []

    init(path: [any CodingKey]) { self.path = path }

    /// Begins a container, or continues one of the same kind.
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

    /// Adds and returns a child, which the caller fills.
    func child(_ name: String, key: any CodingKey) -> QueryTree {
        let child = QueryTree(path: path + [key])
        entries.append((name, child))
        return child
    }

    /// Marks the encoded list as the list of a set.
    func markAsSet() {
        if kind == .list { kind = .set }
    }
}

/// A coding key for the keys of a dictionary, the elements of an array and a superclass.
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
    /// Creates an error with the type instead of the value, which may be a secret; the message must not have values
    /// either.
    static func inQuery(_ type: Any.Type, at path: [any CodingKey], _ message: String) -> EncodingError {
        .invalidValue(type, Context(codingPath: path, debugDescription: message))
    }
}
