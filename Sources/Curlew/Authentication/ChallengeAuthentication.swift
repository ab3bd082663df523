// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension ChallengeAuthentication {
    /// The decision about a challenge.
    ///
    /// ```swift
    /// let answer = ChallengeAuthentication.Decision.use(.password("anna", password))
    /// ```
    public enum Decision: Sendable {
        /// The challenge is not met: the response passes to the outer interceptors and becomes the result.
        case useDefault
        /// The request is sent again with this authenticator; when the server refuses it, the closure is called again.
        case use(any Authenticator)
        /// This challenge is rejected, and the closure is called for the next challenge in the response; after the last
        /// one, the effect is that of ``useDefault``.
        case reject
        /// The transfer ends with this error: a `NetworkError` unchanged, a `CancellationError` as `.cancelled`, any
        /// other error as the cause of `.interceptorFailed`.
        case cancel(any Error)
    }
}

extension ChallengeAuthentication {
    /// The circumstances of a challenge.
    ///
    /// ```swift
    /// guard context.failures == 0 else { return .useDefault }
    /// ```
    public struct Context: Sendable {
        /// The request that the server refused, before any authenticator changed it; its description shows no secret.
        public let request: Request
        /// The head of the refusal.
        public let response: ResponseHead
        /// The number of decisions in this attempt that the server refused before.
        public let failures: Int
        /// The scheme, host and port of the server that sent the challenge: `https://api.example.com:443`.
        public let origin: String
    }
}

extension ChallengeAuthentication.Context: CustomStringConvertible, CustomReflectable {
    /// The redacted request, the status and the count.
    public var description: String { "\(request): \(response.status), \(failures) failures" }

    /// The members, redacted.
    public var customMirror: Mirror {
        Mirror(
            self,
            children: ["request": request.description, "response": response.description, "failures": failures],
            displayStyle: .struct)
    }
}

/// Calls a closure to decide about challenges.
///
/// The closure is called for the challenges of each 401, one after the other in the server's order, and again when its
/// decision led to a refusal; at most ten times in an attempt, after which the 401 is the result. The closure may run
/// long, for instance to prompt a user for a password. Its time counts for the transfer's `timeouts.total`. When the
/// transfer is cancelled, or its session closes, the wait ends at once and the closure's task is cancelled; the
/// transfer does not wait for the closure to return.
///
/// The interceptor remembers nothing: the closure is called for every request. An authenticator that the closure
/// returns repeatedly, such as a ``PasswordAuthentication``, remembers the server's scheme; when the password is known,
/// use that authenticator instead of the closure. A request whose body has been used up is not sent again: the 401 is
/// the result.
///
/// ```swift
/// let api = Client("https://api.example.com").with {
///     $0.auth = .challenge { challenge, context in
///         guard challenge.scheme == .basic || challenge.scheme == .digest else { return .reject }
///         guard context.failures < 3 else { return .useDefault }
///         let (user, password) = await askUser(challenge.realm)
///         return .use(.password(user, password))
///     }
/// }
/// ```
public struct ChallengeAuthentication: Authenticator {
    /// The maximum number of calls of the closure in one attempt.
    static let maximumDecisions = 10

    private let decide:
        @Sendable (ChallengeAuthentication.Challenge, ChallengeAuthentication.Context) async throws ->
            ChallengeAuthentication.Decision

    /// Creates authentication with a closure that decides.
    ///
    /// - Parameter decide: Gets a challenge and its context, and returns the decision. An error it throws ends the
    ///   transfer as ``Decision/cancel(_:)`` does.
    public init(
        _ decide:
            @escaping @Sendable (ChallengeAuthentication.Challenge, ChallengeAuthentication.Context) async throws ->
            ChallengeAuthentication.Decision
    ) {
        self.decide = decide
    }

    /// Sends the request, and calls the closure when the server refuses it.
    /// - Throws: `NetworkError`: the error that the closure cancelled with, or the error that `next` throws.
    public func authenticate(
        _ request: Request, context: Interception.Context, next: Interception.Next
    ) async throws -> IncomingResponse {
        // The request's own credentials would be sent again with every authenticator.
        guard !request.hasOwnCredentials else { return try await next(request) }
        var response = try await next(request)
        var (questions, failures) = (0, 0)
        while response.head.status == .unauthorized, !request.body.isConsumed {
            let known = ChallengeAuthentication.Context(
                request: request, response: response.head, failures: failures,
                origin: ProtectedResource(try request.target()).origin)
            guard let authenticator = try await answer(known, context, &questions) else { return response }
            if let authenticator = authenticator as? any ChallengeResponder {
                response = try await authenticator.response(to: request, after: response, next: next)
            } else {
                await response.discard()
                response = try await authenticator.authenticate(request, context: context, next: next)
            }
            failures += 1
        }
        return response
    }

    /// Returns the authenticator to use; nil when the closure decides for no authenticator.
    private func answer(
        _ known: ChallengeAuthentication.Context, _ context: Interception.Context, _ questions: inout Int
    ) async throws -> (any Authenticator)? {
        for challenge in known.response.challenges {
            guard questions < Self.maximumDecisions else { return nil }
            questions += 1
            let answer: ChallengeAuthentication.Decision
            do {
                answer = try await context.cancellable { try await decide(challenge, known) }
            } catch {
                throw known.failure(error)
            }
            switch answer {
            case .useDefault: return nil
            case .use(let authenticator): return authenticator
            case .reject: continue
            case .cancel(let error): throw known.failure(error)
            }
        }
        return nil
    }
}

extension ChallengeAuthentication.Context {
    /// Returns the error that ends the transfer.
    fileprivate func failure(_ error: any Error) -> any Error {
        if error is NetworkError || error is CancellationError { return error }
        return NetworkError(
            .interceptorFailed, phase: .receiving,
            "The challenge handler threw \(type(of: error)).",
            cause: error, request: request, response: response)
    }
}

extension Interceptor where Self == ChallengeAuthentication {
    /// Calls a closure to decide about challenges.
    ///
    /// - Parameter decide: Gets a challenge and its context, and returns the decision.
    public static func challenge(
        _ decide:
            @escaping @Sendable (ChallengeAuthentication.Challenge, ChallengeAuthentication.Context) async throws ->
            ChallengeAuthentication.Decision
    ) -> ChallengeAuthentication {
        ChallengeAuthentication(decide)
    }
}
