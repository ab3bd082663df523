// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
// This folder holds requests as values: the request, its options, its body and the serializers that make bodies. The
// code is pure, except for streamed bodies. It does not use the session or the engine's loop.

public import FoundationEssentials

/// A request: method, URL, header fields, body and options, as a value to copy and change.
///
/// The initializers check nothing. A request with an invalid URL, method or field fails when it is run, with
/// `NetworkError.Kind.invalidRequest`, so that all errors surface in one place.
///
/// ```swift
/// var request = Request(.post, "https://api.example.com/photos", fields: [.accept: "application/json"])
/// request.options.priority = .high
/// let simple: Request = "https://example.com"
/// ```
public struct Request: Sendable {
    /// The method; GET unless given.
    public var method: Method {
        get { parts.method }
        _modify { yield &parts.method }
    }

    /// The absolute http or https URL as given; checked and normalised when the request is run.
    public var url: String {
        get { parts.url }
        _modify { yield &parts.url }
    }

    /// The header fields; they override those of the session's configuration.
    public var fields: HeaderFields {
        get { parts.fields }
        _modify { yield &parts.fields }
    }

    /// The body; no body unless given.
    public var body: RequestBody {
        get { parts.body }
        _modify { yield &parts.body }
    }

    /// The options that override the session's configuration for this request.
    public var options: Options {
        get { parts.options }
        _modify { yield &parts.options }
    }

    /// The evaluator of the server's certificates; nil for the session's evaluator.
    public var trust: (any TrustEvaluator)? {
        get { parts.ownTrust?.evaluator }
        set { parts.ownTrust = newValue.map { OwnTrust($0) } }
    }

    /// Names of fields that the session's configuration must not add, because a redirect to another origin removed
    /// them.
    var withheld: [HeaderName] {
        get { parts.withheld }
        _modify { yield &parts.withheld }
    }

    /// Whether the http URL is sent as https, even if the policy of its host has ended since the redirect to it.
    var upgradesToHTTPS: Bool {
        get { parts.upgradesToHTTPS }
        _modify { yield &parts.upgradesToHTTPS }
    }

    /// The dictionary that the request names, with which the server may compress the response (RFC 9842).
    var dictionary: CompressionDictionary? {
        get { parts.dictionary }
        _modify { yield &parts.dictionary }
    }

    /// The proof of the password for a proxy that forwards the request: the value of `Proxy-Authorization`.
    var proxyProof: ProxyProof? {
        get { parts.proxyProof }
        _modify { yield &parts.proxyProof }
    }

    /// Notes for interceptors and observers of the request; empty unless set, and never sent.
    public var tags: Request.Tags {
        get { parts.tags }
        _modify { yield &parts.tags }
    }

    /// The interceptors of this request, outside of the session's interceptors, the first one outermost; empty unless
    /// given.
    public var interceptors: [any Interceptor] {
        get { parts.interceptors }
        _modify { yield &parts.interceptors }
    }

    /// A box for the evaluator: a request without an evaluator stores only an empty reference.
    private final class OwnTrust: Sendable {
        let evaluator: any TrustEvaluator

        init(_ evaluator: any TrustEvaluator) { self.evaluator = evaluator }
    }

    private struct Parts: Sendable {
        var method: Method
        var url: String
        var fields: HeaderFields
        var body: RequestBody
        var options: Options
        var ownTrust: OwnTrust?
        var withheld: [HeaderName] = []
        var upgradesToHTTPS = false
        var dictionary: CompressionDictionary?
        var proxyProof: ProxyProof?
        var tags = Request.Tags()
        var interceptors: [any Interceptor] = []
    }

    /// The parts of a request, which its copies share until one of them is changed.
    private final class Storage: @unchecked Sendable {
        // Safe because only `Request.parts` accesses the parts. It changes them only while the storage has one
        // reference, and copies the storage otherwise. Swift checks that access to the request is exclusive, so a
        // release build needs no second check here.
        #if !DEBUG
        @exclusivity(unchecked)
        #endif
        var parts: Parts

        init(_ parts: Parts) { self.parts = parts }
    }

    private var storage: Storage

    private var parts: Parts {
        get { storage.parts }
        _modify {
            if !isKnownUniquelyReferenced(&storage) { storage = Storage(storage.parts) }
            yield &storage.parts
        }
    }

    /// Creates a request for a URL written as text.
    public init(
        _ method: Method, _ url: String, fields: HeaderFields = [:], body: RequestBody = .none,
        options: Options = Options()
    ) {
        storage = Storage(Parts(method: method, url: url, fields: fields, body: body, options: options))
    }

    /// Creates a GET request for a URL written as text.
    public init(_ url: String, fields: HeaderFields = [:], options: Options = Options()) {
        self.init(.get, url, fields: fields, options: options)
    }

    /// Creates a request for a `URL`.
    public init(
        _ method: Method, _ url: URL, fields: HeaderFields = [:], body: RequestBody = .none,
        options: Options = Options()
    ) {
        self.init(method, url.absoluteString, fields: fields, body: body, options: options)
    }

    /// Creates a GET request for a `URL`.
    public init(_ url: URL, fields: HeaderFields = [:], options: Options = Options()) {
        self.init(.get, url.absoluteString, fields: fields, options: options)
    }

    /// ``url`` as a `URL`, or nil when Foundation cannot parse it.
    ///
    /// Setting nil sets ``url`` to an empty text.
    public var foundationURL: URL? {
        get { URL(string: url) }
        set { url = newValue?.absoluteString ?? "" }
    }
}

extension Request: ExpressibleByStringLiteral, CustomStringConvertible {
    /// Creates a GET request for a literal URL.
    public init(stringLiteral value: String) {
        self.init(.get, value)
    }

    /// One line, such as "GET https://host/path?token=<redacted>", without user-info, fields and body.
    public var description: String {
        "\(method.rawValue.escapingControls) \(redactedURL(url))"
    }
}
