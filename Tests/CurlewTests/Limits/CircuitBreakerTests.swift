// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewEngine
import CurlewTesting
import Testing

@testable import Curlew

/// Requests that a circuit breaker refuses after earlier failures.
@Suite(.timeLimit(.minutes(5)))
struct CircuitBreakerTests {
    private let clock = StubClock()

    private func server(_ statuses: [Int]) throws -> MockServer {
        let left = Lock(statuses)
        return try MockServer { _ in
            let status = left.withLock { $0.isEmpty ? 200 : $0.removeFirst() }
            return .text("x", status: status)
        }
    }

    private func session(_ failures: Int = 2, statuses: StatusSet = CircuitBreaker.failing) -> Session {
        Session(interceptors: [
            CircuitBreaker(failures: failures, cooldown: .seconds(30), statuses: statuses, clock: clock)
        ])
    }

    @Test func circuitOpensCoolsDownAndCloses() async throws {
        let server = try server([500, 503, 502])
        let session = session()
        let request = Request(.post, server.url("/"))
        for _ in 0..<2 { _ = try await session.data(for: request) }
        clock.advance(by: .seconds(10))
        let error = try await networkError { try await session.data(for: request) }
        #expect(error.kind == .circuitOpen && error.phase == .queued && error.code == "curlew.circuit_open.queued")
        #expect(error.retriability == .safe(after: .seconds(20)) && error.exitCode == 69)
        #expect(error.message.contains("20 s") && error.hint?.contains("503") == true, "\(error)")
        #expect(server.requestCount == 2)
        clock.advance(by: .seconds(20))
        #expect(try await session.data(for: request).1.status == 502)
        #expect(try await networkError { try await session.data(for: request) }.kind == .circuitOpen)
        clock.advance(by: .seconds(30))
        for _ in 0..<3 { #expect(try await session.data(for: request).1.status == .ok) }
        #expect(server.requestCount == 6)
    }

    @Test func cancelledProbeAllowsTheNextProbe() async throws {
        let gate = Gate()
        let server = try MockServer { _ in .text("x", status: 500) }
        server.on("GET", "/slow", .text("slow").fault(.stall(gate), at: .start))
        let session = session(1)
        let request = Request(server.url("/"))
        _ = try await session.data(for: request)
        clock.advance(by: .seconds(30))
        let probe = session.transfer(Request(server.url("/slow"))).start()
        await gate.waitUntilReached()
        let refused = try await networkError { try await session.data(for: request) }
        #expect(refused.kind == .circuitOpen && refused.retryAfter == .zero)
        probe.cancel()
        #expect(try await networkError { try await probe.value }.kind == .cancelled)
        #expect(try await session.data(for: request).1.status == 500, "the next request is the probe")
        #expect(try await networkError { try await session.data(for: request) }.retryAfter == .seconds(30))
        #expect(server.requestCount == 3)
    }

    @Test func connectionFailuresOpenTheCircuit() async throws {
        // No server listens on port 1; another test may start one on the port of a stopped server.
        let url = "http://127.0.0.1:1/"
        let session = session()
        for _ in 0..<2 {
            #expect(try await networkError { try await session.data(for: Request(url)) }.kind == .cannotConnect)
        }
        let error = try await networkError { try await session.data(for: Request(url)) }
        #expect(error.kind == .circuitOpen && error.hint?.contains("cannot connect") == true)
        let breaking = try MockServer { _ in .text("x").fault(.reset, at: .start) }
        for _ in 0..<2 { _ = try? await session.data(for: Request(breaking.url("/"))) }
        #expect(try await networkError { try await session.data(for: Request(breaking.url("/"))) }.kind == .circuitOpen)
    }

    @Test func otherOutcomesDoNotOpenTheCircuit() async throws {
        let gate = Gate()
        let server = try server([429, 404, 401])
        server.on("GET", "/slow", .text("slow").fault(.stall(gate), at: .start))
        let session = session(1)
        for _ in 0..<3 { _ = try await session.data(for: Request(server.url("/"))) }
        let cancelled = session.transfer(Request(server.url("/slow"))).start()
        await gate.waitUntilReached()
        cancelled.cancel()
        _ = try? await cancelled.value
        _ = try? await session.data(for: Request(server.url("/"), fields: ["A": "\r\n"]))
        #expect(try await session.data(for: Request(server.url("/"))).1.status == .ok)
        let strict = self.session(1, statuses: [.notFound])
        let other = try self.server([500, 404])
        for _ in 0..<2 { _ = try await strict.data(for: Request(other.url("/"))) }
        #expect(try await networkError { try await strict.data(for: Request(other.url("/"))) }.kind == .circuitOpen)
    }

    static let failures: [(kind: NetworkError.Kind, phase: NetworkError.Phase, counts: Bool)] = [
        (.timedOut, .queued, false), (.timedOut, .connecting, true), (.timedOut, .waiting, true),
        (.cannotResolve, .resolving, true), (.connectionLost, .securing, true), (.streamRefused, .waiting, true),
        (.tlsFailed, .securing, false), (.untrusted, .securing, false), (.bodyFailed, .sending, false),
        (.sessionClosed, .preparing, false), (.resourceExhausted, .connecting, false),
    ]

    @Test(arguments: failures.indices) func errorKindsDecideWhetherTheCircuitOpens(_ index: Int) async throws {
        let (kind, phase, counts) = Self.failures[index]
        var request: Request = "http://127.0.0.1:1/"
        request.interceptors = [
            CircuitBreaker(failures: 1, clock: clock),
            .intercept(scope: .attempt) { _, _, _ in throw NetworkError(kind, phase: phase, "") },
        ]
        let (session, failing) = (Session(), request)
        #expect(try await networkError { try await session.data(for: failing) }.kind == kind)
        let second = try await networkError { try await session.data(for: failing) }
        #expect(second.kind == (counts ? .circuitOpen : kind))
    }

    @Test func originsHaveSeparateCircuits() async throws {
        let (bad, good) = (try server([500]), try server([]))
        let session = session(1)
        _ = try await session.data(for: Request(bad.url("/")))
        #expect(try await networkError { try await session.data(for: Request(bad.url("/"))) }.kind == .circuitOpen)
        #expect(try await session.data(for: Request(good.url("/"))).1.status == .ok)
    }

    @Test func retriesOpenTheCircuitAndEndWithIt() async throws {
        let server = try server([500, 500])
        let notes = RecordingClock()
        var request = Request(server.url("/"))
        let policy = RetryPolicy(limit: 5, backoff: .none)
        request.interceptors = [
            RetryInterceptor(policy, clock: notes), CircuitBreaker(failures: 2, cooldown: .seconds(30), clock: clock),
        ]
        let error = try await networkError { try await Session().data(for: request) }
        #expect(error.kind == .circuitOpen && error.attempts == 3 && server.requestCount == 2)
        #expect(error.earlier.map { $0.response?.status.code } == [500, 500])
        #expect(await notes.notes.all() == [], "an open circuit ends the retries at once")
    }

    @Test func invalidCircuitBreakersAreRefused() async throws {
        let server = try server([])
        for breaker: CircuitBreaker in [
            .circuitBreaker(failures: 0), .circuitBreaker(cooldown: .zero), .circuitBreaker(window: 0),
            .circuitBreaker(window: 65), .circuitBreaker(failureRate: 0), .circuitBreaker(failureRate: .nan),
        ] {
            let session = Session(interceptors: [breaker])
            let error = try await networkError { try await session.data(for: Request(server.url("/"))) }
            #expect(error.kind == .invalidRequest && error.message.contains("circuit breaker"))
        }
        #expect(server.requestCount == 0)
    }
}
