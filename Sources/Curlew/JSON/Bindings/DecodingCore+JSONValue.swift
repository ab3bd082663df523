// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension DecodingCore {
    /// Returns the JSON value at an index, of any kind and with at most 512 nested levels.
    func json(at place: Int) throws -> JSONValue {
        let entry = entry(place)
        switch entry.kind {
        case .null: return .null
        case .no: return .bool(false)
        case .yes: return .bool(true)
        case .ascii, .unicode, .escaped: return .string(index.string(entry))
        case .integer, .real: return try number(entry, place)
        case .array:
            var values: [JSONValue] = []
            values.reserveCapacity(count(of: place))
            var child = place + 1
            while child < entry.next {
                values.append(try json(at: child))
                child = index.behind(child)
            }
            return .array(values)
        case .object:
            var members = [String: JSONValue](minimumCapacity: count(of: place))
            var name = place + 1
            while name < entry.next {
                let text = index.string(index[name])
                // The first of several members with the same name counts.
                if members[text] == nil { members[text] = try json(at: name + 1) }
                name = index.behind(name + 1)
            }
            return .object(members)
        }
    }

    /// Returns a number: an exact integer if it has only digits and 64 bits hold it, otherwise the nearest `Double`.
    ///
    /// 1.0 becomes the integer 1, as with a decoder that tries an integer first. A `Double` of at least 2⁵³ stays a
    /// `Double`, so that the number does not change when it is encoded and decoded again.
    private func number(_ entry: JSONEntry, _ place: Int) throws -> JSONValue {
        if entry.code == JSONEntry.Kind.integer.rawValue {
            if let value = index.integer(entry, as: Int64.self) { return .integer(value) }
            if let value = index.integer(entry, as: UInt64.self) { return .unsigned(value) }
        }
        guard let value = index.double(entry) else { throw outOfRange(Double.self, place) }
        let isWhole = value.magnitude < 0x1p53 && value == value.rounded()
        return isWhole ? .integer(Int64(value)) : .number(value)
    }
}
