// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewTesting
import Dispatch
import FoundationEssentials
import Testing

@testable import Curlew
@testable import CurlewEngine

/// Look-ups of names before connections, with a name service of the test.
@Suite(.timeLimit(.minutes(5)))
struct LookUpTests {
    /// Resolves every name to 127.0.0.1, except names with "bad".
    ///
    /// Names that begin with "slow", and second look-ups of names that begin with "later", wait for `open()`.
    final class NameService: Sendable {
        private let log = Lock<[String]>([])
        private let door = DispatchSemaphore(value: 0)
        let isAsked = Gate()

        func look(up name: String) -> Resolver.Outcome {
            let count = log.withLock { log in
                log.append(name)
                return log.count { $0 == name }
            }
            if name.hasPrefix("slow") || name.hasPrefix("later") && count > 1 {
                isAsked.open()
                door.wait()
                door.signal()
            }
            return name.contains("bad") ? .failure(.unknown("no such host")) : .success(["127.0.0.1"])
        }

        func open() { door.signal() }
        deinit { door.signal() }

        var asked: [String] { log.withLock { $0 } }
    }

    private let names = NameService()

    private func session(
        resolver: Resolver? = nil, clock: StubClock? = nil,
        _ configure: (inout Session.Configuration) -> Void = { _ in }
    ) -> Session {
        var configuration = Session.Configuration()
        // Blocked look-ups must not time out on a busy machine.
        configuration.timeouts.connect = .seconds(50)
        configure(&configuration)
        let resolver = resolver ?? Resolver { [names] in names.look(up: $0) }
        let loopClock = clock.map { LoopClock($0) } ?? LoopClock()
        return Session(
            core: SessionCore(configuration, trust: SystemTrust(), resolver: resolver, clock: loopClock))
    }

    @Test func nameIsLookedUpOnceForManyTransfers() async throws {
        let server = try MockServer { _ in .text("x") }
        let session = session()
        let url = "http://api.example:\(server.port)/"
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<100 { group.addTask { _ = try await session.data(for: Request(url)) } }
            try await group.waitForAll()
        }
        let response = try await session.transfer(Request(url)).response()
        #expect(response.metrics.remoteAddress == "127.0.0.1:\(server.port)")
        #expect(names.asked == ["api.example"])
        #expect(server.requests.allSatisfy { $0.field("Host") == "api.example:\(server.port)" })
    }

    @Test func threeHundredNamesAreLookedUpConcurrently() async throws {
        let server = try MockServer { .text($0.field("Host") ?? "") }
        let session = session()
        let port = server.port
        let wrong = try await withThrowingTaskGroup(of: Bool.self) { group in
            for number in 0..<300 {
                group.addTask {
                    let (data, _) = try await session.data(for: Request("http://host-\(number).example:\(port)/"))
                    return String(decoding: data, as: UTF8.self) != "host-\(number).example:\(port)"
                }
            }
            return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(wrong == 0)
        #expect(names.asked.count == 300)
    }

    @Test func unknownNameFailsWithCannotResolve() async throws {
        let session = session()
        let errors = await withTaskGroup(of: NetworkError?.self) { group in
            for _ in 0..<10 {
                group.addTask {
                    await #expect(throws: NetworkError.self) {
                        _ = try await session.data(for: "http://bad.example/")
                    }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        for error in errors {
            #expect(error?.kind == .cannotResolve && error?.phase == .resolving && error?.engineCode == 6)
            #expect(error?.message.contains("bad.example") == true && error?.message.contains("no such host") == true)
            #expect(error?.retriability == .safe(after: nil))
        }
        #expect(await session.transfers.isEmpty)
    }

    /// One look-up fails all queued transfers: each admission fails at once, so recursive admission would overflow the
    /// stack.
    @Test func unknownNameFailsQueuedTransfers() async throws {
        let session = session { $0.limits.connectionsPerHost = 1 }
        let transfers = (0..<3000).map { _ in session.transfer("http://slow-bad.example/") }
        for transfer in transfers { transfer.start() }
        // A transfer that starts after the DNS response would look the name up again.
        names.open()
        for transfer in transfers {
            #expect(try await networkError { try await transfer.value }.kind == .cannotResolve)
        }
        #expect(names.asked == ["slow-bad.example"])
    }

    /// libcurl reads the addresses when a transfer begins, so it has not read those of a transfer cancelled before.
    @Test func addressesAreSetAgainIfLibcurlHasNotReadThem() async throws {
        let server = try MockServer { _ in .text("x") }
        let other = try MockServer { _ in .text("y") }
        let session = session()
        // The name is cached from now on, but libcurl keeps addresses for each port.
        _ = try await session.data(for: Request("http://api.example:\(server.port)/"))
        let url = "http://api.example:\(other.port)/"
        await Task(executorPreference: session.executor) {
            // The start and the cancellation are carried out before libcurl runs.
            session.transfer(Request(url)).start().cancel()
        }.value
        #expect(try await session.data(for: Request(url)).0 == Data("y".utf8))
        #expect(names.asked == ["api.example"])
    }

    @Test func lookUpIsSharedByTrustDomains() async throws {
        let server = try MockServer { _ in .text("x") }
        let session = session()
        for reason in ["one", "two", "three"] {
            var request = Request("http://api.example:\(server.port)/")
            request.trust = InsecureTrust(reason: reason)
            _ = try await session.data(for: request)
        }
        #expect(names.asked == ["api.example"])
    }

    /// A crawler may look up many names whose name servers do not respond.
    @Test func stuckLookUpsDoNotBlockOtherSessions() async throws {
        let server = try MockServer { _ in .text("x") }
        let resolver = Resolver { [names] in names.look(up: $0) }
        let crawler = session(resolver: resolver)
        let stuck = (0..<64).map { crawler.transfer(Request("http://slow-\($0).example/")).start() }
        // When this returns, the loop has started all of them.
        _ = await crawler.transfers
        await names.isAsked.wait()
        #expect(resolver.pending == 64)
        let (data, _) = try await session(resolver: resolver).data(for: Request("http://api.example:\(server.port)/"))
        #expect(data == Data("x".utf8))
        #expect(resolver.pending == 64, "they are still blocked")
        for transfer in stuck { transfer.cancel() }
        for transfer in stuck { #expect(try await networkError { try await transfer.value }.kind == .cancelled) }
        names.open()
    }

    @Test(arguments: [false, true]) func lookUpCanBeCancelled(byTask: Bool) async throws {
        let session = session()
        let transfer = session.transfer("http://slow.example/")
        let task = Task { try await transfer.value }
        await names.isAsked.wait()
        let other = session.transfer("http://slow.example/other").start()
        #expect(await session.transfers.map(\.state) == [.running, .running])
        if byTask { task.cancel() } else { transfer.cancel() }
        let error = try await networkError { try await task.value }
        #expect(error.kind == .cancelled && error.phase == .resolving)
        other.cancel()
        #expect(try await networkError { try await other.value }.phase == .resolving)
        #expect(await session.transfers.isEmpty)
        await session.finishShutdown()
    }

    @Test func lookUpForALaterRequestDoesNotKeepTheLoop() async throws {
        let server = try MockServer { _ in .text("x") }
        let clock = StubClock()
        weak var loop: EventLoop?
        do {
            let session = session(clock: clock) { $0.limits.idleConnectionLifetime = .seconds(600) }
            loop = session.core.share.loop
            let url = "http://later.example:\(server.port)/"
            _ = try await session.data(for: Request(url))
            // The addresses expire: the next request reuses the connection, and starts a look-up for the requests after
            // it.
            await session.advance(clock, by: .nanoseconds(Int64(NameCache.lifetime) + 1))
            _ = try await session.data(for: Request(url))
            await names.isAsked.wait()
            await session.finishShutdown()
        }
        while loop != nil, !Task.isCancelled { await Task.yield() }
        #expect(loop == nil)
        names.open()
    }

    @Test func timeoutsApplyDuringLookUp() async throws {
        let session = session()
        for (timeouts, name) in [
            (Timeouts(connect: .milliseconds(100)), "timeouts.connect"),
            (Timeouts(total: .milliseconds(100)), "timeouts.total"),
        ] {
            let request = Request("http://slow.example/", options: Request.Options(timeouts: timeouts))
            let errors = await withTaskGroup(of: NetworkError?.self) { group in
                for _ in 0..<5 {
                    group.addTask {
                        await #expect(throws: NetworkError.self) { _ = try await session.data(for: request) }
                    }
                }
                return await group.reduce(into: []) { $0.append($1) }
            }
            for error in errors {
                #expect(error?.kind == .timedOut && error?.phase == .resolving)
                #expect(error?.message.contains(name) == true)
            }
        }
        #expect(names.asked == ["slow.example", "slow.example"] || names.asked == ["slow.example"])
    }

    @Test func pauseDuringLookUpHolds() async throws {
        let server = try MockServer { _ in .pattern(PatternBody(seed: 1, length: 8 << 20)) }
        let session = session()
        let transfer = session.transfer(Request("http://slow.example:\(server.port)/")).start()
        await names.isAsked.wait()
        transfer.pause()
        #expect(await session.transfers.map(\.state) == [.paused])
        names.open()
        await server.waitUntil(connectionCount: 1)
        #expect(await session.transfers.map(\.state) == [.paused])
        transfer.resume()
        #expect(try await transfer.value.count == 8 << 20)
        let metrics = try #require(transfer.metrics)
        #expect(metrics.resolve > .zero)
    }

    @Test func lookUpOccupiesAConnectionSlot() async throws {
        let session = session { $0.limits.connectionsPerHost = 1 }
        let held = session.transfer("http://slow.example/").start()
        await names.isAsked.wait()
        let queued = session.transfer("http://slow.example/").start()
        #expect(await session.transfers.map(\.state) == [.running, .queued])
        queued.cancel()
        held.cancel()
        #expect(try await networkError { try await queued.value }.phase == .queued)
        #expect(try await networkError { try await held.value }.phase == .resolving)
    }
}

extension Session {
    /// Shuts the session down, which requires that no transfer is left.
    fileprivate func finishShutdown() async { try? await shutdown(.graceful(within: .seconds(30))) }
}
