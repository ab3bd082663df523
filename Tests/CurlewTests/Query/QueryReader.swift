// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Decodes queries with brackets as server frameworks do, independently of the encoder.
final class QueryReader {
    private var text: String??
    private var elements: [QueryReader] = []
    private var members: [String: QueryReader] = [:]

    /// Decodes the value of a query.
    static func value(of query: String) -> QueryValue {
        let root = QueryReader()
        for item in query.utf8.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false) {
            let equals = item.firstIndex(of: UInt8(ascii: "="))
            var path = decoded(item[..<(equals ?? item.endIndex)])[...]
            let first = path.prefix { $0 != "[" }
            path = path.dropFirst(first.count)
            var place = root.members[String(first), default: QueryReader()]
            root.members[String(first)] = place
            while path.first == "[", let end = path.firstIndex(of: "]") {
                place = place.inside(path[path.index(after: path.startIndex)..<end])
                path = path[path.index(after: end)...]
            }
            place.text = .some(equals.map { decoded(item[item.index(after: $0)...]) })
        }
        return root.value
    }

    private var value: QueryValue {
        switch text {
        case .some(let text?): .text(text)
        case .some(nil): .null
        case nil where !elements.isEmpty: .list(elements.map(\.value))
        case nil: .keyed(members.mapValues(\.value))
        }
    }

    /// Returns the member of a name: an empty name appends an element, a number selects one.
    private func inside(_ name: Substring) -> QueryReader {
        if let index = name.isEmpty ? elements.count : Int(name) {
            while elements.count <= index { elements.append(QueryReader()) }
            return elements[index]
        }
        let place = members[String(name), default: QueryReader()]
        members[String(name)] = place
        return place
    }

    /// Decodes a percent-encoded text.
    static func decoded(_ escaped: Substring.UTF8View) -> String {
        var bytes: [UInt8] = []
        var rest = escaped
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), let value = UInt8(String(Substring(rest.prefix(2))), radix: 16) {
                bytes.append(value)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
