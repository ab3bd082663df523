// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// What is done about a challenge.
///
/// ```swift
/// let answer = ChallengeAnswer.use(.password("anna", password))
/// ```
public enum ChallengeAnswer: Sendable {
    /// As if nobody had been asked: the response passes, to who is further out, and is the result in the end.
    case useDefault
    /// The request is sent again with this authenticator; when the server refuses it, the question comes again.
    case use(any Authenticator)
    /// This challenge is not answered; the question is about the next one in the response, after the last one as with
    /// ``useDefault``.
    case reject
    /// The transfer ends with this error: a `NetworkError` as it is, a `CancellationError` as `.cancelled`, any other as
    /// the cause of `.interceptorFailed`.
    case cancel(any Error)
}

/// What is known of a challenge beside itself.
///
/// ```swift
/// guard context.failures == 0 else { return .useDefault }
/// ```
public struct ChallengeContext: Sendable {
    /// The request that the server refused, as it was before any answer; its description shows no secret.
    public let request: Request
    /// The head of the refusal.
    public let response: ResponseHead
    /// How many answers in this attempt were refused before.
    public let failures: Int
    /// Scheme, host and port of the server that asks: `https://api.example.com:443`.
    public let origin: String
}

extension ChallengeContext: CustomStringConvertible, CustomReflectable {
    /// The request, redacted, the status and the count.
    public var description: String { "\(request): \(response.status), \(failures) failures" }

    /// What may be shown of the members.
    public var customMirror: Mirror {
        Mirror(
            self,
            children: ["request": request.description, "response": response.description, "failures": failures],
            displayStyle: .struct)
    }
}

/// Asks a closure what to do about challenges.
///
/// It is asked about the challenges of each 401, one after the other in the server's order, and again when an answer was
/// refused; at most ten times in an attempt, then the 401 is the result. It may take its time: a person can be asked
/// for a password meanwhile. What it takes counts for the transfer's `timeouts.total`. Cancelling the transfer, or closing
/// its session, ends it at once, and cancels the closure's task, whatever becomes of that.
///
/// Nothing is remembered: every request is asked about. An authenticator that the closure gives again and again, such as
/// one ``PasswordAuthentication``, does remember, and is used best in the closure's place when the password is known.
/// A request whose body is gone is not repeated: the 401 is the result.
///
/// ```swift
/// let api = Client("https://api.example.com").with {
///     $0.auth = .challenge { challenge, context in
///         guard challenge.scheme == .basic || challenge.scheme == .digest else { return .reject }
///         guard context.failures < 3 else { return .useDefault }
///         let (user, password) = await askSomebody(challenge.realm)
///         return .use(.password(user, password))
///     }
/// }
/// ```
public struct ChallengeAuthentication: Authenticator {
    /// How often it is asked in one attempt.
    static let mostQuestions = 10

    private let decide: @Sendable (AuthenticationChallenge, ChallengeContext) async throws -> ChallengeAnswer

    /// Takes a closure that decides.
    ///
    /// - Parameter decide: Gets a challenge and what else is known, and says what to do. An error it throws ends the
    ///   transfer as ``ChallengeAnswer/cancel(_:)`` does.
    public init(
        _ decide: @escaping @Sendable (AuthenticationChallenge, ChallengeContext) async throws -> ChallengeAnswer
    ) {
        self.decide = decide
    }

    /// Passes the request on, and asks the closure when the server refuses it.
    /// - Throws: `NetworkError`: what the closure cancelled with, or what `next` throws.
    public func authenticate(
        _ request: Request, context: InterceptorContext, next: Next
    ) async throws -> IncomingResponse {
        // Its own credentials would be sent again with every answer.
        guard !request.saysWhoAsks else { return try await next(request) }
        var response = try await next(request)
        var (questions, failures) = (0, 0)
        while response.head.status == .unauthorized, !request.body.isSpent {
            let known = ChallengeContext(
                request: request, response: response.head, failures: failures,
                origin: ProtectedPlace(try request.target()).origin)
            guard let authenticator = try await answer(known, context, &questions) else { return response }
            if let authenticator = authenticator as? any ChallengeAnswering {
                response = try await authenticator.response(to: request, after: response, next: next)
            } else {
                await response.discard()
                response = try await authenticator.authenticate(request, context: context, next: next)
            }
            failures += 1
        }
        return response
    }

    /// What to use; nil when nobody knows anything.
    private func answer(
        _ known: ChallengeContext, _ context: InterceptorContext, _ questions: inout Int
    ) async throws -> (any Authenticator)? {
        for challenge in known.response.challenges {
            guard questions < Self.mostQuestions else { return nil }
            questions += 1
            let answer: ChallengeAnswer
            do {
                answer = try await context.abandonable { try await decide(challenge, known) }
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

extension ChallengeContext {
    /// The error that ends the transfer.
    fileprivate func failure(_ error: any Error) -> any Error {
        if error is NetworkError || error is CancellationError { return error }
        return NetworkError(
            .interceptorFailed, phase: .receiving,
            "Whoever was asked about a challenge answered with an error of their own, a \(type(of: error)).",
            cause: error, request: request, response: response)
    }
}

extension Interceptor where Self == ChallengeAuthentication {
    /// Asks a closure what to do about challenges.
    ///
    /// - Parameter decide: Gets a challenge and what else is known, and says what to do.
    public static func challenge(
        _ decide: @escaping @Sendable (AuthenticationChallenge, ChallengeContext) async throws -> ChallengeAnswer
    ) -> ChallengeAuthentication {
        ChallengeAuthentication(decide)
    }
}
