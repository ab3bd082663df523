// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// A session's list of transfers, events, copies, reset and executor.
@Suite(.timeLimit(.minutes(5)))
struct SessionTests {
    @Test func transfersListsRunningAndQueuedTransfers() async throws {
        let gate = Gate()
        let server = try MockServer()
        server.on(
            "GET", "/download", .pattern(PatternBody(seed: 1, length: 5000)).fault(.stall(gate), at: .body(2000)))
        server.on("POST", "/upload", .text("x"), reading: .whole.stalling(at: gate, after: 1))
        let session = Session { $0.limits.transfersPerHost = 2 }
        let download = session.transfer(
            Request(server.url("/download"), options: Request.Options(label: "picture"))
        ).start()
        let upload = session.transfer(
            Request(.post, server.url("/upload"), body: .stream(ChunkSource(body: PatternBody(seed: 1, length: 100))))
        ).start()
        let queued = session.transfer(Request(server.url("/q"), options: Request.Options(label: "later"))).start()
        await gate.waitUntilReached(times: 2)
        await session.waitUntil(download, has: 2000, \.received)

        let transfers = await session.transfers
        #expect(transfers.map(\.id) == [download.id, upload.id, queued.id])
        #expect(transfers.map(\.id) == transfers.map(\.id).sorted())
        #expect(transfers.map(\.kind) == [.data, .upload, .data])
        #expect(transfers.map(\.state) == [.running, .running, .queued])
        #expect(transfers.map(\.label) == ["picture", nil, "later"])
        #expect(transfers.first?.progress.received == 2000)
        #expect(transfers.first?.progress.expectedToReceive == 5000)
        gate.open()
        for transfer in [download, upload, queued] { _ = try await transfer.value }
        #expect(await session.transfers.isEmpty)
        #expect(download.label == "picture" && download.request.url == server.url("/download"))
    }

    @Test func resetDropsIdleConnections() async throws {
        let server = try MockServer { _ in .text("x") }
        let session = Session()
        let request = Request(server.url("/"))
        for _ in 0..<2 { _ = try await session.data(for: request) }
        #expect(server.connectionCount == 1)
        await session.reset(.connections)
        await server.waitUntil(openConnections: 0)
        #expect(try await session.transfer(request).response().metrics.isConnectionReused == false)
        #expect(server.connectionCount == 2)
    }

    @Test func resetLetsRunningTransfersFinish() async throws {
        let gate = Gate()
        let server = try MockServer { _ in .text("x") }
        server.on("GET", "/held", .text("held").fault(.stall(gate), at: .body(1)))
        let session = Session()
        let held = session.transfer(Request(server.url("/held"))).start()
        await gate.waitUntilReached()
        await session.reset(.connections)
        await session.reset(.connections)
        _ = try await session.data(for: Request(server.url("/")))
        #expect(server.openConnections == 2)
        gate.open()
        #expect(try await held.value == Data("held".utf8))
        await server.waitUntil(openConnections: 1)
        _ = try await session.data(for: Request(server.url("/")))
        #expect(server.connectionCount == 2)
    }

    @Test func copyHasItsOwnConfigurationAndConnections() async throws {
        let server = try MockServer { _ in .text("x") }
        let session = Session { $0.fields = [.userAgent: "One"] }
        let same = session.copy { _ in }
        let other = session.copy { $0.fields[.userAgent] = "Two" }
        #expect(same.configuration == session.configuration)
        for each in [session, same, other] { _ = try await each.data(for: Request(server.url("/"))) }
        #expect(server.requests.map { $0.field("User-Agent") } == ["One", "One", "Two"])
        #expect(server.connectionCount == 3)
        try await session.shutdown(.immediate)
        _ = try await same.data(for: Request(server.url("/")))

        struct Refusal: Error {}
        #expect(throws: Refusal.self) { try session.copy { _ in throw Refusal() } }
        #expect(throws: Refusal.self) { try Session { _ in throw Refusal() } }
    }

    @Test func shutdownEmitsClosedEvent() async throws {
        let session = Session()
        let early = session.events
        try await session.shutdown()
        #expect(await early.reduce(into: []) { $0.append($1.description) } == ["closed"])
        #expect(await session.events.reduce(into: []) { $0.append($1.description) } == ["closed"])
    }

    @Test func releasedSessionEmitsClosedEvent() async {
        func makeEvents() -> AsyncStream<Session.Event> { Session().events }
        #expect(await makeEvents().reduce(into: []) { $0.append($1.description) } == ["closed"])
    }

    @Test func slowLoopTurnsAreEvents() async throws {
        let session = Session()
        let events = session.events
        await Task(executorPreference: session.executor) {
            let end = ContinuousClock.now + .milliseconds(150)
            while ContinuousClock.now < end {}
        }.value
        for await event in events {
            // Other turns may be slow on a busy machine, but shorter than this one.
            guard case .slowTurn(let duration) = event, duration >= .milliseconds(150) else { continue }
            #expect(duration < .seconds(20))
            break
        }
    }

    @Test func transfersRunOnTheSessionExecutor() async throws {
        let server = try MockServer { request in .text(request.path) }
        let session = Session()
        let results = try await withThrowingTaskGroup(of: Data.self) { group in
            for number in 0..<50 {
                group.addTask(executorPreference: session.executor) {
                    try await session.data(for: Request(server.url("/\(number)"))).0
                }
            }
            return try await group.reduce(into: Set<Data>()) { $0.insert($1) }
        }
        #expect(results == Set((0..<50).map { Data("/\($0)".utf8) }))
        let body = PatternBody(seed: 1, length: 3 << 20)
        let large = try MockServer { _ in .pattern(body) }
        let record = try await Task(executorPreference: session.executor) {
            try await StreamRecord(session.transfer(Request(large.url("/"))))
        }.value
        #expect(record.body.sha256 == body.sha256)
    }

    /// Jobs of tasks run before the sockets are served, but only a bounded number of them.
    @Test func busyExecutorTasksDoNotStarveTransfers() async throws {
        let server = try MockServer { _ in .text("x") }
        let session = Session()
        let busy = Task(executorPreference: session.executor) { while !Task.isCancelled { await Task.yield() } }
        defer { busy.cancel() }
        // With libcurl's timers alone, each request would take about a second.
        for _ in 0..<100 { #expect(try await session.data(for: Request(server.url("/"))).0 == Data("x".utf8)) }
    }

    @Test func taskOnTheSessionExecutorCanBeCancelled() async throws {
        let gate = Gate()
        let server = try MockServer { _ in .text("x").fault(.stall(gate), at: .start) }
        let session = Session()
        let task = Task(executorPreference: session.executor) { try await session.data(for: Request(server.url("/"))) }
        await gate.waitUntilReached()
        task.cancel()
        #expect(try await networkError { try await task.value }.isCancellation)
        #expect(!gate.isOpen)
    }

    @Test func descriptionContainsTheLimits() {
        #expect(Session().description == "Session(64 connections a host, 512 transfers a host)")
    }
}
