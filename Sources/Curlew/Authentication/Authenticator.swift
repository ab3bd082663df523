// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
// Authentication is how requests say who asks: interceptors next to the wire that add credentials, answer challenges
// (RFC 9110 §11) and sign. They know requests, responses and the chain, nothing of sessions.

/// Proves to a server who asks.
///
/// An authenticator is an interceptor of single attempts: it sees every request that goes on the wire, after retries and
/// redirects, adds what proves who asks, and may answer a challenge by asking `next` again. It is asked only for requests
/// to the origin that the transfer was addressed to: what is redirected elsewhere goes there without credentials, and
/// nobody has to think of it. (One among a session's interceptors is asked for every transfer, wherever that goes: give
/// it to the client of the API that it is for.) Requests with the option ``Request/Options/isAnonymous`` pass it by.
///
/// A challenge that nobody answers is a response like any other, with its status 401.
///
/// ```swift
/// struct Signature: Authenticator {
///     let key: String
///
///     func authenticate(
///         _ request: Request, context: InterceptorContext, next: Next
///     ) async throws -> IncomingResponse {
///         var request = request
///         request.fields["X-Signature"] = key
///         return try await next(request)
///     }
/// }
/// ```
public protocol Authenticator: Interceptor {
    /// Gives the response to a request with credentials, by asking `next` for it once or several times.
    ///
    /// Called for each attempt, for many at once. A request whose body can be read only once cannot be sent a second
    /// time (``RequestBody/isSpent``); the response to the first is given then.
    /// - Parameters:
    ///   - request: A request to the origin that the transfer was addressed to.
    ///   - context: What is known about the transfer.
    ///   - next: Everything behind this authenticator, the network in the end.
    /// - Throws: Any error, with the same meaning as in ``Interceptor/intercept(_:context:next:)``.
    func authenticate(
        _ request: Request, context: InterceptorContext, next: Next
    ) async throws -> IncomingResponse
}

extension Authenticator {
    /// `.attempt`.
    public var scope: InterceptorScope { .attempt }

    /// Authenticates requests that stay at the transfer's origin, and passes on all others.
    /// - Throws: What ``authenticate(_:context:next:)`` throws.
    public func intercept(
        _ request: Request, context: InterceptorContext, next: Next
    ) async throws -> IncomingResponse {
        guard !request.options.isAnonymous, context.isAtOrigin(request) else { return try await next(request) }
        return try await authenticate(request, context: context, next: next)
    }
}

extension InterceptorContext {
    /// Whether a request goes to the origin (RFC 6454 §4: scheme, host and port) of the transfer's own request, so that
    /// it may have the credentials that are meant for it.
    ///
    /// False from the first redirect to another origin on, also for one that leads back: another server has chosen what
    /// would be asked for then. False, too, for a request that was told to go without `Authorization`.
    public func isAtOrigin(_ request: Request) -> Bool {
        let own = run.request
        if request.withheld.contains(.authorization) { return false }
        if request.urlText == own.urlText { return true }
        guard let target = try? request.target(), let home = try? own.target() else { return false }
        return target.isSameOrigin(as: home)
    }
}

extension Request {
    /// Refuses to send a secret where others on the network can read it (RFC 6750 §5.3, RFC 7617 §4).
    ///
    /// - Parameters:
    ///   - secret: What would be sent, in the plural, for the message.
    ///   - allowsPlainHTTP: Whether the caller has allowed it.
    ///   - option: How the caller allows it, for the hint.
    ///   - head: The response that asks for the secret; nil when it is sent unasked.
    /// - Throws: `NetworkError` of kind `invalidRequest` for an http URL of another machine.
    func refusePlainHTTP(
        for secret: String, unless allowsPlainHTTP: Bool, option: String, askedBy head: ResponseHead? = nil
    ) throws(NetworkError) {
        guard !allowsPlainHTTP, try target().isReadableByOthers else { return }
        throw NetworkError(
            invalid: .scheme,
            "\(secret) are not sent over plain http, where others on the network can read them.",
            hint: "Use an https URL, or \(option) on a network you trust.", request: self,
            response: head, phase: head == nil ? .preparing : .validating)
    }
}
