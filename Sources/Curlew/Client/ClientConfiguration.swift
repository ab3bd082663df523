// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The settings that all calls of a client share, as a value that a file can store.
///
/// ```swift
/// let configuration = try JSONDecoder().decode(ClientConfiguration.self, from: file)
/// let api = Client(configuration)
/// ```
///
/// Encoding omits fields with credentials (``HeaderName/isSensitive``) and the base URL's user-info, but it includes
/// the whole query, even if the query contains secrets. A decoded query is a ``Request/Query/percentEncoded(_:)`` text;
/// queries of calls still replace its parameters by name.
public struct ClientConfiguration: Sendable {
    /// The base URL of the calls.
    public var base: BaseURL
    /// Changes to the session's fields; empty by default.
    ///
    /// `Accept-Language` is sent only if these fields or the session's fields set it; ``AcceptLanguage/system`` gives
    /// the languages of the environment.
    public var fields: HeaderChanges
    /// The query parameters of every call.
    public var query: Request.Query
    /// The encoding rules of queries; those of AFNetworking by default.
    public var queryEncoder: Request.QueryEncoder
    /// Options that override the session's configuration.
    public var options: Request.Options

    /// Creates a configuration; every member except the base URL has a default.
    public init(
        base: BaseURL, fields: HeaderChanges = [:], query: Request.Query = [:],
        queryEncoder: Request.QueryEncoder = Request.QueryEncoder(), options: Request.Options = []
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

    /// A mirror that shows the members without secrets.
    public var customMirror: Mirror {
        Mirror(self, children: ["base": base.description, "fields": fields.description, "query": query.description])
    }
}

extension ClientConfiguration: Codable {
    private enum CodingKeys: CodingKey { case base, fields, query, queryEncoder, options }

    /// Decodes a configuration; a missing member takes its default, but the base URL is required.
    /// - Throws: `DecodingError` for an invalid value.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self.init(base: try container.decode(BaseURL.self, forKey: .base))
        fields = try container.decodeIfPresent(HeaderChanges.self, forKey: .fields) ?? fields
        query = try container.decodeIfPresent(String.self, forKey: .query).map { .percentEncoded($0) } ?? query
        queryEncoder = try container.decodeIfPresent(Request.QueryEncoder.self, forKey: .queryEncoder) ?? queryEncoder
        options = try container.decodeIfPresent(Request.Options.self, forKey: .options) ?? options
    }

    /// Encodes every member; the query is encoded as it appears in a URL.
    /// - Throws: The error of the encoder; `EncodingError` for a query that cannot be encoded.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(base, forKey: .base)
        try container.encode(fields, forKey: .fields)
        try container.encode(query.text(queryEncoder), forKey: .query)
        try container.encode(queryEncoder, forKey: .queryEncoder)
        try container.encode(options, forKey: .options)
    }
}
