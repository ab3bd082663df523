// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// Sends an access token with each request, and gets a new one when it expires or is refused: once for all requests that
/// need it, however many they are.
///
/// - Before a token expires, by ``Settings/skew``, the next request has a new one got. While the old one is still good
///   nobody waits for that; afterwards all who need a token do.
/// - When the server answers 401, a new token is got, unless another request has got one since, and the request is sent
///   once more. What comes then is the response, whatever its status is. A server that refuses the new token as well does
///   not cause another fetch with each request: for 1 s, and twice as long each time up to 60 s, its 401 is the response.
/// - When getting a token fails, all who wait fail, once, with `.authenticationFailed`; the next request tries anew, or
///   goes on with the old one, if that has not expired and was taken by the server before. From the second failure in a row on there is a pause, of 2 s
///   and twice as long each time up to 60 s, in which requests fail at once, with that time in `retryAfter`.
/// - Whoever is cancelled stops waiting; the others get their token.
/// - Requests that the closure itself makes go out without a token, by whatever client or session: they wait for nobody.
///   (Not so those of a *detached* task.)
/// - A request to an http URL of another machine is `.invalidRequest`, unless ``Settings/allowsPlainHTTP`` is true.
/// - A request with an `Authorization` of its own keeps it, and one whose body can be read only once is not sent again.
///
/// Copies share the token. In a session's interceptors it is sent to every origin that requests are addressed to.
///
/// ```swift
/// let api = Client("https://api.example.com").with {
///     $0.auth = .refreshing { old in
///         let grant: Grant = try await login.post("token", .form(["refresh_token": old?.refreshToken ?? ""]))
///         return AccessToken(
///             grant.access_token, expiresIn: .seconds(grant.expires_in), refreshToken: grant.refresh_token)
///     }
/// }
/// ```
public struct RefreshingAuthentication: Authenticator {
    /// When a token is replaced, and how long that may take.
    public struct Settings: Sendable {
        /// How long before its expiry a token is replaced; 30 s unless set, and at most a quarter of its life.
        public var skew: Duration
        /// How long getting a token may take, before those who wait fail and its task is cancelled; 60 s unless set.
        ///
        /// After as long again it is given up, and another may be got, though the closure still runs. What it brings then
        /// is used all the same, unless there is another by that time. A store may take as long for each call.
        public var timeout: Duration
        /// The statuses by which a server refuses a token; 401 unless set.
        public var refusals: StatusSet
        /// Whether tokens are sent without TLS, too, where others can read them (RFC 6750 §5.3); false unless set.
        ///
        /// This machine (localhost, 127.0.0.0/8, ::1) gets them in any case. Requests for tokens have an option of their
        /// own, ``OAuth2Client/allowsPlainHTTP``.
        public var allowsPlainHTTP: Bool
        /// What times out.
        public var clock: any Clock<Duration>
        /// What time it is, for expiries.
        public var now: @Sendable () -> Date

        /// Settings, each with its default.
        public init(
            skew: Duration = .seconds(30), timeout: Duration = .seconds(60), refusals: StatusSet = [.unauthorized],
            allowsPlainHTTP: Bool = false, clock: any Clock<Duration> = ContinuousClock(),
            now: @escaping @Sendable () -> Date = { Date() }
        ) {
            self.skew = skew
            self.timeout = timeout
            self.refusals = refusals
            self.allowsPlainHTTP = allowsPlainHTTP
            self.clock = clock
            self.now = now
        }
    }

    private let source: TokenSource
    private let refusals: StatusSet
    private let allowsPlainHTTP: Bool

    /// Authentication by tokens that a closure gets.
    ///
    /// - Parameters:
    ///   - token: The first one; nil to get it before the first request. What a store has wins over it.
    ///   - store: Keeps it from one run of the program to the next; nobody unless given.
    ///   - settings: When it is replaced.
    ///   - refresh: Gets a token; one call at a time, but see ``Settings/timeout``. Its argument is the one to replace, which has the refresh token;
    ///     nil when there is none. An error it throws is the cause of `.authenticationFailed`.
    public init(
        _ token: AccessToken? = nil, store: (any TokenStore)? = nil, settings: Settings = Settings(),
        refresh: @escaping @Sendable (AccessToken?) async throws -> AccessToken
    ) {
        refusals = settings.refusals
        allowsPlainHTTP = settings.allowsPlainHTTP
        source = TokenSource(token, store: store, settings: settings, fetch: refresh)
    }

    /// The token there is now, good or not; nil before the first.
    public var token: AccessToken? { source.current }

    /// Puts a token into the place of the one there is, for instance after a log-in; nil after a log-out.
    ///
    /// Those who wait for a token go on with it; without one they fail. What is being got meanwhile is dropped.
    /// - Throws: What the store throws; the token is in its place then, too.
    public func replace(_ token: AccessToken?) async throws { try await source.replace(token) }

    /// Sends the request with a token, and once more with a new one.
    /// - Throws: `NetworkError`: `.authenticationFailed` without a token, `.invalidRequest` for an http URL, or what sending
    ///   ends with.
    public func authenticate(
        _ request: Request, context: InterceptorContext, next: Next
    ) async throws -> IncomingResponse {
        guard !source.isFetching, !request.fields.contains(.authorization) else { return try await next(request) }
        try request.refusePlainHTTP(
            for: "Access tokens", unless: allowsPlainHTTP,
            option: "RefreshingAuthentication.Settings(allowsPlainHTTP: true)")
        let held = try await token(for: request, context)
        let response = try await next(request.carrying(held.token))
        guard refusals.contains(response.head.status) else {
            if !held.isAccepted { source.accept(held.generation) }
            return response
        }
        guard source.refuse(held.generation), !request.body.isSpent else { return response }
        await response.discard()
        let fresh = try await token(for: request, context, refusedBy: response.head)
        let second = try await next(request.carrying(fresh.token))
        source.judge(fresh.generation, isRefused: refusals.contains(second.head.status))
        return second
    }

    private func token(
        for request: Request, _ context: InterceptorContext, refusedBy head: ResponseHead? = nil
    ) async throws -> TokenMachine.Held {
        if let held = source.ready { return held }
        do {
            return try await context.abandonable { try await source.token() }
        } catch let failure as TokenFailure {
            throw NetworkError(
                .authenticationFailed, phase: head == nil ? .preparing : .validating,
                "There is no token for the request: \(failure)",
                hint: failure.hint, cause: failure.cause, request: request, response: head,
                retryAfter: failure.retryAfter)
        }
    }
}

extension RefreshingAuthentication: CustomStringConvertible, CustomReflectable {
    /// The name alone.
    public var description: String { "RefreshingAuthentication" }

    /// The description alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": description], displayStyle: .struct) }
}

extension Interceptor where Self == RefreshingAuthentication {
    /// Authentication by tokens that a closure gets, once for all requests that need one.
    ///
    /// - Parameters:
    ///   - token: The first one; nil to get it before the first request. What a store has wins over it.
    ///   - store: Keeps it from one run of the program to the next; nobody unless given.
    ///   - settings: When it is replaced.
    ///   - refresh: Gets a token in the place of the one it is given; nil when there is none.
    public static func refreshing(
        _ token: AccessToken? = nil, store: (any TokenStore)? = nil,
        settings: RefreshingAuthentication.Settings = RefreshingAuthentication.Settings(),
        refresh: @escaping @Sendable (AccessToken?) async throws -> AccessToken
    ) -> RefreshingAuthentication {
        RefreshingAuthentication(token, store: store, settings: settings, refresh: refresh)
    }
}

extension Request {
    fileprivate func carrying(_ token: AccessToken) -> Request {
        var request = self
        request.fields[.authorization] = token.fieldValue
        return request
    }
}
