// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// What the calls of a client have in common, as a value that can be kept in a file.
///
/// ```swift
/// let configuration = try JSONDecoder().decode(ClientConfiguration.self, from: file)
/// let api = Client(configuration)
/// ```
///
/// Fields that hold credentials (``HeaderName/isSensitive``) are never written, nor is the base URL's user-info; the query
/// is, whatever stands in it. Read back, it is a ``Query/percentEncoded(_:)`` text, whose names the queries of calls
/// replace as before.
public struct ClientConfiguration: Sendable {
    /// Where calls go.
    public var base: BaseURL
    /// What differs from the session's fields; nothing unless given.
    ///
    /// `Accept-Language` is sent where these or the session's name it; ``AcceptLanguage/system`` says the languages of
    /// the environment.
    public var fields: HeaderChanges
    /// What every call asks for.
    public var query: Query
    /// How queries are written; AFNetworking's rules unless set.
    public var queryEncoder: QueryEncoder
    /// What differs from the session's configuration.
    public var options: Request.Options

    /// A configuration, each member with its default.
    public init(
        base: BaseURL, fields: HeaderChanges = [:], query: Query = [:],
        queryEncoder: QueryEncoder = QueryEncoder(), options: Request.Options = []
    ) {
        self.base = base
        self.fields = fields
        self.query = query
        self.queryEncoder = queryEncoder
        self.options = options
    }
}

extension ClientConfiguration: CustomStringConvertible, CustomReflectable {
    /// The base URL, redacted.
    public var description: String { "ClientConfiguration(\(base))" }

    /// What may be shown of the members.
    public var customMirror: Mirror {
        Mirror(self, children: ["base": base.description, "fields": fields.description, "query": query.description])
    }
}

extension ClientConfiguration: Codable {
    private enum CodingKeys: CodingKey { case base, fields, query, queryEncoder, options }

    /// Decodes what is there; what is missing takes its default, but for the base URL.
    /// - Throws: `DecodingError` for a value that makes no sense.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self.init(base: try container.decode(BaseURL.self, forKey: .base))
        fields = try container.decodeIfPresent(HeaderChanges.self, forKey: .fields) ?? fields
        query = try container.decodeIfPresent(String.self, forKey: .query).map { .percentEncoded($0) } ?? query
        queryEncoder = try container.decodeIfPresent(QueryEncoder.self, forKey: .queryEncoder) ?? queryEncoder
        options = try container.decodeIfPresent(Request.Options.self, forKey: .options) ?? options
    }

    /// Encodes every member, the query as it is written in a URL.
    /// - Throws: What the encoder throws; `EncodingError` for a query that cannot be written.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(base, forKey: .base)
        try container.encode(fields, forKey: .fields)
        try container.encode(query.text(queryEncoder), forKey: .query)
        try container.encode(queryEncoder, forKey: .queryEncoder)
        try container.encode(options, forKey: .options)
    }
}
