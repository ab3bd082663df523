// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The `No-Vary-Search` field of a response: the parts of a query on which it does not depend
/// (draft-ietf-httpbis-no-vary-search).
struct NoVarySearch: Hashable, Sendable {
    private enum Parameters: Hashable, Sendable {
        case all(except: Set<[UInt8]>)
        case named(Set<[UInt8]>)
    }

    private let ignored: Parameters
    private let ignoresOrder: Bool

    /// Creates the rule of a response; nil without the field, or for an invalid or empty one, with which every
    /// difference counts.
    init?(of fields: HeaderFields) {
        guard let text = fields["No-Vary-Search"], let members = StructuredField.dictionary(text) else { return nil }
        var ignored = Parameters.named([])
        switch members["params"] {
        case nil: break
        case .list(let items, _)?:
            guard let names = Self.names(items) else { return nil }
            ignored = .named(names)
        case .item(let item)?:
            guard case .boolean(let ignoresAll) = item.value else { return nil }
            if ignoresAll { ignored = .all(except: []) }
        }
        if let except = members["except"] {
            // Exceptions are valid only if all other parameters are ignored.
            guard case .all = ignored, let names = except.items.flatMap({ Self.names($0) }) else { return nil }
            ignored = .all(except: names)
        }
        switch members["key-order"]?.bare {
        case nil where members["key-order"] == nil: ignoresOrder = false
        case .boolean(let value)?: ignoresOrder = value
        default: return nil
        }
        self.ignored = ignored
        if ignored == .named([]), !ignoresOrder { return nil }
    }

    private static func names(_ items: [StructuredField.Item]) -> Set<[UInt8]>? {
        var names: Set<[UInt8]> = []
        for item in items {
            guard case .string(let name) = item.value else { return nil }
            names.insert(decoded(name[...]))
        }
        return names
    }

    /// Whether two URLs differ only in ignored parts of their queries.
    func equates(_ first: String, _ second: String) -> Bool {
        CacheKey.withoutQuery(first) == CacheKey.withoutQuery(second) && significant(first) == significant(second)
    }

    private struct Parameter: Hashable, Comparable {
        // Bytes are compared: for Swift, strings of different bytes can be equal.
        let name: [UInt8]
        let value: [UInt8]

        static func < (first: Parameter, second: Parameter) -> Bool {
            first.name.lexicographicallyPrecedes(second.name)
        }
    }

    /// Returns the parameters of a URL that count.
    private func significant(_ url: String) -> [Parameter] {
        let parameters = URLReference.query(of: url).split(separator: "&").map { pair in
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            return Parameter(name: Self.decoded(parts[0]), value: parts.count == 2 ? Self.decoded(parts[1]) : [])
        }.filter { parameter in
            switch ignored {
            case .all(let except): except.contains(parameter.name)
            case .named(let names): !names.contains(parameter.name)
            }
        }
        // The sort is stable: parameters of one name keep their order.
        return ignoresOrder ? parameters.sorted() : parameters
    }

    /// Decodes a name or a value of `application/x-www-form-urlencoded`.
    private static func decoded(_ text: Substring) -> [UInt8] {
        var (bytes, rest) = ([UInt8](), text.utf8[...])
        while let byte = rest.popFirst() {
            let digits = rest.prefix(2)
            if byte == UInt8(ascii: "%"), digits.count == 2, digits.allSatisfy(ByteSet.hexDigits.contains),
                let value = UInt8(String(Substring(digits)), radix: 16)
            {
                bytes.append(value)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte == UInt8(ascii: "+") ? 0x20 : byte)
            }
        }
        return bytes
    }
}
