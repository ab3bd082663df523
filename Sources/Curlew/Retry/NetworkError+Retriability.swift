// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension NetworkError {
    /// Whether sending the request again is harmless and could help.
    public enum Retriability: Hashable, Sendable {
        /// It would fail again, or it must not be repeated.
        case never
        /// The server may have acted on the request, whose method is not one RFC 9110 §9.2.2 calls idempotent: repeat
        /// it only if you know that doing it twice is harmless, for instance because of an idempotency key.
        case ifIdempotent
        /// It can be repeated; not before `after`, where that is known (``NetworkError/retryAfter``).
        case safe(after: Duration?)
    }

    /// Whether sending the request again is harmless and could help, by a table over kind, phase, status and method.
    ///
    /// For a request known to be idempotent (RFC 9110 §9.2.2) the answer is never `ifIdempotent` but `safe`. Whether
    /// the body can be sent again is not considered; see `RequestBody`.
    public var retriability: Retriability {
        switch rule.verdict {
        case .never: .never
        case .safe: .safe(after: retryAfter)
        case .repeatable: request?.method.isIdempotent == true ? .safe(after: retryAfter) : .ifIdempotent
        }
    }

    /// The reason for ``retriability``, as half a sentence in English.
    public var retriabilityReason: String { rule.reason }

    private var rule: RetryRule {
        if kind == .authenticationFailed, let cause = cause as? NetworkError, cause.repetition != .never {
            return .credentialsLater
        }
        return RetryRule.rule(for: kind, phase: phase, status: response?.status)
    }

    /// What the table says whatever the method is.
    var repetition: RetryRule.Verdict { rule.verdict }
}

/// One row of the table: which errors it is about, what it says, and why.
struct RetryRule: Sendable {
    enum Verdict: Sendable {
        case never
        /// Repeating is harmless if the method is idempotent.
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

    /// The first row that fits; a kind without a row is not retried.
    static func rule(
        for kind: NetworkError.Kind, phase: NetworkError.Phase, status: Status?
    ) -> RetryRule {
        let row = table.first { row in
            guard row.kind == kind, row.phases.contains(phase) else { return false }
            return row.statuses.isEmpty || status.map(row.statuses.contains) == true
        }
        return row ?? RetryRule(kind, .never, "nothing is known about this kind of error")
    }

    /// Nothing was done with the request itself.
    static let credentialsLater = RetryRule(
        .authenticationFailed, .safe, "what gives credentials could not be reached, and may be back in a moment")

    private static let unsent: ClosedRange<NetworkError.Phase> = .preparing ... .securing
    private static let sent: ClosedRange<NetworkError.Phase> = .sending ... .saving

    static let table: [RetryRule] = [
        RetryRule(.cannotResolve, .safe, "nothing was sent, and name servers recover"),
        RetryRule(.cannotConnect, .safe, "nothing was sent, and hosts come back"),
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
        RetryRule(.invalidResponse, .repeatable, "the answer was garbled, and the server may have acted"),
        RetryRule(.truncatedEncoding, .repeatable, "the server acted, and its answer broke off"),
        RetryRule(.corruptEncoding, .repeatable, "the server acted, and its answer was garbled"),

        RetryRule(.checksumMismatch, .repeatable, "the bytes were garbled on the way, if the digest is right"),
        RetryRule(.contentChanged, .repeatable, "what is there now can be fetched from its start"),

        RetryRule(.unacceptableStatus, statuses: [.misdirectedRequest], .safe, "another connection may be right"),
        RetryRule(.unacceptableStatus, statuses: [.tooEarly], .safe, "the server did not act on an early request"),
        RetryRule(.unacceptableStatus, statuses: [.tooManyRequests], .repeatable, "the server asks to slow down"),
        RetryRule(.unacceptableStatus, statuses: [.requestTimeout], .repeatable, "the server did not wait for it all"),
        RetryRule(.unacceptableStatus, statuses: [.serviceUnavailable], .repeatable, "the server is busy for a while"),
        RetryRule(
            .unacceptableStatus, statuses: [.internalServerError, .badGateway, .gatewayTimeout], .repeatable,
            "the server failed, and may have acted before"),
        RetryRule(.unacceptableStatus, .never, "the server's answer to the same request will be the same"),

        RetryRule(.invalidRequest, .never, "the request is wrong and will stay so"),
        RetryRule(.encodingFailed, .never, "the value cannot be encoded"),
        RetryRule(.tlsFailed, .never, "the two sides do not agree about TLS"),
        RetryRule(.untrusted, .never, "the peer is not trusted"),
        RetryRule(.tooManyRedirects, .never, "the redirects will be the same"),
        RetryRule(.redirectRefused, .never, "the redirect policy does not want it"),
        RetryRule(.unacceptableContentType, .never, "the answer will have the same type"),
        RetryRule(.bodyTooLarge, .never, "the answer will have the same size"),
        RetryRule(.decodingFailed, .never, "the answer will have the same content"),
        RetryRule(.bodyNotReplayable, .never, "the body cannot be read twice"),
        RetryRule(.bodyFailed, .never, "the body's source failed"),
        RetryRule(.cacheMiss, .never, "nothing will be stored in the meantime"),
        RetryRule(.destinationFailed, .never, "the file cannot be put there until somebody makes place"),
        RetryRule(.unsupported, .never, "this machine cannot do it"),
        RetryRule(.authenticationFailed, .never, "there are no credentials, and asking again brings none"),
        RetryRule(.interceptorFailed, .never, "what an interceptor's own error means is not known"),
        RetryRule(.cancelled, .never, "somebody asked to stop"),
        RetryRule(.sessionClosed, .never, "the session will not open again"),
        RetryRule(.internal, .never, "the state of the transfer is unknown"),
    ]
}
