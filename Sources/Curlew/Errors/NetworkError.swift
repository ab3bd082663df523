// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
// Errors has the error type of the module: the kind, the phase, whether to retry, and descriptions without secrets.
// The other folders throw this error; it uses only HTTP, and the request and the response head that it carries.

/// The error of a failed request: every typed entry point and every typed sequence throws only this error.
///
/// The value holds one shared immutable object, so that throwing and copying it is cheap.
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

    /// Creates an error; the initializer is public for interceptors and tests.
    ///
    /// - Parameters:
    ///   - kind: The kind of the failure.
    ///   - phase: The phase in which the request failed; retries depend on it.
    ///   - message: One sentence for a developer. It is shown as it is, so it must not contain secrets.
    ///   - hint: A suggestion for the developer.
    ///   - cause: The underlying error.
    ///   - request: The request that failed.
    ///   - response: The head of the response, if one arrived.
    ///   - body: The start of the response's body; cut after 64 KiB if its status or media type was refused, else after
    ///     4 KiB.
    ///   - attempts: The number of attempts, from 1.
    ///   - earlier: The errors of the attempts before this one, oldest first.
    ///   - duration: The duration of all attempts.
    ///   - engineCode: The `CURLcode` behind this error.
    ///   - retryAfter: The time to wait before a retry; nil takes it from the response, if one arrived.
    ///   - resumeToken: The token that resumes the failed download.
    ///   - requestFlaw: The part that an error of kind `.invalidRequest` is about; `.other` by default, and nil for
    ///     other kinds.
    public init(
        _ kind: Kind, phase: Phase, _ message: String, hint: String? = nil, cause: (any Error)? = nil,
        request: Request? = nil, response: ResponseHead? = nil, body: [UInt8] = [], attempts: Int = 1,
        earlier: [NetworkError] = [], duration: Duration? = nil, engineCode: Int32? = nil,
        retryAfter: Duration? = nil, resumeToken: ResumeToken? = nil, requestFlaw: RequestFlaw? = nil
    ) {
        var request = request
        if let body = request?.body { request?.body = body.withoutDescriptor() }
        storage = Storage(
            kind: kind, phase: phase, message: message, hint: hint, cause: cause, request: request,
            response: response, body: Array(body.prefix(kind.keepsRefusedBody ? Self.errorBodyLimit : Self.bodyLimit)),
            attempts: attempts, earlier: earlier, duration: duration, engineCode: engineCode, retryAfter: retryAfter,
            resumeToken: resumeToken, requestFlaw: kind == .invalidRequest ? requestFlaw ?? .other : nil)
    }

    /// The maximum number of bytes of a response's body that an error keeps.
    static let bodyLimit = 4096
    /// The maximum number of bytes that an error keeps of a body that explains the failure.
    static let errorBodyLimit = 65_536

    /// The kind of the failure.
    public var kind: Kind { storage.kind }
    /// The phase in which the request failed.
    public var phase: Phase { storage.phase }
    /// One sentence about what happened, for a developer.
    public var message: String { storage.message }
    /// A suggestion for the developer, if there is one.
    public var hint: String? { storage.hint }
    /// The underlying error, such as that of a decoder, a body source or a trust evaluator.
    public var cause: (any Error)? { storage.cause }
    /// The request that failed.
    public var request: Request? { storage.request }
    /// The head of the response, if one arrived.
    public var response: ResponseHead? { storage.response }
    /// The start of the response's body: at most 64 KiB if its status or media type was refused, else at most 4 KiB.
    public var body: [UInt8] { storage.body }
    /// The number of attempts, from 1.
    public var attempts: Int { storage.attempts }
    /// The errors of the attempts before this one, oldest first; empty without retries.
    public var earlier: [NetworkError] { storage.earlier }
    /// The duration of all attempts together; nil when no attempt was started.
    public var duration: Duration? { storage.duration }
    /// libcurl's code (`CURLcode`) when libcurl reported the failure.
    public var engineCode: Int32? { storage.engineCode }

    /// The time to wait before a retry, if it is known: the value from the initializer, else the time that the response
    /// requests by `Retry-After` (RFC 9110 §10.2.3) or an exhausted `RateLimit`.
    public var retryAfter: Duration? { storage.retryAfter ?? response.flatMap { WaitAdvice($0).wait } }

    /// The token that resumes the failed download; nil when nothing can be resumed, and for other transfers.
    public var resumeToken: ResumeToken? { storage.resumeToken }

    /// The part that an error of kind `.invalidRequest` is about; nil for other kinds.
    public var requestFlaw: RequestFlaw? { storage.requestFlaw }

    /// Whether this is a cancellation, which usually need not be shown to users.
    public var isCancellation: Bool { kind == .cancelled }

    /// Returns a copy in which the given members are replaced; nil keeps the member of this error.
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

/// Matches an error by its kind, so that a `catch` can name the kind: `catch NetworkError.Kind.timedOut { … }`.
public func ~= (kind: NetworkError.Kind, error: any Error) -> Bool {
    (error as? NetworkError)?.kind == kind
}
