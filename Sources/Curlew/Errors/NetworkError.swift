// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
// Errors is the one error of the module and what follows from it: what went wrong, when, whether to try again, and how
// to show it without secrets. Every room to the right throws it; it knows only HTTP and the two values it carries.

/// What went wrong with a request: the one error that every typed entry point and every typed sequence throws.
///
/// A value over one shared immutable object, so that throwing and copying it is cheap.
///
/// ```swift
/// do {
///     for try await element in transfer.stream { print(element) }
/// } catch NetworkError.Kind.timedOut {
///     offerRetry()
/// } catch let error as NetworkError {
///     print(error.detailedDescription)     // a tree, without secrets
/// }
/// ```
public struct NetworkError: Error, Sendable {
    private final class Storage: Sendable {
        let kind: Kind
        let phase: Phase
        let message: String
        let hint: String?
        let cause: (any Error)?
        let request: Request?
        let response: ResponseHead?
        let body: [UInt8]
        let attempts: Int
        let earlier: [NetworkError]
        let duration: Duration?
        let engineCode: Int32?
        let retryAfter: Duration?
        let resumeToken: ResumeToken?
        let requestFlaw: RequestFlaw?

        init(
            kind: Kind, phase: Phase, message: String, hint: String?, cause: (any Error)?, request: Request?,
            response: ResponseHead?, body: [UInt8], attempts: Int, earlier: [NetworkError],
            duration: Duration?, engineCode: Int32?, retryAfter: Duration?, resumeToken: ResumeToken?,
            requestFlaw: RequestFlaw?
        ) {
            self.kind = kind
            self.phase = phase
            self.message = message
            self.hint = hint
            self.cause = cause
            self.request = request
            self.response = response
            self.body = body
            self.attempts = attempts
            self.earlier = earlier
            self.duration = duration
            self.engineCode = engineCode
            self.retryAfter = retryAfter
            self.resumeToken = resumeToken
            self.requestFlaw = requestFlaw
        }
    }

    private let storage: Storage

    /// Makes an error; public so that interceptors and tests can.
    ///
    /// - Parameters:
    ///   - kind: What went wrong.
    ///   - phase: When it went wrong; retrying depends on it.
    ///   - message: One sentence for a developer. It is shown as it is, so it must hold no secret.
    ///   - hint: What to try.
    ///   - cause: The error behind this one.
    ///   - request: The request that failed.
    ///   - response: The head of the response, if one came.
    ///   - body: The start of the response's body; cut after 4 KiB, after 64 KiB where the response itself is refused.
    ///   - attempts: How often the request was tried, from 1.
    ///   - earlier: Why the tries before this one failed, the first one first.
    ///   - duration: How long all attempts took.
    ///   - engineCode: The `CURLcode` behind this error.
    ///   - retryAfter: How long another try makes no sense; nil leaves that to the response, if one came.
    ///   - resumeToken: What a download left, to be gone on with.
    ///   - requestFlaw: What an error of kind `.invalidRequest` is about; `.other` unless given, and nil for other kinds.
    public init(
        _ kind: Kind, phase: Phase, _ message: String, hint: String? = nil, cause: (any Error)? = nil,
        request: Request? = nil, response: ResponseHead? = nil, body: [UInt8] = [], attempts: Int = 1,
        earlier: [NetworkError] = [], duration: Duration? = nil, engineCode: Int32? = nil,
        retryAfter: Duration? = nil, resumeToken: ResumeToken? = nil, requestFlaw: RequestFlaw? = nil
    ) {
        var request = request
        if let body = request?.body { request?.body = body.released }
        storage = Storage(
            kind: kind, phase: phase, message: message, hint: hint, cause: cause, request: request,
            response: response, body: Array(body.prefix(kind.keepsAnswer ? Self.answerLimit : Self.bodyLimit)),
            attempts: attempts, earlier: earlier, duration: duration, engineCode: engineCode, retryAfter: retryAfter,
            resumeToken: resumeToken, requestFlaw: kind == .invalidRequest ? requestFlaw ?? .other : nil)
    }

    /// How much of a response's body an error keeps, in bytes.
    static let bodyLimit = 4096
    /// How much an error keeps of a body that says why the server refused.
    static let answerLimit = 65_536

    /// What went wrong.
    public var kind: Kind { storage.kind }
    /// When it went wrong.
    public var phase: Phase { storage.phase }
    /// One sentence about what happened, for a developer.
    public var message: String { storage.message }
    /// What to try, if there is something.
    public var hint: String? { storage.hint }
    /// The error behind this one: the decoder's, the body source's, the trust evaluator's.
    public var cause: (any Error)? { storage.cause }
    /// The request that failed.
    public var request: Request? { storage.request }
    /// The head of the response, if one came.
    public var response: ResponseHead? { storage.response }
    /// The start of the response's body: at most 64 KiB of one that was refused for its status or media type, else 4 KiB.
    public var body: [UInt8] { storage.body }
    /// How often the request was tried, from 1.
    public var attempts: Int { storage.attempts }
    /// Why the tries before this one failed, the first one first; empty where nothing was tried again.
    public var earlier: [NetworkError] { storage.earlier }
    /// How long all attempts took together; nil when nothing was started.
    public var duration: Duration? { storage.duration }
    /// libcurl's own code (`CURLcode`) when the failure came from there.
    public var engineCode: Int32? { storage.engineCode }

    /// How long to wait before another try, as far as that is known: what the error was made with, else what the
    /// response asks for by `Retry-After` (RFC 9110 §10.2.3) or a used-up `RateLimit`.
    public var retryAfter: Duration? { storage.retryAfter ?? response.flatMap { WaitAdvice($0).wait } }

    /// What a download that failed has left, to be gone on with; nil when there is nothing, and for other transfers.
    public var resumeToken: ResumeToken? { storage.resumeToken }

    /// What an error of kind `.invalidRequest` is about; nil for other kinds.
    public var requestFlaw: RequestFlaw? { storage.requestFlaw }

    /// Whether this is a cancellation, which is usually not worth showing to anybody.
    public var isCancellation: Bool { kind == .cancelled }

    /// A copy in which the given members are replaced; nil keeps what this error has.
    public func with(
        phase: Phase? = nil, hint: String? = nil, cause: (any Error)? = nil, request: Request? = nil,
        response: ResponseHead? = nil, body: [UInt8]? = nil, attempts: Int? = nil, earlier: [NetworkError]? = nil,
        duration: Duration? = nil, resumeToken: ResumeToken? = nil
    ) -> NetworkError {
        NetworkError(
            kind, phase: phase ?? self.phase, message, hint: hint ?? self.hint, cause: cause ?? self.cause,
            request: request ?? self.request, response: response ?? self.response, body: body ?? self.body,
            attempts: attempts ?? self.attempts, earlier: earlier ?? self.earlier, duration: duration ?? self.duration,
            engineCode: engineCode, retryAfter: storage.retryAfter, resumeToken: resumeToken ?? self.resumeToken,
            requestFlaw: requestFlaw)
    }
}

/// Lets a `catch` name the kind: `catch NetworkError.Kind.timedOut { … }`.
public func ~= (kind: NetworkError.Kind, error: any Error) -> Bool {
    (error as? NetworkError)?.kind == kind
}
