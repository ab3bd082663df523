// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

@Suite("NetworkError")
struct NetworkErrorTests {
    private struct Cause: Error, CustomStringConvertible {
        var description: String { "the cause" }
    }

    private static let request = Request(
        .post, "https://u:pw@h/p?token=s3cret", fields: ["Authorization": "Bearer s3cret", "X": "1"])
    private static let head = ResponseHead(
        status: .serviceUnavailable, fields: ["Retry-After": "3", "Set-Cookie": "id=s3cret"])

    private static let full = NetworkError(
        .timedOut, phase: .connecting, "No answer.\n", hint: "Look.", cause: Cause(), request: request, response: head,
        body: Array(repeating: 7, count: 5000), attempts: 2, duration: .milliseconds(1500), engineCode: 28)

    @Test func membersAreStored() {
        let error = Self.full
        #expect(error.kind == .timedOut && error.phase == .connecting)
        #expect(error.message == "No answer.\n" && error.hint == "Look.")
        #expect(error.cause is Cause)
        #expect(error.request?.url == Self.request.url && error.response == Self.head)
        #expect(error.body.count == 4096)
        #expect(error.attempts == 2 && error.duration == .milliseconds(1500) && error.engineCode == 28)
        #expect(!error.isCancellation)
        #expect(NetworkError(.cancelled, phase: .queued, "").isCancellation)
    }

    @Test func copiesKeepUnchangedMembers() {
        let plain = NetworkError(.connectionLost, phase: .sending, "Gone.", engineCode: 55)
        #expect(plain.with().description == plain.description)
        let changed = plain.with(
            phase: .waiting, hint: "h", cause: Cause(), request: Self.request, response: Self.head, body: [1],
            attempts: 3,
            duration: .seconds(1))
        #expect(changed.kind == .connectionLost && changed.phase == .waiting && changed.message == "Gone.")
        #expect(changed.hint == "h" && changed.cause is Cause && changed.request != nil && changed.response != nil)
        #expect(
            changed.body == [1] && changed.attempts == 3 && changed.duration == .seconds(1) && changed.engineCode == 55)
    }

    @Test func catchPatternsMatchTheKind() {
        do {
            throw Self.full
        } catch NetworkError.Kind.cancelled {
            Issue.record("the pattern of another kind must not match")
        } catch NetworkError.Kind.timedOut {
        } catch {
            Issue.record("the pattern of the kind must match")
        }
        #expect(!(NetworkError.Kind.timedOut ~= Cause()))
    }

    @Test func descriptionIsOneLine() {
        #expect(
            Self.full.description == "timed out while connecting: No answer.\\n (POST https://h/p?token=<redacted>; "
                + "status 503; 2 attempts; libcurl code 28)")
        #expect(NetworkError(.cancelled, phase: .queued, "Stop.").description == "cancelled while queued: Stop.")
    }

    @Test func detailedDescriptionIsATree() {
        let tree = """
            curlew.timed_out.connecting
            ├─ what: No answer.\\n
            ├─ try: Look.
            ├─ retry: safe after 3 s, the time passed before anything was sent
            ├─ request: POST https://h/p?token=<redacted>
            │  ├─ Authorization: <redacted>
            │  └─ X: 1
            ├─ response: HTTP/1.1 503 Service Unavailable
            │  ├─ Retry-After: 3
            │  └─ Set-Cookie: <redacted>
            ├─ body: the first 4096 bytes are kept
            ├─ attempts: 2 in 1.5 s
            ├─ libcurl code: 28
            └─ cause: the cause
            """
        #expect(Self.full.detailedDescription == tree)
        let outer = NetworkError(
            .connectionLost, phase: .sending, "Outer.", cause: NetworkError(.cancelled, phase: .queued, "Inner."))
        let short = """
            curlew.connection_lost.sending
            ├─ what: Outer.
            ├─ retry: only if the request is idempotent, the server may have acted before the connection broke
            ├─ attempts: 1
            └─ cause: curlew.cancelled.queued
               ├─ what: Inner.
               ├─ retry: never, the transfer was cancelled on request
               └─ attempts: 1
            """
        #expect(outer.detailedDescription == short)
        let unsent = NetworkError(.cannotConnect, phase: .connecting, "No.").detailedDescription
        #expect(unsent.contains("retry: safe, nothing was sent"))
    }

    @Test func descriptionsHideSecrets() {
        for text in [Self.full.description, Self.full.detailedDescription, "\(Self.full)"] {
            #expect(!text.contains("s3cret") && !text.contains("pw"))
        }
    }

    @Test func phasesAreInOrder() {
        #expect(NetworkError.Phase.allCases == NetworkError.Phase.allCases.sorted())
        #expect(
            NetworkError.Phase.allCases.map { "\($0)" }.joined(separator: " ")
                == "preparing queued resolving connecting securing sending waiting receiving validating decoding saving"
        )
    }

    static let exitCodeRows: [(NetworkError.Kind, Status?, Int32)] = [
        (NetworkError.Kind.invalidRequest, nil, 64), (.decodingFailed, nil, 65), (.bodyFailed, nil, 66),
        (.cannotResolve, nil, 68), (.cannotConnect, nil, 69), (.internal, nil, 70),
        (NetworkError.Kind(rawValue: "made_up"), nil, 70),
        (.circuitOpen, nil, 69), (.resourceExhausted, nil, 71), (.connectionLost, nil, 74), (.timedOut, nil, 75),
        (.tlsFailed, nil, 76),
        (.untrusted, nil, 77), (.unacceptableStatus, nil, 69), (.unacceptableStatus, .notFound, 69),
        (.unacceptableStatus, .unauthorized, 77), (.unacceptableStatus, .tooManyRequests, 75),
        (.timedOut, .forbidden, 75), (.redirectRefused, nil, 77),
    ]

    @Test(arguments: exitCodeRows)
    func exitCodesFollowKindAndStatus(kind: NetworkError.Kind, status: Status?, code: Int32) {
        let error = NetworkError(kind, phase: .waiting, "", response: status.map { ResponseHead(status: $0) })
        #expect(error.exitCode == code)
        #expect(error.code == "curlew.\(kind.rawValue).waiting")
    }

    @Test func kindsAreCodable() throws {
        let data = try JSONEncoder().encode([NetworkError.Kind.timedOut])
        #expect(try JSONDecoder().decode([NetworkError.Kind].self, from: data) == [.timedOut])
    }
}
