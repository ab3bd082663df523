// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine
import CurlewSupport
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// The waits of a session's transfers, in the time of a stub.
@Suite(.timeLimit(.minutes(5)))
struct SessionClockTests {
    private let clock = StubClock()

    @Test func retriesWaitByTheClock() async throws {
        let left = Lock(2)
        let server = try MockServer { _ in
            let isBusy = left.withLock { left in
                defer { left -= 1 }
                return left > 0
            }
            return isBusy ? .text("no", status: 503).field("Retry-After", "50") : .text("fine")
        }
        let session = Session(clock: clock) { $0.retry = RetryPolicy(limit: 2, backoff: .none) }
        let transfer = session.transfer(Request(server.url("/"))).start()
        for count in 1...2 {
            await clock.waitUntil(sleepers: 1)
            #expect(server.requestCount == count)
            await session.advance(clock, by: .seconds(49))
            #expect(transfer.state != .finished && server.requestCount == count)
            await session.advance(clock, by: .seconds(1))
        }
        #expect(try await transfer.value == Data("fine".utf8))
        #expect(server.requestCount == 3)
    }

    /// A redirect whose body does not end delays the next request by one second at most.
    @Test func discardedBodyIsBrokenOffByTheClock() async throws {
        let gate = Gate()
        let server = try MockServer { request in
            if request.path == "/next" { return .text("fine") }
            return .status(302, [("Location", "/next")], body: Array(repeating: 7, count: 1000))
                .fault(.stall(gate), at: .body(10))
        }
        let session = Session(clock: clock)
        let transfer = session.transfer(Request(server.url("/"))).start()
        await clock.waitUntil(sleepers: 1)
        await session.advance(clock, by: .milliseconds(999))
        #expect(server.requestCount == 1)
        await session.advance(clock, by: .milliseconds(1))
        #expect(try await transfer.value == Data("fine".utf8))
        #expect(!gate.isOpen)
    }

    @Test func gracefulShutdownHasItsLimitByTheClock() async throws {
        let gate = Gate()
        let server = try MockServer { _ in .text("x").fault(.stall(gate), at: .start) }
        let session = Session(clock: clock)
        let transfer = session.transfer(Request(server.url("/"))).start()
        await gate.waitUntilReached()
        let closed = Task { try await session.shutdown(.graceful(within: .seconds(30))) }
        let loop = session.core.share.loop
        while loop.hold() != nil { await Task.yield() }
        await session.advance(clock, by: .seconds(29))
        #expect(transfer.state == .running)
        await session.advance(clock, by: .seconds(1))
        try await closed.value
        let error = try await networkError { try await transfer.value }
        #expect(error.kind == .sessionClosed && error.phase == .waiting)
        await server.waitUntil(openConnections: 0)
    }
}
