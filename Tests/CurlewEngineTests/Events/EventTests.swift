// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import Testing

@testable import CurlewEngine

/// The events of a transfer and their order.
@Suite("Events", .timeLimit(.minutes(5)))
struct EventTests {
    private func run(_ transfer: EngineTransfer) async -> [String] {
        let diary = EventRecorder()
        transfer.watch(diary)
        transfer.start()
        _ = await transfer.waitForEndUncancelled()
        #expect(diary.entries.allSatisfy { $0.transfer == transfer.id })
        #expect(diary.entries.map(\.at) == diary.entries.map(\.at).sorted())
        #expect(Set(diary.entries.map(\.thread)).count == 1)
        return diary.words
    }

    // MARK: Successful transfers

    @Test func eventsDescribeANewAndAReusedConnection() async throws {
        let bench = try EngineBench()
        bench.server.on("GET", "/", .text("hello"))
        bench.server.on("POST", "/", .text("done"))
        bench.server.on("HEAD", "/", .text("hello"))
        let after = ["head 200", "received 5", "ended"]
        #expect(await run(bench.transfer("/")) == ["queued", "resolved", "connected", "sent 0"] + after)
        #expect(await run(bench.transfer("/")) == ["queued", "resolved", "connected again", "sent 0"] + after)
        let small = bench.transfer("/", method: "POST", upload: .bytes([1, 2, 3]))
        #expect(
            await run(small) == [
                "queued", "resolved", "connected again", "sent 3", "head 200", "received 4", "ended",
            ])
        let head = await run(bench.transfer("/", method: "HEAD"))
        #expect(head == ["queued", "resolved", "connected again", "sent 0", "head 200", "received 0", "ended"])
    }

    @Test func sentEventFollowsTheLastByteOfTheBody() async throws {
        let bench = try EngineBench()
        bench.server.on("PUT", "/", .text("done"))
        let bytes = [UInt8](repeating: 7, count: 100_000)
        let known = await run(bench.transfer("/", method: "PUT", upload: .bytes(bytes)))
        #expect(known == ["queued", "resolved", "connected", "sent 100000", "head 200", "received 4", "ended"])
        for length in [Int64(40_000), nil, 0] {
            let count = length ?? 40_000
            let pipe = UploadPipe(length: length, canReplay: false) { feed in
                let producer = Task {
                    for _ in 0..<(count / 10_000) { _ = await feed.push([UInt8](repeating: 1, count: 10_000)) }
                    feed.finish()
                }
                return { producer.cancel() }
            }
            let words = await run(bench.transfer("/", method: "PUT", upload: .pipe(pipe)))
            let expected = [
                "queued", "resolved", "connected again", "sent \(count)", "head 200", "received 4", "ended",
            ]
            #expect(words == expected, "\(String(describing: length))")
        }
    }

    @Test func earlyResponseOmitsTheSentEvent() async throws {
        let bench = try EngineBench()
        bench.server.on("PUT", "/", .text("no", status: 413).closing(), reading: .none)
        let pipe = UploadPipe(length: nil, canReplay: false) { feed in
            let producer = Task { while await feed.push([UInt8](repeating: 1, count: 10_000)) {} }
            return { producer.cancel() }
        }
        let words = await run(bench.transfer("/", method: "PUT", upload: .pipe(pipe)))
        #expect(words.prefix(3) == ["queued", "resolved", "connected"])
        #expect(!words.contains { $0.hasPrefix("sent") })
        #expect(words.last?.hasPrefix("ended") == true)
    }

    @Test func securedEventIsReportedForNewConnectionsOnly() async throws {
        let bench = try EngineBench.secure()
        bench.server.on("GET", "/", .text("hello"))
        let after = ["sent 0", "head 200", "received 5", "ended"]
        let first = await run(bench.transfer("/") { _ in })
        #expect(first == ["queued", "resolved", "connected", "secured TLSv1.3"] + after)
        #expect(await run(bench.transfer("/") { _ in }) == ["queued", "resolved", "connected again"] + after)
        let alone = await run(bench.transfer("/") { $0.ownsConnection = true })
        #expect(alone == ["queued", "resolved", "connected", "secured TLSv1.3 resumed"] + after)
    }

    @Test func connectedEventHasTheRemoteAddress() async throws {
        for address in [LoopbackAddress.v4, .v6] {
            let bench = try EngineBench(EngineConfiguration(), server: MockServer(address: address))
            bench.server.on("GET", "/", .text("hello"))
            let remote = Latch<String>()
            let listener = Listener { event in
                if case .connected(let address, _) = event { remote.set(address) }
            }
            let transfer = bench.transfer("/") { plan in
                plan.lead(to: plan.url, host: address == .v4 ? "127.0.0.1" : "::1")
            }
            transfer.watch(listener)
            transfer.start()
            _ = await transfer.waitForEndUncancelled()
            let host = address == .v4 ? "127.0.0.1" : "[::1]"
            #expect(remote.current == "\(host):\(bench.server.port)")
        }
    }

    @Test func informationalEventsPrecedeTheHead() async throws {
        let bench = try EngineBench()
        bench.server.on("GET", "/", .text("hello").informational(103).informational(103))
        let words = await run(bench.transfer("/"))
        #expect(
            words == [
                "queued", "resolved", "connected", "sent 0", "informational 103", "informational 103", "head 200",
                "received 5", "ended",
            ])
    }

    // MARK: Failing transfers

    @Test func connectionRefusedEndsTheEvents() async throws {
        let bench = try EngineBench()
        let port = try #require(ClosedPort())
        let transfer = bench.transfer("/") { plan in
            plan.lead(to: "http://127.0.0.1:\(port.number)/", port: port.number)
        }
        #expect(await run(transfer) == ["queued", "resolved", "ended curl 7"])
    }

    @Test func unresolvedNameEndsTheEvents() async throws {
        var configuration = EngineConfiguration()
        configuration.resolver = Resolver { _ in .failure(.unknown("unknown host")) }
        let bench = try EngineBench(configuration)
        let transfer = bench.transfer("/") { plan in
            plan.lead(to: "http://nowhere.test/", host: "nowhere.test", port: 80)
        }
        #expect(await run(transfer) == ["queued", "ended unresolved"])
    }

    @Test func interruptedResponseEndsTheEvents() async throws {
        let bench = try EngineBench()
        bench.server.on("GET", "/", .text("hello").fault(.close, at: .body(2)))
        let words = await run(bench.transfer("/"))
        #expect(words == ["queued", "resolved", "connected", "sent 0", "head 200", "ended curl 18"])
    }

    @Test func cancellationEndsIdleQueuedAndRunningTransfers() async throws {
        var configuration = EngineConfiguration()
        configuration.connectionsPerHost = 1
        let bench = try EngineBench(configuration)
        let gate = Gate()
        bench.server.on("GET", "/", .text("hello").fault(.stall(gate), at: .body(2)))
        let diary = EventRecorder()
        let (running, queued, idle) = (bench.transfer("/"), bench.transfer("/"), bench.transfer("/"))
        for transfer in [running, queued, idle] { transfer.watch(diary) }
        running.start()
        _ = await SinkRecorder(running).headed()
        queued.start()
        await bench.share.loop.round()
        for transfer in [idle, queued, running] {
            transfer.cancel()
            _ = await transfer.waitForEndUncancelled()
        }
        #expect(diary.words(of: idle) == ["ended cancelled"])
        #expect(diary.words(of: queued) == ["queued", "ended cancelled"])
        let begun = ["queued", "resolved", "connected", "sent 0", "head 200"]
        #expect(diary.words(of: running) == begun + ["ended cancelled"])
    }

    @Test func refusedAndLateTransfersReportOnlyTheirEnd() async throws {
        let bench = try EngineBench()
        let (own, all) = (EventRecorder(), EventRecorder())
        let refused = bench.transfer("/")
        bench.share.loop.watch(all)
        refused.watch(own)
        refused.refuse(EngineFailure(.closed, phase: .securing))
        #expect(own.words == ["ended closed"])
        #expect(all.words == ["ended closed"])
        await bench.share.loop.shutDown(within: nil)
        #expect(await run(bench.transfer("/")) == ["ended closed"])
        bench.share.loop.post(.stop)
        await bench.share.loop.waitUntilExited()
        #expect(await run(bench.transfer("/")) == ["ended closed"])
        #expect(all.words == ["ended closed", "ended closed", "ended closed"])
    }

    // MARK: Restarts

    @Test func retryAfterStaleConnectionReportsRestarted() async throws {
        let bench = try EngineBench()
        bench.server.on("GET", "/") { $0.ordinal == 1 ? .text("fresh") : .raw("").fault(.close, at: .start) }
        let after = ["sent 0", "head 200", "received 5", "ended"]
        #expect(await run(bench.transfer("/")) == ["queued", "resolved", "connected"] + after)
        let again = await run(bench.transfer("/"))
        #expect(
            again == ["queued", "resolved", "connected again", "sent 0", "restarted", "resolved", "connected"] + after)
    }

    @Test func nonRepeatableRequestIsNotRestarted() async throws {
        let bench = try EngineBench()
        bench.server.on("GET", "/", .text("fresh"))
        bench.server.on("POST", "/", .raw("").fault(.close, at: .start))
        _ = await run(bench.transfer("/"))
        let words = await run(bench.transfer("/", method: "POST", upload: .bytes([1])))
        #expect(words == ["queued", "resolved", "connected again", "sent 1", "ended unrepeated"])
    }

    @Test func expectationFailedRestartsOnceWithTheBody() async throws {
        let bench = try EngineBench()
        let answers = [MockResponse.text("no", status: 417).closing(), .text("done")]
        bench.server.on("PUT", "/", inOrder: answers, reading: BodyReading.whole.withoutContinue())
        let transfer = bench.transfer("/", method: "PUT", upload: .bytes([UInt8](repeating: 1, count: 70_000))) {
            plan in
            plan.expectsContinue = true
            plan.lines = HeaderLines([("Expect", "100-continue")])
            var limits = TransferLimits()
            limits.continueTimeout = 1_000_000
            plan.sharedLimits = SharedLimits(limits)
        }
        let words = await run(transfer)
        #expect(words.filter { $0 == "restarted" }.count == 1)
        let last = words.firstIndex(of: "restarted").map { Array(words[$0...]) }
        #expect(
            last == ["restarted", "resolved", "connected", "sent 70000", "head 200", "received 4", "ended"],
            "\(words)")
    }
}

/// An observer that passes each event to a closure.
final class Listener: EngineObserver {
    private let hear: @Sendable (EngineEvent) -> Void

    init(_ hear: @escaping @Sendable (EngineEvent) -> Void) { self.hear = hear }

    func didObserve(_ event: EngineEvent, of transfer: EngineTransfer, at nanoseconds: UInt64) { hear(event) }
}
