// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The query of a URL, or the content of a form, before a ``QueryEncoder`` writes it.
///
/// Write it as a dictionary whose values are of any `Encodable` types, or make it of a structure. Names may stand more
/// than once. What the values are is never shown: descriptions have the names alone.
///
/// ```swift
/// var query: Query = ["q": term, "page": 2, "tags": ["new", "used"], "seller": nil]
/// query.append("q", "and this")
/// let text = try query.merging(.percentEncoded("raw=%2F")).text(QueryEncoder())
/// ```
public struct Query: Sendable, ExpressibleByDictionaryLiteral {
    private enum Part: Sendable {
        case pair(String, (any Encodable & Sendable)?)
        case value(any Encodable & Sendable)
        /// What stands between two "&" of a text, as it is sent.
        case item(String)
    }

    private var parts: [Part] = []

    /// An empty query.
    public init() {}

    /// The pairs of the literal; the same name may stand in it more than once.
    ///
    /// A nil is written as ``QueryEncoder/nils`` says. Names are sorted unless ``QueryEncoder/order`` says otherwise;
    /// pairs of one name stay in their order.
    public init(dictionaryLiteral elements: (String, (any Encodable & Sendable)?)...) {
        parts = elements.map { .pair($0.0, $0.1) }
    }

    /// The names and values of a structure, or of another value that has names.
    ///
    /// A value without names, such as an array, is refused when the query is written.
    public static func encoding(_ value: some Encodable & Sendable) -> Query {
        if let query = value as? Query { return query }
        var query = Query()
        query.parts = [.value(value)]
        return query
    }

    /// A text that is a query already, and is sent as it is; the way for what no encoder writes.
    ///
    /// Only what cannot stand in a query is percent-encoded: control characters, spaces, "#" and all outside ASCII. It
    /// comes after what is encoded.
    /// - Parameter text: Without a leading "?".
    public static func percentEncoded(_ text: String) -> Query {
        var query = Query()
        if text.isEmpty { return query }
        let items = text.percentEncoded(keeping: kept).split(separator: "&", omittingEmptySubsequences: false)
        query.parts = items.map { .item(String($0)) }
        return query
    }

    /// Whether there is certainly nothing in it; a value that encodes nothing is only known when it is written.
    public var isEmpty: Bool { parts.isEmpty }

    /// Adds a pair at the end, beside others of the same name.
    public mutating func append(_ name: String, _ value: (any Encodable & Sendable)?) {
        parts.append(.pair(name, value))
    }

    /// This query with `other` after it; pairs here lose against pairs of the same name there.
    ///
    /// Compared are the names of literals, of ``append(_:_:)`` and of ``percentEncoded(_:)``, the last as the readers of
    /// forms decode them; there `tags[]` and `near[lat]` belong to the pairs `tags` and `near`. What structures encode is
    /// sent beside all else.
    public func merging(_ other: Query) -> Query {
        var result = removing(other.names)
        result.parts += other.parts
        return result
    }

    /// This query without what has a name that stands in the query of a URL or path.
    ///
    /// - Parameter query: As it is sent, without a leading "?".
    func removing(namesIn query: String) -> Query { removing(Query.percentEncoded(query).names) }

    private func removing(_ names: QueryNames) -> Query {
        var result = self
        result.parts.removeAll { part in
            switch part {
            case .pair(let name, _): names.contains(pair: name)
            case .item(let item): names.contains(item: item)
            case .value: false
            }
        }
        return result
    }

    private var names: QueryNames {
        parts.reduce(into: QueryNames()) { names, part in
            switch part {
            case .pair(let name, _): names.insert(pair: name)
            case .item(let item): names.insert(item: item)
            case .value: break
            }
        }
    }

    /// The query as it is sent, without a leading "?"; "" when there is nothing.
    ///
    /// - Throws: See ``QueryEncoder/encode(_:)``.
    public func text(_ encoder: QueryEncoder) throws -> String {
        var entries: [QueryTree.Entry] = []
        var items: [String] = []
        for part in parts {
            switch part {
            case .pair(let name, let value):
                // Through the encoder, so that names take its style and errors name the path.
                entries += try encoder.entries(of: Query(pair: name, value))
            case .value(let value): entries += try encoder.entries(of: value)
            case .item(let item): items.append(item)
            }
        }
        let encoded = try encoder.text(of: entries)
        return (encoded.isEmpty ? items : [encoded] + items).joined(separator: "&")
    }

    /// Names and values before they are escaped.
    ///
    /// - Throws: See ``QueryEncoder/encode(_:)``; a ``percentEncoded(_:)`` text has none.
    func pairs(_ encoder: QueryEncoder) throws -> [QueryEncoder.Pair] {
        var entries: [QueryTree.Entry] = []
        for part in parts {
            switch part {
            case .pair(let name, let value): entries += try encoder.entries(of: Query(pair: name, value))
            case .value(let value): entries += try encoder.entries(of: value)
            case .item:
                throw EncodingError.inQuery(Query.self, at: [], "A percent-encoded text is only for queries.")
            }
        }
        return try encoder.pairs(of: entries)
    }

    private init(pair name: String, _ value: (any Encodable & Sendable)?) {
        parts = [.pair(name, value)]
    }

    /// Visible ASCII but "#".
    private static let kept = ByteSet.letters.union(.digits).union(ByteSet("!\"$%&'()*+,-./:;<=>?@[\\]^_`{|}~"))
}

extension Query: Encodable {
    /// Encodes an object of the names and values, so that a query can be the content of a form, or of JSON.
    ///
    /// A name that stands more than once is encoded as often; most encoders keep the last.
    /// - Throws: `EncodingError.invalidValue` for a ``percentEncoded(_:)`` text, which has no values, and what the
    ///   encoder throws. A ``QueryEncoder`` writes such texts where the query is its whole value.
    public func encode(to encoder: any Encoder) throws {
        // Alone, whatever it is.
        if parts.count == 1, case .value(let value) = parts[0] { return try value.encode(to: encoder) }
        var container = encoder.container(keyedBy: QueryKey.self)
        for part in parts {
            switch part {
            case .pair(let name, let value?): try container.encode(value, forKey: QueryKey(stringValue: name))
            case .pair(let name, nil): try container.encodeNil(forKey: QueryKey(stringValue: name))
            case .value(let value):
                // Encoders end the process when what has names is followed by what has none.
                _ = try QueryEncoder().entries(of: value)
                try value.encode(to: encoder)
            case .item:
                throw EncodingError.inQuery(
                    Query.self, at: encoder.codingPath, "A percent-encoded text can be sent, but not be encoded.")
            }
        }
    }
}

extension Query: CustomStringConvertible, CustomReflectable {
    /// The names of the pairs, with "<redacted>" for every value, and the types of encoded values.
    public var description: String {
        parts.map { part in
            switch part {
            case .pair(let name, nil): name.escapingControls
            case .pair(let name, _): name.escapingControls + "=" + redaction
            case .value(let value): "\(type(of: value))=\(redaction)"
            case .item(let item): redactedQuery(item)
            }
        }.joined(separator: "&")
    }

    /// The description alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": description], displayStyle: .struct) }
}
