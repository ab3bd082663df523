// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension Request {
    /// The query of a URL, or the content of a form, before a ``QueryEncoder`` writes it.
    ///
    /// Write a query as a dictionary literal with values of any `Encodable` types, or create it from a structure. Names
    /// may repeat. Descriptions show only the names, never the values.
    ///
    /// ```swift
    /// var query: Request.Query = ["q": term, "page": 2, "tags": ["new", "used"], "seller": nil]
    /// query.append("q", "and this")
    /// let text = try query.merging(.percentEncoded("raw=%2F")).text(Request.QueryEncoder())
    /// ```
    public struct Query: Sendable, ExpressibleByDictionaryLiteral {
        private enum Part: Sendable {
            case pair(String, (any Encodable & Sendable)?)
            case value(any Encodable & Sendable)
            /// The text between two "&" of a percent-encoded text, as it is sent.
            case item(String)
        }

        private var parts: [Part] = []

        /// Creates an empty query.
        public init() {}

        /// Creates a query from the pairs of a literal; names may repeat.
        ///
        /// ``QueryEncoder/nils`` decides how nil is written. Names are sorted unless ``QueryEncoder/order`` says
        /// otherwise; pairs of the same name stay in their order.
        public init(dictionaryLiteral elements: (String, (any Encodable & Sendable)?)...) {
            parts = elements.map { .pair($0.0, $0.1) }
        }

        /// Creates a query from the names and values of a structure or of another keyed value.
        ///
        /// A value without names, such as an array, causes an error when the query is encoded.
        public static func encoding(_ value: some Encodable & Sendable) -> Request.Query {
            if let query = value as? Request.Query { return query }
            var query = Request.Query()
            query.parts = [.value(value)]
            return query
        }

        /// Creates a query from a text that is already percent-encoded and is sent as it is.
        ///
        /// Use it for queries that ``QueryEncoder`` cannot write. Only characters that a query must not contain are
        /// escaped: control characters, spaces, "#" and all characters outside ASCII. The text follows the encoded
        /// pairs and values.
        /// - Parameter text: The text, without a leading "?".
        public static func percentEncoded(_ text: String) -> Request.Query {
            var query = Request.Query()
            if text.isEmpty { return query }
            let items = text.percentEncoded(keeping: kept).split(separator: "&", omittingEmptySubsequences: false)
            query.parts = items.map { .item(String($0)) }
            return query
        }

        /// Whether the query has no parts; a part that encodes to nothing counts as a part, because only
        /// encoding it shows that.
        public var isEmpty: Bool { parts.isEmpty }

        /// Adds a pair at the end and keeps other pairs of the same name.
        public mutating func append(_ name: String, _ value: (any Encodable & Sendable)?) {
            parts.append(.pair(name, value))
        }

        /// Returns this query followed by `other`, without the pairs of this query whose names occur in `other`.
        ///
        /// The method compares the names of literals, of ``append(_:_:)`` and of ``percentEncoded(_:)``. Names in a
        /// percent-encoded text are decoded as form data, and its `tags[]` and `near[lat]` belong to the pairs `tags`
        /// and `near`. The pairs that structures encode are not compared and are all sent.
        public func merging(_ other: Request.Query) -> Request.Query {
            var result = removing(other.names)
            result.parts += other.parts
            return result
        }

        /// Returns this query without the pairs whose names occur in the query of a URL or path.
        ///
        /// - Parameter query: The query as it is sent, without a leading "?".
        func removing(namesIn query: String) -> Request.Query { removing(Request.Query.percentEncoded(query).names) }

        private func removing(_ names: QueryNames) -> Request.Query {
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

        /// Returns the query as it is sent, without a leading "?"; "" when nothing is encoded.
        ///
        /// - Throws: See ``QueryEncoder/encode(_:)``.
        public func text(_ encoder: Request.QueryEncoder) throws -> String {
            var entries: [QueryTree.Entry] = []
            var items: [String] = []
            for part in parts {
                switch part {
                case .pair(let name, let value):
                    // The encoder applies its key style to the name and adds the coding path to errors.
                    entries += try encoder.entries(of: Request.Query(pair: name, value))
                case .value(let value): entries += try encoder.entries(of: value)
                case .item(let item): items.append(item)
                }
            }
            let encoded = try encoder.text(of: entries)
            return (encoded.isEmpty ? items : [encoded] + items).joined(separator: "&")
        }

        /// Returns the names and values before they are percent-encoded.
        ///
        /// - Throws: See ``QueryEncoder/encode(_:)``; also for a ``percentEncoded(_:)`` text, which has no pairs.
        func pairs(_ encoder: Request.QueryEncoder) throws -> [Request.QueryEncoder.Pair] {
            var entries: [QueryTree.Entry] = []
            for part in parts {
                switch part {
                case .pair(let name, let value): entries += try encoder.entries(of: Request.Query(pair: name, value))
                case .value(let value): entries += try encoder.entries(of: value)
                case .item:
                    throw EncodingError.inQuery(
                        Request.Query.self, at: [], "A percent-encoded text can only be used in a query.")
                }
            }
            return try encoder.pairs(of: entries)
        }

        private init(pair name: String, _ value: (any Encodable & Sendable)?) {
            parts = [.pair(name, value)]
        }

        /// Visible ASCII characters except "#".
        private static let kept = ByteSet.letters.union(.digits).union(ByteSet("!\"$%&'()*+,-./:;<=>?@[\\]^_`{|}~"))
    }
}

extension Request.Query: Encodable {
    /// Encodes an object of the names and values, so that a query can be the content of a form or of JSON.
    ///
    /// A repeated name is encoded repeatedly; most encoders keep the last value.
    /// - Throws: `EncodingError.invalidValue` for a ``percentEncoded(_:)`` text, which has no values, and any error of
    ///   the encoder. A ``QueryEncoder`` writes such texts when the query is the whole value that it encodes.
    public func encode(to encoder: any Encoder) throws {
        // A single value may also encode itself without names.
        if parts.count == 1, case .value(let value) = parts[0] { return try value.encode(to: encoder) }
        var container = encoder.container(keyedBy: QueryKey.self)
        for part in parts {
            switch part {
            case .pair(let name, let value?): try container.encode(value, forKey: QueryKey(stringValue: name))
            case .pair(let name, nil): try container.encodeNil(forKey: QueryKey(stringValue: name))
            case .value(let value):
                // Encoders trap when a value without names follows keyed values, so this checks for names first.
                _ = try Request.QueryEncoder().entries(of: value)
                try value.encode(to: encoder)
            case .item:
                throw EncodingError.inQuery(
                    Request.Query.self, at: encoder.codingPath, "A percent-encoded text can be sent but not encoded.")
            }
        }
    }
}

extension Request.Query: CustomStringConvertible, CustomReflectable {
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
