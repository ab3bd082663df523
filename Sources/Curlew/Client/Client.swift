// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// Knows an API: where it is, what its calls have in common, how its values are written, and who judges its servers.
///
/// A client is a value that is cheap to make, copy and change; its session owns the connections. Clients of one session
/// whose evaluators are equal share connections, others never do. Nobody has to spell the three generic parameters.
///
/// ```swift
/// let api = Client("https://api.example.com/v1")
/// let user: User = try await api.get("users/\(id)")
/// try await api.post("users", .encoding(draft))
/// let quick = api.with { $0.options.timeout = .seconds(2) }
/// ```
///
/// What is said nearer to a call wins: session < client < endpoint < call; what is not said is inherited.
public struct Client<Requests: RequestFormat, Responses: ResponseFormat, Trust: TrustEvaluator>: APIClient {
    /// Owns the connections.
    public let session: Session
    /// Writes values into requests.
    public let requests: Requests
    /// Reads values from responses.
    public let responses: Responses
    /// Judges the servers; of a client that was made without an evaluator the session's does.
    public let trust: Trust
    /// Nil leaves the judgement to the session.
    let ownTrust: (any TrustEvaluator)?
    /// What `responses` can read, and what `Accept` says then: the same for most calls.
    let ownTypes: (types: [MediaType], field: String?)
    /// What the calls have in common.
    public var configuration: ClientConfiguration
    /// Surround every call, outside of the session's, the first one outermost; none unless given.
    public var interceptors: [any Interceptor] = []
    /// Proves to the server who asks, innermost of what the client puts around a call; nil, the default, for nobody.
    ///
    /// Calls with an absolute URL of another origin go there without it, and without the authenticators among
    /// ``interceptors``.
    public var auth: (any Authenticator)?

    /// A client with a configuration, such as one that was read from a file, and an evaluator.
    ///
    /// - Parameters:
    ///   - configuration: The base URL and what calls have in common.
    ///   - requests: Writes values into requests; JSON unless given.
    ///   - responses: Reads values from responses; JSON unless given.
    ///   - trust: Judges the servers, in the place of the session's evaluator.
    ///   - session: Owns the connections; `Session.shared` unless given.
    public init(
        _ configuration: ClientConfiguration, requests: Requests = JSON(), responses: Responses = JSON(),
        trust: Trust, session: Session = .shared
    ) {
        self.init(configuration, requests, responses, trust, own: trust, session)
    }

    /// A client for an API below a base URL, with an evaluator.
    ///
    /// - Parameters:
    ///   - base: Where calls go; a literal, or a `BaseURL` made of a text from outside.
    ///   - requests: Writes values into requests; JSON unless given.
    ///   - responses: Reads values from responses; JSON unless given.
    ///   - trust: Judges the servers, in the place of the session's evaluator.
    ///   - session: Owns the connections; `Session.shared` unless given.
    public init(
        _ base: BaseURL, requests: Requests = JSON(), responses: Responses = JSON(), trust: Trust,
        session: Session = .shared
    ) {
        self.init(ClientConfiguration(base: base), requests, responses, trust, own: trust, session)
    }

    private init(
        _ configuration: ClientConfiguration, _ requests: Requests, _ responses: Responses, _ trust: Trust,
        own: (any TrustEvaluator)?, _ session: Session
    ) {
        self.configuration = configuration
        self.requests = requests
        self.responses = responses
        self.trust = trust
        ownTrust = own
        ownTypes = (responses.accepts, MediaType.acceptField(for: responses.accepts))
        self.session = session
    }

    /// A copy that is changed by a closure.
    ///
    /// - Parameter change: Changes it.
    /// - Throws: What the closure throws.
    public func with(_ change: (inout Self) throws -> Void) rethrows -> Self {
        var copy = self
        try change(&copy)
        return copy
    }
}

/// A client that writes and reads JSON and trusts the system's roots: what `Client("https://…")` makes.
public typealias JSONClient = Client<JSON, JSON, SystemTrust>

extension Client where Trust == SystemTrust {
    /// A client with a configuration, such as one that was read from a file; the session judges the servers.
    ///
    /// - Parameters:
    ///   - configuration: The base URL and what calls have in common.
    ///   - requests: Writes values into requests; JSON unless given.
    ///   - responses: Reads values from responses; JSON unless given.
    ///   - session: Owns the connections; `Session.shared` unless given.
    public init(
        _ configuration: ClientConfiguration, requests: Requests = JSON(), responses: Responses = JSON(),
        session: Session = .shared
    ) {
        self.init(configuration, requests, responses, SystemTrust(), own: nil, session)
    }

    /// A client for an API below a base URL; the session judges the servers.
    ///
    /// - Parameters:
    ///   - base: Where calls go; a literal, or a `BaseURL` made of a text from outside.
    ///   - requests: Writes values into requests; JSON unless given.
    ///   - responses: Reads values from responses; JSON unless given.
    ///   - session: Owns the connections; `Session.shared` unless given.
    public init(
        _ base: BaseURL, requests: Requests = JSON(), responses: Responses = JSON(), session: Session = .shared
    ) {
        self.init(ClientConfiguration(base: base), requests, responses, SystemTrust(), own: nil, session)
    }
}

extension Client where Trust: PinningTrust {
    /// A client whose evaluator pins, which needs an https base URL.
    ///
    /// - Parameters:
    ///   - configuration: The base URL and what calls have in common.
    ///   - requests: Writes values into requests; JSON unless given.
    ///   - responses: Reads values from responses; JSON unless given.
    ///   - trust: Judges the servers.
    ///   - session: Owns the connections; `Session.shared` unless given.
    /// - Throws: `NetworkError` of kind `invalidRequest` when the evaluator lets nothing be sent to the base URL's host
    ///   without TLS, and the base URL is http.
    public init(
        _ configuration: ClientConfiguration, requests: Requests = JSON(), responses: Responses = JSON(),
        trust: Trust, session: Session = .shared
    ) throws(NetworkError) {
        let base = configuration.base
        guard base.isSecure || trust.allowsPlainHTTP(to: base.host) else {
            throw NetworkError(
                invalid: .scheme,
                "The base URL \(base) is http, and the client's evaluator pins: without TLS there is nothing to pin.",
                hint: "Use an https base URL.")
        }
        self.init(configuration, requests, responses, trust, own: trust, session)
    }

    /// A client whose evaluator pins, which needs an https base URL.
    ///
    /// ```swift
    /// let bank = try Client(
    ///     "https://pay.example.com",
    ///     trust: .pinned(keys: ["sha256/…"], backup: "sha256/…"))
    /// ```
    ///
    /// - Parameters:
    ///   - base: Where calls go.
    ///   - requests: Writes values into requests; JSON unless given.
    ///   - responses: Reads values from responses; JSON unless given.
    ///   - trust: Judges the servers.
    ///   - session: Owns the connections; `Session.shared` unless given.
    /// - Throws: `NetworkError` of kind `invalidRequest` when the base URL is http, and the evaluator lets nothing be sent
    ///   to its host without TLS.
    public init(
        _ base: BaseURL, requests: Requests = JSON(), responses: Responses = JSON(), trust: Trust,
        session: Session = .shared
    ) throws(NetworkError) {
        try self.init(
            ClientConfiguration(base: base), requests: requests, responses: responses, trust: trust, session: session)
    }
}

extension Client {
    /// Where calls go.
    public var base: BaseURL { configuration.base }

    /// The same as `responses`.
    public var responseFormat: any ResponseFormat { responses }

    /// What differs from the session's fields.
    public var fields: HeaderChanges {
        get { configuration.fields }
        set { configuration.fields = newValue }
    }

    /// What every call asks for.
    public var query: Query {
        get { configuration.query }
        set { configuration.query = newValue }
    }

    /// What differs from the session's configuration.
    public var options: Request.Options {
        get { configuration.options }
        set { configuration.options = newValue }
    }
}

extension Client: CustomStringConvertible, CustomReflectable {
    /// The base URL, redacted.
    public var description: String { "Client(\(base))" }

    /// What may be shown of the members.
    public var customMirror: Mirror {
        Mirror(self, children: ["configuration": configuration.description, "trust": "\(Trust.self)"])
    }
}
