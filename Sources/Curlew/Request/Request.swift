// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
// Request is what callers say they want: a request as a value, its options, its body and the serializers that make
// bodies. Pure but for streamed bodies; it names nothing to its right, and every room to its right reads it.

public import FoundationEssentials

/// A request: method, URL, header fields, body and options, as a value to copy and change.
///
/// Nothing is checked when it is made. A request with a bad URL, method or field fails when it is run, with
/// `NetworkError.Kind.invalidRequest`, so that there is one place where errors come from.
///
/// ```swift
/// var request = Request(.post, "https://api.example.com/photos", fields: [.accept: "application/json"])
/// request.options.priority = .high
/// let simple: Request = "https://example.com"
/// ```
public struct Request: Sendable {
    /// The method; GET unless given.
    public var method: Method
    /// The absolute http or https URL as it was given; it is checked and normalised when the request is run.
    public var urlText: String
    /// The header fields; they win over those of the session's configuration.
    public var fields: HeaderFields
    /// The body; none unless given.
    public var body: RequestBody
    /// What this request does differently from the session's configuration.
    public var options: Options
    /// Who judges the server's certificates; nil leaves it to the session.
    public var trust: (any TrustEvaluator)?
    /// Names that the session's configuration must not add: what a redirect to another origin left behind.
    var withheld: [HeaderName] = []
    /// Notes for those who see the request on its way; none unless set, and never on the wire.
    public var tags = RequestTags()

    /// What surrounds this request, outside of the session's interceptors, the first one outermost; none unless given.
    public var interceptors: [any Interceptor] = []

    /// A request for a URL written as text.
    public init(
        _ method: Method, _ url: String, fields: HeaderFields = [:], body: RequestBody = .none,
        options: Options = Options()
    ) {
        self.method = method
        self.urlText = url
        self.fields = fields
        self.body = body
        self.options = options
    }

    /// A GET request for a URL written as text.
    public init(_ url: String, fields: HeaderFields = [:], options: Options = Options()) {
        self.init(.get, url, fields: fields, options: options)
    }

    /// A request for a `URL`.
    public init(
        _ method: Method, _ url: URL, fields: HeaderFields = [:], body: RequestBody = .none,
        options: Options = Options()
    ) {
        self.init(method, url.absoluteString, fields: fields, body: body, options: options)
    }

    /// A GET request for a `URL`.
    public init(_ url: URL, fields: HeaderFields = [:], options: Options = Options()) {
        self.init(.get, url.absoluteString, fields: fields, options: options)
    }

    /// ``urlText`` as a `URL`, or nil when Foundation cannot parse it.
    ///
    /// Setting nil leaves an empty text.
    public var url: URL? {
        get { URL(string: urlText) }
        set { urlText = newValue?.absoluteString ?? "" }
    }
}

extension Request: ExpressibleByStringLiteral, CustomStringConvertible {
    /// A GET request for a literal URL.
    public init(stringLiteral value: String) {
        self.init(.get, value)
    }

    /// One line, such as "GET https://host/path?token=<redacted>", without user-info, fields and body.
    public var description: String {
        "\(method.rawValue.escapingControls) \(redactedURL(urlText))"
    }
}
