// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// Sends an access token with each request, and fetches a new token when the old one expires or is refused, once for
/// all requests that need it.
///
/// - From ``Settings/skew`` before the expiry of a token, the next request starts a fetch of a new one. Requests use
///   the old token without waiting while it is valid; after its expiry, all requests that need a token wait for the new
///   one.
/// - When the server responds with 401, a new token is fetched, unless another request has fetched one since, and the
///   request is sent once more. The second response is the result, with any status. If the server refuses the new
///   token as well, fetches pause for 1 s, and twice as long each further time up to 60 s; during a pause, the 401 is
///   the result.
/// - When fetching a token fails, all waiting requests fail with `.authenticationFailed`; the next request fetches
///   again, or uses the old token if that has not expired and the server has accepted it before. From the second
///   consecutive failure on, fetches pause for 2 s, and twice as long each further time up to 60 s; during a pause,
///   requests fail at once, with the remaining time in `retryAfter`.
/// - A cancelled request stops waiting; the other requests get their token.
/// - Requests that the closure itself makes are sent without a token, through any client or session, and do not wait
///   for one. (This does not hold for requests of a *detached* task.)
/// - A request to an http URL of another machine fails with `.invalidRequest`, unless ``Settings/allowsPlainHTTP`` is
///   true.
/// - A request with an `Authorization` field of its own keeps it. A request whose body can be read only once is not
///   sent again.
///
/// Copies share the token. Among a session's interceptors, it sends the token to every origin that requests are
/// addressed to.
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
    /// The conditions for replacing a token, and the time limits.
    public struct Settings: Sendable {
        /// The time before its expiry at which a token is replaced; 30 s unless set, and at most a quarter of its
        /// lifetime.
        public var skew: Duration
        /// How long fetching a token may take before the waiting requests fail and its task is cancelled; 60 s unless
        /// set.
        ///
        /// After the same time again, the fetch fails and another one can start, though the closure still runs. A token
        /// that the closure returns later is still used, unless another token is there by then. The same limit holds
        /// for each call of a store.
        public var timeout: Duration
        /// The statuses with which a server refuses a token; 401 unless set.
        public var refusals: StatusSet
        /// Whether tokens are also sent without TLS, where others can read them (RFC 6750 §5.3); false unless set.
        ///
        /// Requests to this machine (localhost, 127.0.0.0/8, ::1) carry them in any case. Requests that fetch tokens
        /// have a separate option, ``OAuth2Client/allowsPlainHTTP``.
        public var allowsPlainHTTP: Bool
        /// The clock for timeouts.
        public var clock: any Clock<Duration>
        /// The function that returns the current time, for expiries.
        public var now: @Sendable () -> Date

        /// Creates settings, each with its default.
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

    /// Creates authentication with tokens that a closure fetches.
    ///
    /// - Parameters:
    ///   - token: The first token; nil to fetch it before the first request. A token in the store takes precedence.
    ///   - store: The storage for tokens between runs of the program; tokens are not saved unless it is given.
    ///   - settings: The conditions for replacing a token.
    ///   - refresh: Fetches a token; one call at a time, but see ``Settings/timeout``. Its argument is the token to
    ///     replace, which has the refresh token; nil when there is no token. An error it throws is the cause of
    ///     `.authenticationFailed`.
    public init(
        _ token: AccessToken? = nil, store: (any TokenStore)? = nil, settings: Settings = Settings(),
        refresh: @escaping @Sendable (AccessToken?) async throws -> AccessToken
    ) {
        refusals = settings.refusals
        allowsPlainHTTP = settings.allowsPlainHTTP
        source = TokenSource(token, store: store, settings: settings, fetch: refresh)
    }

    /// The current token, usable or not; nil before the first.
    public var token: AccessToken? { source.current }

    /// Replaces the token, for instance after a log-in; nil removes it, for instance after a log-out.
    ///
    /// Requests that wait for a token continue with the new one; without one they fail. The result of a fetch in
    /// progress is discarded.
    /// - Throws: The error that the store throws; the token is replaced in that case, too.
    public func replace(_ token: AccessToken?) async throws { try await source.replace(token) }

    /// Sends the request with a token, and once more with a new token when the server refuses the first.
    /// - Throws: `NetworkError`: `.authenticationFailed` without a token, `.invalidRequest` for an http URL, or the
    ///   error that sending throws.
    public func authenticate(
        _ request: Request, context: Interception.Context, next: Interception.Next
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
        guard source.refuse(held.generation), !request.body.isConsumed else { return response }
        await response.discard()
        let fresh = try await token(for: request, context, refusedBy: response.head)
        let second = try await next(request.carrying(fresh.token))
        source.recordSecondResponse(fresh.generation, isRefused: refusals.contains(second.head.status))
        return second
    }

    private func token(
        for request: Request, _ context: Interception.Context, refusedBy head: ResponseHead? = nil
    ) async throws -> TokenMachine.Held {
        if let held = source.ready { return held }
        do {
            return try await context.cancellable { try await source.token() }
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
    /// Returns authentication with tokens that a closure fetches, once for all requests that need one.
    ///
    /// - Parameters:
    ///   - token: The first token; nil to fetch it before the first request. A token in the store takes precedence.
    ///   - store: The storage for tokens between runs of the program; tokens are not saved unless it is given.
    ///   - settings: The conditions for replacing a token.
    ///   - refresh: Fetches a token in place of the given one, which is nil when there is no old token.
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

extension RefreshingAuthentication: ComparableInterceptor {
    var comparison: AnyHashable {
        AnyHashable([AnyHashable(ObjectIdentity(source)), AnyHashable(refusals), AnyHashable(allowsPlainHTTP)])
    }
}
