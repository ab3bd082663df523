// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension NetworkError {
    /// Whether sending the request again is harmless and can succeed.
    public enum Retriability: Hashable, Sendable {
        /// The request would fail again, or must not be sent again.
        case never
        /// The server may have acted on the request, and RFC 9110 §9.2.2 does not call its method idempotent: send it
        /// again only if processing it twice is harmless, for instance because of an idempotency key.
        case ifIdempotent
        /// The request can be sent again, after the time `after` if the server requested one
        /// (``NetworkError/retryAfter``).
        case safe(after: Duration?)
    }

    /// Whether sending the request again is harmless and can succeed, by a table over kind, phase, status and method.
    ///
    /// For a request with an idempotent method (RFC 9110 §9.2.2) the value is `safe` instead of `ifIdempotent`. The
    /// value does not depend on whether the body can be sent again; see `RequestBody`.
    public var retriability: Retriability {
        switch rule.verdict {
        case .never: .never
        case .safe: .safe(after: retryAfter)
        case .repeatable: request?.method.isIdempotent == true ? .safe(after: retryAfter) : .ifIdempotent
        }
    }

    /// The reason for ``retriability``, as an English clause without a full stop.
    public var retriabilityReason: String { rule.reason }

    private var rule: RetryRule {
        if kind == .authenticationFailed, let cause = cause as? NetworkError, cause.repetition != .never {
            return .credentialsLater
        }
        return RetryRule.rule(for: kind, phase: phase, status: response?.status)
    }

    /// The verdict of the table, without regard to the method.
    var repetition: RetryRule.Verdict { rule.verdict }
}

/// One row of the table: the errors it applies to, its verdict, and the reason.
struct RetryRule: Sendable {
    enum Verdict: Sendable {
        case never
        /// Sending the request again is harmless if its method is idempotent.
        case repeatable
        case safe
    }

    let kind: NetworkError.Kind
    let phases: ClosedRange<NetworkError.Phase>
    let statuses: Set<Status>
    let verdict: Verdict
    let reason: String

    private init(
        _ kind: NetworkError.Kind, in phases: ClosedRange<NetworkError.Phase> = .preparing ... .saving,
        statuses: Set<Status> = [], _ verdict: Verdict, _ reason: String
    ) {
        self.kind = kind
        self.phases = phases
        self.statuses = statuses
        self.verdict = verdict
        self.reason = reason
    }

    /// Returns the first row that matches; a kind without a row is not retried.
    static func rule(
        for kind: NetworkError.Kind, phase: NetworkError.Phase, status: Status?
    ) -> RetryRule {
        let row = table.first { row in
            guard row.kind == kind, row.phases.contains(phase) else { return false }
            return row.statuses.isEmpty || status.map(row.statuses.contains) == true
        }
        return row ?? RetryRule(kind, .never, "nothing is known about this kind of error")
    }

    /// The request itself was not sent.
    static let credentialsLater = RetryRule(
        .authenticationFailed, .safe, "the source of the credentials could not be reached, and may recover soon")

    private static let unsent: ClosedRange<NetworkError.Phase> = .preparing ... .securing
    private static let sent: ClosedRange<NetworkError.Phase> = .sending ... .saving

    static let table: [RetryRule] = [
        RetryRule(.cannotResolve, .safe, "nothing was sent, and name servers recover"),
        RetryRule(.cannotConnect, .safe, "nothing was sent, and hosts recover"),
        RetryRule(.timedOut, in: unsent, .safe, "the time passed before anything was sent"),
        RetryRule(.timedOut, in: sent, .repeatable, "the server may have acted before the time passed"),
        RetryRule(.connectionLost, in: unsent, .safe, "the connection broke before anything was sent"),
        RetryRule(.connectionLost, in: sent, .repeatable, "the server may have acted before the connection broke"),
        RetryRule(.streamRefused, .safe, "the server did nothing with the request"),
        RetryRule(.circuitOpen, .safe, "nothing was sent, and the circuit closes when the server recovers"),
        RetryRule(.resourceExhausted, in: unsent, .safe, "nothing was sent, and resources may be free again"),
        RetryRule(.resourceExhausted, in: sent, .repeatable, "the server may have acted before resources ran out"),
        RetryRule(
            .invalidResponse, in: .decoding ... .decoding, .never, "the server will use the same content coding again"),
        RetryRule(.invalidResponse, .repeatable, "the response was invalid, and the server may have acted"),
        RetryRule(.truncatedEncoding, .repeatable, "the server acted, and its response was cut off"),
        RetryRule(.corruptEncoding, .repeatable, "the server acted, and its response was corrupt"),

        RetryRule(.checksumMismatch, .repeatable, "the bytes were corrupted on the way, if the digest is right"),
        RetryRule(.contentChanged, .repeatable, "the changed content can be fetched from its start"),

        RetryRule(.unacceptableStatus, statuses: [.misdirectedRequest], .safe, "another connection may be right"),
        RetryRule(.unacceptableStatus, statuses: [.tooEarly], .safe, "the server did not act on an early request"),
        RetryRule(.unacceptableStatus, statuses: [.tooManyRequests], .repeatable, "the server limits the rate"),
        RetryRule(.unacceptableStatus, statuses: [.requestTimeout], .repeatable, "the server stopped waiting for it"),
        RetryRule(.unacceptableStatus, statuses: [.serviceUnavailable], .repeatable, "the server is busy for a while"),
        RetryRule(
            .unacceptableStatus, statuses: [.internalServerError, .badGateway, .gatewayTimeout], .repeatable,
            "the server failed, and may have acted before"),
        RetryRule(.unacceptableStatus, .never, "the same request will get the same response"),

        RetryRule(.invalidRequest, .never, "the request is invalid and stays invalid"),
        RetryRule(.encodingFailed, .never, "the value cannot be encoded"),
        RetryRule(.tlsFailed, .never, "the client and the server do not agree about TLS"),
        RetryRule(.untrusted, .never, "the peer is not trusted"),
        RetryRule(.tooManyRedirects, .never, "the redirects will be the same"),
        RetryRule(.redirectRefused, .never, "the redirect policy refuses it"),
        RetryRule(.unacceptableContentType, .never, "the response will have the same type"),
        RetryRule(.bodyTooLarge, .never, "the response will have the same size"),
        RetryRule(.decodingFailed, .never, "the response will have the same content"),
        RetryRule(.bodyNotReplayable, .never, "the body cannot be read twice"),
        RetryRule(.bodyFailed, .never, "the body's source failed"),
        RetryRule(.cacheFailed, .repeatable, "the response was removed from the cache, so the server is asked"),
        RetryRule(.cacheMiss, .never, "nothing will be stored in the meantime"),
        RetryRule(.destinationFailed, .never, "the file cannot be saved until its destination is writable"),
        RetryRule(.unsupported, .never, "this machine cannot do it"),
        RetryRule(.authenticationFailed, .never, "there are no valid credentials, and another attempt finds no others"),
        RetryRule(.interceptorFailed, .never, "the meaning of an interceptor's own error is unknown"),
        RetryRule(.cancelled, .never, "the transfer was cancelled on request"),
        RetryRule(.sessionClosed, .never, "the session will not open again"),
        RetryRule(.internal, .never, "the state of the transfer is unknown"),
    ]
}
