// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Curlew

@Suite("Retriability")
struct RetriabilityTests {
    typealias Kind = NetworkError.Kind
    typealias Phase = NetworkError.Phase
    typealias Retriability = NetworkError.Retriability

    private func error(
        _ kind: Kind, _ phase: Phase, _ method: Method? = nil, _ status: Status? = nil, retryAfter: String? = nil
    ) -> NetworkError {
        var fields = HeaderFields()
        fields[.retryAfter] = retryAfter
        return NetworkError(
            kind, phase: phase, "", request: method.map { Request($0, "http://h/") },
            response: status.map { ResponseHead(status: $0, fields: fields) })
    }

    @Test(arguments: Phase.allCases)
    func retriabilityDependsOnPhaseAndMethod(phase: Phase) {
        for kind in [Kind.timedOut, .connectionLost, .resourceExhausted] {
            let safe = Retriability.safe(after: nil)
            let isUnsent = phase < .sending
            #expect(error(kind, phase, .get).retriability == safe)
            #expect(error(kind, phase, .post).retriability == (isUnsent ? safe : .ifIdempotent))
            #expect(error(kind, phase).retriability == (isUnsent ? safe : .ifIdempotent))
        }
    }

    static let statusRows: [(Status, Retriability, Retriability)] = [
        (Status.misdirectedRequest, Retriability.safe(after: nil), Retriability.safe(after: nil)),
        (.tooEarly, .safe(after: nil), .safe(after: nil)), (.tooManyRequests, .ifIdempotent, .safe(after: nil)),
        (.requestTimeout, .ifIdempotent, .safe(after: nil)), (.serviceUnavailable, .ifIdempotent, .safe(after: nil)),
        (.internalServerError, .ifIdempotent, .safe(after: nil)), (.badGateway, .ifIdempotent, .safe(after: nil)),
        (.gatewayTimeout, .ifIdempotent, .safe(after: nil)), (.notFound, .never, .never),
        (.notImplemented, .never, .never),
    ]

    @Test(arguments: statusRows)
    func statusesDecideRetriability(status: Status, post: Retriability, put: Retriability) {
        #expect(error(.unacceptableStatus, .validating, .post, status).retriability == post)
        #expect(error(.unacceptableStatus, .validating, .put, status).retriability == put)
    }

    static let retryAfterRows: [(String, Duration?)] = [
        ("3", Duration.seconds(3)), ("0", .zero), ("-1", nil), ("", nil), ("Wed, 21 Oct 2015 07:28:00 GMT", .zero),
        ("99999999999999999999", nil),
    ]

    @Test(arguments: retryAfterRows)
    func retryAfterIsPartOfRetriability(text: String, after: Duration?) {
        let refused = error(.unacceptableStatus, .validating, .get, .tooManyRequests, retryAfter: text)
        #expect(refused.retriability == .safe(after: after))
    }

    @Test(arguments: [
        Kind.invalidRequest, .encodingFailed, .tlsFailed, .untrusted, .tooManyRedirects, .unacceptableContentType,
        .bodyTooLarge, .decodingFailed, .bodyNotReplayable, .bodyFailed, .cacheMiss, .unsupported, .cancelled,
        .sessionClosed, .internal, .unacceptableStatus, .redirectRefused, .authenticationFailed,
        Kind(rawValue: "made_up"),
    ])
    func fatalErrorKindsAreNeverRetried(kind: Kind) {
        #expect(error(kind, .preparing, .get).retriability == .never)
        #expect(!error(kind, .preparing).retriabilityReason.isEmpty)
    }

    @Test func otherKindsDecideRetriability() {
        #expect(error(.cannotResolve, .resolving, .post).retriability == .safe(after: nil))
        #expect(error(.cannotConnect, .connecting, .post).retriability == .safe(after: nil))
        #expect(error(.circuitOpen, .queued, .post).retriability == .safe(after: nil))
        #expect(error(.invalidResponse, .receiving, .post).retriability == .ifIdempotent)
        #expect(error(.invalidResponse, .decoding, .get).retriability == .never)
    }

    @Test func explicitRetryAfterOverridesTheResponse() {
        let head = ResponseHead(status: .serviceUnavailable, fields: ["Retry-After": "3"])
        let error = NetworkError(
            .circuitOpen, phase: .queued, "", response: head, retryAfter: .seconds(9))
        #expect(error.retryAfter == .seconds(9) && error.with(attempts: 2).retryAfter == .seconds(9))
        #expect(error.retriability == .safe(after: .seconds(9)))
        #expect(NetworkError(.circuitOpen, phase: .queued, "", response: head).retryAfter == .seconds(3))
        #expect(NetworkError(.circuitOpen, phase: .queued, "").retryAfter == nil)
    }

    @Test func everyRetryRuleHasAUniqueReason() {
        #expect(RetryRule.table.allSatisfy { !$0.reason.isEmpty })
        #expect(Set(RetryRule.table.map(\.reason)).count == RetryRule.table.count)
    }
}
