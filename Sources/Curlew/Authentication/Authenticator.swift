// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
// Authentication adds credentials to requests: interceptors close to the connection add credentials, respond to
// challenges (RFC 9110 §11) and sign. They know requests, responses and the chain, but not sessions.

/// Adds proof of the caller's identity to requests.
///
/// An authenticator is an interceptor of single attempts: it gets every request that is sent, after retries and
/// redirects, adds credentials, and may respond to a challenge by calling `next` again. It gets only requests to the
/// origin that the transfer was addressed to, so a redirect to another origin is always sent without credentials. (An
/// authenticator among a session's interceptors gets the requests of every transfer, to any origin: give it to the
/// client of its API instead.) Requests with the option ``Request/Options/isAnonymous`` bypass it.
///
/// If no authenticator responds to a challenge, the result is a normal response with the status 401.
///
/// ```swift
/// struct Signature: Authenticator {
///     let key: String
///
///     func authenticate(
///         _ request: Request, context: Interception.Context, next: Interception.Next
///     ) async throws -> IncomingResponse {
///         var request = request
///         request.fields["X-Signature"] = key
///         return try await next(request)
///     }
/// }
/// ```
public protocol Authenticator: Interceptor {
    /// Returns the response to a request with credentials, by calling `next` once or several times.
    ///
    /// Called for each attempt, and concurrently for many attempts. A request whose body can be read only once cannot
    /// be sent a second time (``RequestBody/isConsumed``); return the first response in that case.
    /// - Parameters:
    ///   - request: A request to the origin that the transfer was addressed to.
    ///   - context: The circumstances of the transfer.
    ///   - next: The rest of the chain behind this authenticator, up to the network.
    /// - Throws: Any error, with the same meaning as in ``Interceptor/intercept(_:context:next:)``.
    func authenticate(
        _ request: Request, context: Interception.Context, next: Interception.Next
    ) async throws -> IncomingResponse
}

extension Authenticator {
    /// `.attempt`.
    public var scope: Interception.Scope { .attempt }

    /// Authenticates requests that stay at the transfer's origin, and passes on all others.
    /// - Throws: The error that ``authenticate(_:context:next:)`` throws.
    public func intercept(
        _ request: Request, context: Interception.Context, next: Interception.Next
    ) async throws -> IncomingResponse {
        guard !request.options.isAnonymous, context.isAtOrigin(request) else { return try await next(request) }
        return try await authenticate(request, context: context, next: next)
    }
}

extension Interception.Context {
    /// Returns whether a request has the origin (RFC 6454 §4: scheme, host and port) of the transfer's own request, so
    /// that it may carry the credentials meant for that origin.
    ///
    /// The result is false from the first redirect to another origin on, even for a redirect back to the first origin,
    /// because another server has chosen the URL by then. It is also false for a request that must be sent without
    /// `Authorization`. An https request that replaces an http request of the transfer to a host of the session's
    /// ``HSTSStore`` stays at the origin.
    public func isAtOrigin(_ request: Request) -> Bool {
        let own = run.request
        if request.withheld.contains(.authorization) { return false }
        if request.url == own.url { return true }
        guard let target = try? request.target(), let home = try? own.target() else { return false }
        return target.isSameOrigin(as: home) || target.isUpgrade(of: home)
    }
}

extension Request {
    /// Refuses to send a secret where others on the network can read it (RFC 6750 §5.3, RFC 7617 §4).
    ///
    /// - Parameters:
    ///   - secret: The kind of secret, in the plural, for the message.
    ///   - allowsPlainHTTP: Whether the caller has allowed plain http.
    ///   - option: The code with which the caller allows it, for the hint.
    ///   - head: The response that requires the secret; nil when the secret is sent without a challenge.
    /// - Throws: `NetworkError` of kind `invalidRequest` for an http URL of another machine.
    package func refusePlainHTTP(
        for secret: String, unless allowsPlainHTTP: Bool, option: String, askedBy head: ResponseHead? = nil
    ) throws(NetworkError) {
        guard !allowsPlainHTTP, try target().isCleartext else { return }
        throw NetworkError(
            invalid: .scheme,
            "\(secret) are not sent over plain http, where others on the network can read them.",
            hint: "Use an https URL, or \(option) on a network you trust.", request: self,
            response: head, phase: head == nil ? .preparing : .validating)
    }
}
