// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// The end of sessions, by `shutdown` and by release.
@Suite(.timeLimit(.minutes(5)))
struct ShutdownTests {
    private func stallingServer(_ gate: Gate, at point: MockResponse.Point = .start) throws -> MockServer {
        try MockServer { _ in .text("finished").fault(.stall(gate), at: point) }
    }

    @Test func immediateShutdownEndsAllTransfers() async throws {
        let gate = Gate()
        let server = try stallingServer(gate)
        let session = Session { $0.limits.transfersPerHost = 1 }
        let running = session.transfer(Request(server.url("/"))).start()
        await gate.waitUntilReached()
        let queued = session.transfer(Request(server.url("/"))).start()
        let paused = session.transfer(Request(server.url("/")))
        paused.pause()
        paused.start()
        let idle = session.transfer(Request(server.url("/")))
        #expect(await session.transfers.count == 3)

        try await session.shutdown(.immediate)
        let phases: [(Transfer<Data>, NetworkError.Phase)] = [
            (running, .waiting), (queued, .queued), (paused, .queued),
        ]
        for (transfer, phase) in phases {
            #expect(transfer.state == .finished)
            let error = try await networkError { try await transfer.value }
            #expect(error.kind == .sessionClosed && error.phase == phase)
            #expect(!error.isCancellation && error.exitCode == 70)
        }
        #expect(try await networkError { try await idle.value }.kind == .sessionClosed)
        await server.waitUntil(openConnections: 0)
        #expect(!gate.isOpen && server.requestCount == 1)
        #expect(await session.transfers.isEmpty)
    }

    @Test func gracefulShutdownFinishesTransfersAndRefusesNewOnes() async throws {
        let gate = Gate()
        let server = try stallingServer(gate, at: .body(3))
        let session = Session { $0.limits.transfersPerHost = 1 }
        let running = session.transfer(Request(server.url("/"))).start()
        let queued = session.transfer(Request(server.url("/"))).start()
        await gate.waitUntilReached()
        async let end: Void = session.shutdown(.graceful(within: .seconds(50)))
        // New transfers are refused once the shutdown has begun; before that they are queued.
        var refusal: NetworkError?
        while refusal == nil {
            let late = session.transfer(Request(server.url("/"))).start()
            _ = await session.transfers
            if late.state == .finished {
                refusal = try await networkError { try await late.value }
            } else {
                late.cancel()
            }
        }
        #expect(refusal?.kind == .sessionClosed && refusal?.phase == .preparing)
        #expect(running.state == .running && queued.state == .queued)
        gate.open()
        try await end
        #expect(try await running.value == Data("finished".utf8))
        #expect(try await queued.value == Data("finished".utf8))
        await server.waitUntil(openConnections: 0)
        #expect(try await networkError { try await session.data(for: Request(server.url("/"))) }.kind == .sessionClosed)
    }

    @Test func gracefulShutdownHasADeadline() async throws {
        let gate = Gate()
        let server = try stallingServer(gate)
        let session = Session()
        let transfer = session.transfer(Request(server.url("/"))).start()
        await gate.waitUntilReached()
        let clock = ContinuousClock.now
        try await session.shutdown(.graceful(within: .milliseconds(100)))
        #expect(clock.duration(to: .now) >= .milliseconds(100))
        let error = try await networkError { try await transfer.value }
        #expect(error.kind == .sessionClosed && error.phase == .waiting)
        await server.waitUntil(openConnections: 0)
        #expect(!gate.isOpen)
    }

    /// Waiters of many transfers that end at once are resumed together, unless their task has its own executor.
    @Test(arguments: [false, true]) func immediateShutdownResumesAllWaiters(onExecutor: Bool) async throws {
        let gate = Gate()
        let server = try stallingServer(gate)
        let session = Session()
        let request = Request(server.url("/"))
        let tasks = (0..<40).map { _ in
            Task(executorPreference: onExecutor ? session.executor : nil) { try await session.data(for: request) }
        }
        await gate.waitUntilReached(times: 40)
        try await session.shutdown(.immediate)
        for task in tasks { #expect(try await networkError { try await task.value }.kind == .sessionClosed) }
    }

    @Test func immediateShutdownOverridesGracefulShutdown() async throws {
        let gate = Gate()
        let server = try stallingServer(gate)
        let session = Session()
        let transfer = session.transfer(Request(server.url("/"))).start()
        await gate.waitUntilReached()
        async let graceful: Void = session.shutdown(.graceful(within: .seconds(50)))
        try await session.shutdown(.immediate)
        try await graceful
        #expect(try await networkError { try await transfer.value }.kind == .sessionClosed)
    }

    @Test func shutdownCanBeRepeated() async throws {
        let server = try MockServer { _ in .text("x") }
        let session = Session()
        _ = try await session.data(for: Request(server.url("/")))
        try await session.shutdown()
        try await session.shutdown()
        try await session.shutdown(.immediate)
        await server.waitUntil(openConnections: 0)
        #expect(try await networkError { try await session.data(for: Request(server.url("/"))) }.kind == .sessionClosed)
    }

    @Test func unusedSessionShutsDown() async throws {
        let session = Session()
        try await session.shutdown()
        let error = try await networkError { try await session.data(for: "http://127.0.0.1:9/") }
        #expect(error.kind == .sessionClosed)
        #expect(await session.transfers.isEmpty)
    }

    @Test func sharedSessionCannotBeShutDown() async throws {
        let server = try MockServer { _ in .text("x") }
        for mode in [Session.Shutdown.immediate, .graceful(within: .seconds(1))] {
            let error = try await networkError { try await Session.shared.shutdown(mode) }
            #expect(error.kind == .invalidRequest && error.phase == .preparing)
        }
        #expect(try await Session.shared.data(for: Request(server.url("/"))).0 == Data("x".utf8))
    }

    @Test func releasedSessionClosesIdleConnections() async throws {
        let server = try MockServer { _ in .text("x") }
        func use() async throws { _ = try await Session().data(for: Request(server.url("/"))) }
        try await use()
        await server.waitUntil(openConnections: 0)
    }

    /// C-17, B-125: a session needs no shutdown.
    @Test func sessionReleasedWithoutShutdownEndsItsThread() async throws {
        let server = try MockServer { _ in .text("x") }
        weak var released: Session?
        let thread: String
        do {
            let session = Session()
            released = session
            _ = try await session.data(for: Request(server.url("/")))
            let path = Task(executorPreference: session.executor) {
                try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/thread-self")
            }
            thread = "/proc/" + (try await path.value)
            #expect(FileManager.default.fileExists(atPath: thread) && server.openConnections == 1)
        }
        await server.waitUntil(openConnections: 0)
        while FileManager.default.fileExists(atPath: thread), !Task.isCancelled { await Task.yield() }
        #expect(!FileManager.default.fileExists(atPath: thread))
        #expect(released == nil)
    }

    @Test func releasedSessionFinishesRunningTransfers() async throws {
        let gate = Gate()
        let server = try stallingServer(gate)
        func begin() -> [Transfer<Data>] {
            let session = Session()
            return (0..<3).map { _ in session.transfer(Request(server.url("/"))).start() }
        }
        let transfers = begin()
        await gate.waitUntilReached(times: 3)
        gate.open()
        for transfer in transfers { #expect(try await transfer.value == Data("finished".utf8)) }
    }

    @Test func sessionCanBeReleasedOnAnyThread() async throws {
        let server = try MockServer { _ in .text("x") }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<40 {
                group.addTask {
                    var session: Session? = Session()
                    let request = Request(server.url("/\(number)"))
                    _ = try await session?.data(for: request)
                    if number % 2 == 0, let executor = session?.executor {
                        // The last reference is released on the loop's thread.
                        await Task(executorPreference: executor) { [session] in _ = session?.description }.value
                    }
                    session = nil
                }
            }
            try await group.waitForAll()
        }
        await server.waitUntil(openConnections: 0)
        #expect(server.requestCount == 40)
    }
}
