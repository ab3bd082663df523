// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// A client of an API: it holds the base URL, the settings that all calls share, the formats of values, and the trust
/// evaluator of the servers.
///
/// A client is a value that is cheap to create, copy and change; its session owns the connections. Clients of one
/// session share connections only if their evaluators are equal. Callers do not have to spell the three generic
/// parameters.
///
/// ```swift
/// let api = Client("https://api.example.com/v1")
/// let user: User = try await api.get("users/\(id)")
/// try await api.post("users", .encoding(draft))
/// let quick = api.with { $0.options.timeouts.total = .seconds(2) }
/// ```
///
/// A setting of a call overrides the endpoint's, which overrides the client's, which overrides the session's. An unset
/// setting is inherited.
public struct Client<Requests: RequestFormat, Responses: ResponseFormat, Trust: TrustEvaluator>: APIClient {
    /// The session that owns the connections.
    public let session: Session
    /// The format that encodes values in requests.
    public let requests: Requests
    /// The format that decodes values in responses.
    public let responses: Responses
    /// The evaluator of the servers; nil when the session's evaluator judges them.
    public let trust: Trust?
    /// The types that `responses` reads, and their `Accept` field; cached because most calls use them.
    let ownTypes: (types: [MediaType], field: String?)
    /// The settings that all calls share.
    public var configuration: ClientConfiguration
    /// The interceptors of every call, outside the session's interceptors, the first one outermost; empty by default.
    public var interceptors: [any Interceptor] = []
    /// The authenticator of every call, innermost of the client's interceptors; nil, the default, for no
    /// authentication.
    ///
    /// A call to an absolute URL of another origin skips this authenticator and the authenticators among
    /// ``interceptors``.
    public var auth: (any Authenticator)?

    /// Creates a client from a configuration, such as one that was read from a file, and an evaluator.
    ///
    /// - Parameters:
    ///   - configuration: The base URL and the settings that all calls share.
    ///   - requests: The format that encodes values in requests; JSON by default.
    ///   - responses: The format that decodes values in responses; JSON by default.
    ///   - trust: The evaluator of the servers, instead of the session's evaluator.
    ///   - session: The session that owns the connections; `Session.shared` by default.
    public init(
        _ configuration: ClientConfiguration, requests: Requests = JSON(), responses: Responses = JSON(),
        trust: Trust, session: Session = .shared
    ) {
        self.init(configuration, requests, responses, trust, session)
    }

    /// Creates a client from a base URL and an evaluator.
    ///
    /// - Parameters:
    ///   - base: The base URL: a literal, or a `BaseURL` that was created from external text.
    ///   - requests: The format that encodes values in requests; JSON by default.
    ///   - responses: The format that decodes values in responses; JSON by default.
    ///   - trust: The evaluator of the servers, instead of the session's evaluator.
    ///   - session: The session that owns the connections; `Session.shared` by default.
    public init(
        _ base: BaseURL, requests: Requests = JSON(), responses: Responses = JSON(), trust: Trust,
        session: Session = .shared
    ) {
        self.init(ClientConfiguration(base: base), requests, responses, trust, session)
    }

    private init(
        _ configuration: ClientConfiguration, _ requests: Requests, _ responses: Responses, _ trust: Trust?,
        _ session: Session
    ) {
        self.configuration = configuration
        self.requests = requests
        self.responses = responses
        self.trust = trust
        ownTypes = (responses.accepts, MediaType.acceptField(for: responses.accepts))
        self.session = session
    }

    /// Returns a copy that a closure changes.
    ///
    /// - Parameter change: The closure that changes the copy.
    /// - Throws: The error of the closure.
    public func with(_ change: (inout Self) throws -> Void) rethrows -> Self {
        var copy = self
        try change(&copy)
        return copy
    }
}

/// A client that encodes and decodes JSON, and leaves the trust to its session: the type of `Client("https://…")`.
public typealias JSONClient = Client<JSON, JSON, SystemTrust>

extension Client where Trust == SystemTrust {
    /// Creates a client from a configuration, such as one that was read from a file; the session's evaluator judges the
    /// servers.
    ///
    /// - Parameters:
    ///   - configuration: The base URL and the settings that all calls share.
    ///   - requests: The format that encodes values in requests; JSON by default.
    ///   - responses: The format that decodes values in responses; JSON by default.
    ///   - session: The session that owns the connections; `Session.shared` by default.
    public init(
        _ configuration: ClientConfiguration, requests: Requests = JSON(), responses: Responses = JSON(),
        session: Session = .shared
    ) {
        self.init(configuration, requests, responses, nil, session)
    }

    /// Creates a client from a base URL; the session's evaluator judges the servers.
    ///
    /// - Parameters:
    ///   - base: The base URL: a literal, or a `BaseURL` that was created from external text.
    ///   - requests: The format that encodes values in requests; JSON by default.
    ///   - responses: The format that decodes values in responses; JSON by default.
    ///   - session: The session that owns the connections; `Session.shared` by default.
    public init(
        _ base: BaseURL, requests: Requests = JSON(), responses: Responses = JSON(), session: Session = .shared
    ) {
        self.init(ClientConfiguration(base: base), requests, responses, nil, session)
    }
}

extension Client where Trust: PinningTrust {
    /// Creates a client with a pinning evaluator, which requires an https base URL.
    ///
    /// - Parameters:
    ///   - configuration: The base URL and the settings that all calls share.
    ///   - requests: The format that encodes values in requests; JSON by default.
    ///   - responses: The format that decodes values in responses; JSON by default.
    ///   - trust: The pinning evaluator of the servers.
    ///   - session: The session that owns the connections; `Session.shared` by default.
    /// - Throws: `NetworkError` of kind `invalidRequest` if the base URL is http and the evaluator does not allow plain
    ///   HTTP to its host.
    public init(
        _ configuration: ClientConfiguration, requests: Requests = JSON(), responses: Responses = JSON(),
        trust: Trust, session: Session = .shared
    ) throws(NetworkError) {
        let base = configuration.base
        guard base.isSecure || trust.allowsPlainHTTP(to: base.host) else {
            throw NetworkError(
                invalid: .scheme,
                "The base URL \(base) is http, but the client's evaluator pins, which requires TLS.",
                hint: "Use an https base URL.")
        }
        self.init(configuration, requests, responses, trust, session)
    }

    /// Creates a client with a pinning evaluator, which requires an https base URL.
    ///
    /// ```swift
    /// let bank = try Client(
    ///     "https://pay.example.com",
    ///     trust: .pinned(keys: ["sha256/…"], backup: "sha256/…"))
    /// ```
    ///
    /// - Parameters:
    ///   - base: The base URL.
    ///   - requests: The format that encodes values in requests; JSON by default.
    ///   - responses: The format that decodes values in responses; JSON by default.
    ///   - trust: The pinning evaluator of the servers.
    ///   - session: The session that owns the connections; `Session.shared` by default.
    /// - Throws: `NetworkError` of kind `invalidRequest` if the base URL is http and the evaluator does not allow plain
    ///   HTTP to its host.
    public init(
        _ base: BaseURL, requests: Requests = JSON(), responses: Responses = JSON(), trust: Trust,
        session: Session = .shared
    ) throws(NetworkError) {
        try self.init(
            ClientConfiguration(base: base), requests: requests, responses: responses, trust: trust, session: session)
    }
}

extension Client {
    /// The base URL of the calls.
    public var base: BaseURL { configuration.base }

    /// The client's response format, equal to `responses`.
    public var responseFormat: any ResponseFormat { responses }

    /// Changes to the session's fields.
    public var fields: HeaderChanges {
        get { configuration.fields }
        set { configuration.fields = newValue }
    }

    /// The query parameters of every call.
    public var query: Request.Query {
        get { configuration.query }
        set { configuration.query = newValue }
    }

    /// Options that override the session's configuration.
    public var options: Request.Options {
        get { configuration.options }
        set { configuration.options = newValue }
    }
}

extension Client: CustomStringConvertible, CustomReflectable {
    /// The base URL, redacted.
    public var description: String { "Client(\(base))" }

    /// A mirror that shows the configuration, without secrets, and the type of the evaluator.
    public var customMirror: Mirror {
        Mirror(
            self,
            children: [
                "configuration": configuration.description,
                "trust": trust.map { "\(type(of: $0))" } ?? "of the session",
            ])
    }
}
