// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// Retries: their conditions, number, waits and events.
@Suite(.timeLimit(.minutes(5)))
struct RetryTests {
    private let quick = RetryPolicy(limit: 2, backoff: .none)

    /// A server that responds with the given statuses in order, and then with 200.
    private func server(_ statuses: [Int], _ fields: [(String, String)] = []) throws -> MockServer {
        let left = Lock(statuses)
        return try MockServer { _ in
            let status = left.withLock { $0.isEmpty ? nil : $0.removeFirst() }
            guard let status else { return .text("fine") }
            return fields.reduce(.text("no", status: status)) { $0.field($1.0, $1.1) }
        }
    }

    /// A server that resets so many connections before it sends complete responses.
    private func breaking(_ count: Int, at point: MockResponse.Point = .start) throws -> MockServer {
        let left = Lock(count)
        return try MockServer { _ in
            let breaks = left.withLock { left in
                defer { left -= 1 }
                return left > 0
            }
            return breaks ? MockResponse.text("fine").fault(.reset, at: point) : .text("fine")
        }
    }

    private func session(_ policy: RetryPolicy) -> Session { Session { $0.retry = policy } }

    // MARK: Conditions

    @Test(arguments: [408, 429, 500, 502, 503, 504])
    func transientStatusesAreRetried(status: Int) async throws {
        let server = try server([status, status])
        let (data, head) = try await session(quick).data(for: Request(server.url("/")))
        #expect(data == Data("fine".utf8) && head.status == .ok)
        #expect(server.requestCount == 3)
    }

    @Test(arguments: [400, 401, 404, 409, 501, 505])
    func otherStatusesAreNotRetried(status: Int) async throws {
        let server = try server([status, status])
        #expect(try await session(quick).data(for: Request(server.url("/"))).1.status.code == status)
        #expect(server.requestCount == 1)
    }

    @Test func streamOfStartedTransferDeliversBeforeTheEnd() async throws {
        let gate = Gate()
        let body = PatternBody(seed: 1, length: 300_000)
        let server = try MockServer { _ in .pattern(body).fault(.stall(gate), at: .body(100_000)) }
        let transfer = session(quick).transfer(Request(server.url("/"))).start()
        _ = await server.nextRequest()
        var count = 0
        for try await chunk in transfer.bytes {
            count += chunk.count
            gate.open()
        }
        #expect(count == 300_000)
    }

    @Test func refusalWithUnreadableBodyIsRetried() async throws {
        let left = Lock(2)
        let server = try MockServer { _ in
            let count = left.withLock { left in
                defer { left -= 1 }
                return left
            }
            if count == 2 {
                return .text(String(repeating: "x", count: 1000), status: 429).fault(.reset, at: .body(10))
            }
            return count == 1 ? .text(String(repeating: "x", count: 1000), status: 503) : .text("fine")
        }
        var request = Request(.put, server.url("/"))
        request.options.responseLimit = .bytes(100)
        #expect(try await session(quick).data(for: request).0 == Data("fine".utf8))
        #expect(server.requestCount == 3)
    }

    @Test func lastResponseIsTheResult() async throws {
        let server = try server([503, 502, 500, 500])
        let (data, head) = try await session(quick).data(for: Request(server.url("/")))
        #expect(head.status == 500 && data == Data("no".utf8))
        #expect(server.requestCount == 3)
    }

    /// The method, whether it has a key, and whether 429, 503 and a lost connection are retried.
    static let methods: [(Method, Bool, Bool, Bool, Bool)] = [
        (.get, false, true, true, true), (.head, false, true, true, true), (.options, false, true, true, true),
        (.put, false, true, true, true), (.delete, false, true, true, true), (.post, false, false, false, false),
        (.patch, false, false, false, false), (.post, true, true, true, true), (.patch, true, true, true, true),
        ("PURGE", false, false, false, false),
    ]

    @Test(arguments: methods.indices) func retriesDependOnMethodAndIdempotencyKey(index: Int) async throws {
        let (method, hasKey, tooMany, unavailable, lost) = Self.methods[index]
        for (server, repeats) in [
            (try server([429]), tooMany), (try server([503]), unavailable), (try breaking(1), lost),
        ] {
            var request = Request(method, server.url("/"))
            if hasKey { request.fields[.idempotencyKey] = "\"k\"" }
            let answer = try? await session(quick).data(for: request)
            #expect(server.requestCount == (repeats ? 2 : 1), "\(method) \(hasKey)")
            #expect((answer?.1.status == .ok) == repeats)
        }
    }

    @Test func failedConnectIsRetriedWithEveryMethod() async throws {
        // No server listens on port 1; another test may start one on the port of a stopped server.
        let url = "http://127.0.0.1:1/"
        let error = try await networkError { try await session(quick).data(for: Request(.post, url)) }
        #expect(error.kind == .cannotConnect && error.attempts == 3)
        #expect(error.earlier.map(\.kind) == [.cannotConnect, .cannotConnect])
        #expect(error.detailedDescription.contains("attempts: 3"))
    }

    @Test func nothingIsRetriedWithoutAPolicy() async throws {
        let server = try server([503])
        #expect(try await Session().data(for: Request(server.url("/"))).1.status == 503)
        let broken = try breaking(1)
        let error = try await networkError { try await Session().data(for: Request(broken.url("/"))) }
        #expect(error.attempts == 1 && error.earlier.isEmpty)
        #expect(server.requestCount == 1 && broken.requestCount == 1)
    }

    @Test func requestOptionsOverrideTheSessionPolicy() async throws {
        let server = try server([503, 503, 503])
        var request = Request(server.url("/"))
        request.options = .retry(.never)
        #expect(try await session(quick).data(for: request).1.status == 503)
        request.options = .retry(quick)
        #expect(try await Session().data(for: request).1.status == .ok)
        #expect(server.requestCount == 4)
    }

    @Test func bodyIsResentOnlyIfReplayable() async throws {
        let server = try server([503])
        let body = RequestBody.stream(ChunkSource(body: PatternBody(seed: 1, length: 3000)))
        let answer = try await session(quick).data(for: Request(.put, server.url("/"), body: body))
        #expect(answer.1.status == 503 && server.requestCount == 1)
        let again = RequestBody.stream(ChunkSource(body: PatternBody(seed: 1, length: 3000)), canReplay: true)
        let second = try self.server([503])
        #expect(try await session(quick).data(for: Request(.put, second.url("/"), body: again)).1.status == .ok)
        #expect(second.requests.map(\.bodyLength) == [3000, 3000])
    }

    @Test func truncatedResponseBodyIsRetried() async throws {
        let server = try breaking(2, at: .body(2))
        #expect(try await session(quick).data(for: Request(server.url("/"))).0 == Data("fine".utf8))
        #expect(server.requestCount == 3)
        let second = try breaking(1, at: .body(2))
        #expect(try await session(quick).transfer(Request(second.url("/"))).value == Data("fine".utf8))
        #expect(second.requestCount == 2)
    }

    @Test func streamIsRetriedOnlyBeforeItsHead() async throws {
        let server = try breaking(2)
        let record = try await StreamRecord(session(quick).transfer(Request(server.url("/"))))
        #expect(record.body == Data("fine".utf8) && server.requestCount == 3)
        let late = try breaking(1, at: .body(2))
        let error = try await networkError { try await StreamRecord(session(quick).transfer(Request(late.url("/")))) }
        #expect(error.kind == .connectionLost && late.requestCount == 1)
    }

    @Test func redirectsAreFollowedAgainOnRetry() async throws {
        let count = Lock(0)
        let server = try MockServer { request in
            if request.path == "/" { return .redirect(to: "/there") }
            return count.withLock { count in
                count += 1
                return count == 1 ? .text("no", status: 503) : .text("fine")
            }
        }
        #expect(try await session(quick).data(for: Request(server.url("/"))).0 == Data("fine".utf8))
        #expect(server.requests.map(\.path) == ["/", "/there", "/", "/there"])
    }

    // MARK: Keys

    @Test func idempotencyKeyIsTheSameForAllAttempts() async throws {
        let server = try server([503, 503])
        var policy = quick
        policy.addsIdempotencyKey = true
        #expect(try await session(policy).data(for: Request(.post, server.url("/"))).1.status == .ok)
        let keys = server.requests.map { $0.field("Idempotency-Key") }
        #expect(keys.count == 3 && Set(keys).count == 1)
        let key = try #require(keys.first ?? nil)
        #expect(key.hasPrefix("\"") && UUID(uuidString: String(key.dropFirst().dropLast())) != nil)
        _ = try await session(policy).data(for: Request(.get, server.url("/")))
        #expect(server.requests.last?.field("Idempotency-Key") == nil)
    }

    // MARK: Waits and limits

    private func waits(_ policy: RetryPolicy, _ server: MockServer, chance: Double = 1) async throws -> [Duration] {
        let clock = RecordingClock()
        var request = Request(server.url("/"))
        request.interceptors = [RetryInterceptor(policy, clock: clock, chance: { chance })]
        _ = try await Session().data(for: request)
        return await clock.notes.all()
    }

    @Test func waitsFollowTheBackoff() async throws {
        let policy = RetryPolicy(limit: 4, backoff: RetryPolicy.Backoff(first: .seconds(1), longest: .seconds(5)))
        let full = try await waits(policy, server([500, 500, 500, 500]))
        #expect(full == [.seconds(1), .seconds(2), .seconds(4), .seconds(5)])
        let half = try await waits(policy, server([500, 500]), chance: 0.5)
        #expect(half == [.milliseconds(500), .seconds(1)])
    }

    @Test func retryAfterAndRateLimitAreAddedToTheWait() async throws {
        let policy = RetryPolicy(limit: 3, backoff: RetryPolicy.Backoff(first: .seconds(1)))
        #expect(try await waits(policy, server([429], [("Retry-After", "7")])) == [.seconds(8)])
        #expect(try await waits(policy, server([429], [("RateLimit", #""a";r=0;t=9"#)])) == [.seconds(10)])
        #expect(try await waits(policy, server([429], [("Retry-After", "0")])) == [.seconds(1)])
        // The wait exceeds `longestWait`, so the response is the result.
        let server = try server([429, 429], [("Retry-After", "61")])
        #expect(try await waits(policy, server) == [] && server.requestCount == 1)
    }

    @Test func retryNeverStartsAfterTheDeadline() async throws {
        let long = RetryPolicy.Backoff(first: .seconds(100), longest: .seconds(100))
        let first = try server([503, 503])
        #expect(try await waits(RetryPolicy(limit: 3, backoff: long, deadline: .seconds(50)), first) == [])
        #expect(first.requestCount == 1)
        let second = try server([503, 503])
        let clock = RecordingClock()
        var request = Request(second.url("/"))
        request.options = .timeout(.seconds(50))
        request.interceptors = [RetryInterceptor(RetryPolicy(limit: 3, backoff: long), clock: clock, chance: { 1 })]
        #expect(try await Session().data(for: request).1.status == 503)
        #expect(await clock.notes.all() == [] && second.requestCount == 1)
    }

    @Test func retryBudgetLimitsRetries() async throws {
        let server = try MockServer { _ in .text("no", status: 503) }
        let session = session(RetryPolicy(limit: 5, backoff: .none))
        for _ in 0..<20 { _ = try await session.data(for: Request(server.url("/"))) }
        // Twenty requests, ten retries of the reserve, four earned ones, and one more for each second of this test.
        #expect(server.requestCount >= 34 && server.requestCount < 60)
        let unlimited = self.session(RetryPolicy(limit: 5, backoff: .none, budget: nil))
        let before = server.requestCount
        for _ in 0..<20 { _ = try await unlimited.data(for: Request(server.url("/"))) }
        #expect(server.requestCount - before == 120)
    }

    @Test func cancelledWaitRefundsTheBudget() async throws {
        let server = try MockServer { _ in .text("no", status: 503) }
        let clock = RecordingClock(isEndless: true)
        let waiting = RetryInterceptor(.standard, clock: clock)
        var request = Request(server.url("/"))
        request.interceptors = [waiting]
        let session = Session()
        for _ in 0..<20 {
            let transfer = session.transfer(request).start()
            _ = await clock.notes.next()
            transfer.cancel()
            #expect(try await networkError { try await transfer.value }.kind == .cancelled)
        }
    }

    @Test func retryStartsAtTheOriginalURLAndCredentials() async throws {
        let count = Lock(0)
        let away = try MockServer { _ in
            count.withLock { count in
                count += 1
                return count == 1 ? .text("no", status: 503) : .text("fine")
            }
        }
        let home = try MockServer { request in
            request.field("Authorization") == "Bearer own" ? .redirect(to: away.url("/")) : .text("who?", status: 401)
        }
        let session = Session {
            $0.retry = quick
            $0.fields = [.authorization: "Bearer own"]
        }
        #expect(try await session.data(for: Request(home.url("/"))).0 == Data("fine".utf8))
        #expect(home.requestCount == 2 && away.requests.allSatisfy { $0.field("Authorization") == nil })
    }

    @Test func cancellationEndsTheRetryWait() async throws {
        let server = try server([503, 503, 503])
        let clock = RecordingClock(isEndless: true)
        var request = Request(server.url("/"))
        request.interceptors = [RetryInterceptor(.standard, clock: clock)]
        let transfer = Session().transfer(request).start()
        _ = await clock.notes.next()
        transfer.cancel()
        let error = try await networkError { try await transfer.value }
        #expect(error.kind == .cancelled && server.requestCount == 1)
    }

    @Test func sessionShutdownEndsTheRetryWait() async throws {
        let server = try server([503, 503, 503])
        let clock = RecordingClock(isEndless: true)
        var request = Request(server.url("/"))
        request.interceptors = [RetryInterceptor(.standard, clock: clock)]
        let session = Session()
        let transfer = session.transfer(request).start()
        _ = await clock.notes.next()
        try await session.shutdown(.immediate)
        let error = try await networkError { try await transfer.value }
        #expect(error.kind == .sessionClosed && error.attempts == 2 && server.requestCount == 1)
        #expect(error.earlier.first?.response?.status == 503)
    }

    // MARK: Events and configuration

    @Test func eventsReportEachWait() async throws {
        let server = try server([503, 500])
        let transfer = session(quick).transfer(Request(server.url("/")))
        let events = transfer.events
        _ = try await transfer.value
        var reported: [String] = []
        for await event in events {
            switch event.kind {
            case .waiting(let time, let error):
                reported.append("\(event.attempt) \(time) \(error.response?.status.code ?? 0)")
            case .retried: reported.append("\(event.attempt) retried")
            default: break
            }
        }
        let words = ["1 0.0 seconds 503", "1 retried", "2 0.0 seconds 500", "2 retried"]
        #expect(reported == words)
    }

    @Test func retryPolicyRoundTripsThroughJSON() throws {
        let policy = RetryPolicy(
            limit: 4, methods: [.get, .post], statuses: [.conflict], backoff: .none, longestWait: .seconds(1),
            deadline: .seconds(9), budget: nil, addsIdempotencyKey: true, waitsForConnectivity: true)
        let configuration = Session.Configuration { $0.retry = policy }
        let data = try JSONEncoder().encode(configuration)
        #expect(try JSONDecoder().decode(Session.Configuration.self, from: data) == configuration)
        let options = try JSONEncoder().encode(Request.Options.retry(policy))
        #expect(try JSONDecoder().decode(Request.Options.self, from: options).retry == policy)
        #expect(try JSONDecoder().decode(RetryPolicy.self, from: Data(#"{"limit":2}"#.utf8)) == .standard)
        for json in [#"{}"#, #"{"limit":-1}"#, #"{"limit":1,"budget":-1}"#, #"{"limit":1,"deadline":0}"#] {
            #expect(throws: DecodingError.self) { try JSONDecoder().decode(RetryPolicy.self, from: Data(json.utf8)) }
        }
    }

    @Test func invalidRetryPoliciesAreRefused() async throws {
        for policy in [
            RetryPolicy(limit: -1), RetryPolicy(limit: 1, longestWait: .seconds(-1)),
            RetryPolicy(limit: 1, backoff: RetryPolicy.Backoff(factor: 0.5)),
            RetryPolicy(limit: 1, backoff: RetryPolicy.Backoff(least: .seconds(-1))),
        ] {
            let error = try await networkError { try Session.Configuration { $0.retry = policy }.validate() }
            #expect(error.kind == .invalidRequest && error.message.contains("retry"))
            var request: Request = "http://127.0.0.1:1/"
            request.options = .retry(policy)
            let refusal = try await networkError { try await Session().data(for: request) }
            #expect(refusal.kind == .invalidRequest)
        }
    }
}
