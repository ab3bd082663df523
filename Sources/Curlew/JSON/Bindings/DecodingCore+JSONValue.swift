// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension DecodingCore {
    /// Whatever there is at a place, 512 levels deep at most.
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
                // Of members with the same name the first counts.
                if members[text] == nil { members[text] = try json(at: name + 1) }
                name = index.behind(name + 1)
            }
            return .object(members)
        }
    }

    /// A number: exactly if it has digits alone and 64 bits hold it, else the nearest `Double`.
    ///
    /// 1.0 is the integer 1, as it is to a decoder that is asked for an integer first. From 2⁵³ on a `Double` stays
    /// one, so that it is the same number when it is written and read again.
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
