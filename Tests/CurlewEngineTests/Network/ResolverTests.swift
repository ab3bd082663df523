// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import Dispatch
import Glibc
import Testing

@testable import CurlewEngine

/// Look-ups without a network: each test supplies the blocking function.
@Suite("Resolver", .timeLimit(.minutes(5)))
struct ResolverTests {
    /// A name service that blocks until it is opened, and counts its look-ups.
    final class Service: Sendable {
        struct State {
            var asked: [String] = []
            var running = 0
            var most = 0
        }

        private let awaited: Int
        private let state = Lock(State())
        private let door = DispatchSemaphore(value: 0)
        /// Set when the awaited number of look-ups is running.
        let isReached = Latch<Bool>()

        init(reachedWith count: Int) { awaited = count }

        func look(up name: String) -> Resolver.Outcome {
            let running = state.withLock { state in
                state.asked.append(name)
                state.running += 1
                state.most = max(state.most, state.running)
                return state.running
            }
            if running == awaited { isReached.set(true) }
            door.wait()
            door.signal()
            state.withLock { $0.running -= 1 }
            return name.hasPrefix("bad") ? .failure(.unknown("no such host")) : .success(["192.0.2.1"])
        }

        func open() { door.signal() }

        var asked: [String] { state.withLock { $0.asked } }
        var most: Int { state.withLock { $0.most } }
    }

    /// Limits that allow every session the given number of threads, regardless of slow look-ups.
    private func limits(threads: Int) -> LookUpQueue.Limits {
        var limits = LookUpQueue.Limits()
        (limits.fast, limits.maximum, limits.reserved) = (threads, threads, 0)
        (limits.fastPerSession, limits.maximumPerSession) = (threads, threads)
        return limits
    }

    @Test func manyLookUpsUseALimitedNumberOfThreads() async {
        let service = Service(reachedWith: 16)
        let resolver = Resolver(limits: limits(threads: 16)) { service.look(up: $0) }
        let answers = Latch<Int>()
        let count = Lock(0)
        for number in 0..<300 {
            _ = resolver.find("name-\(number)") { answer in
                #expect(answer == .success(["192.0.2.1"]))
                let isLast = count.withLock { count in
                    count += 1
                    return count == 300
                }
                if isLast { answers.set(300) }
            }
        }
        _ = await service.isReached.value
        #expect(resolver.pending == 300)
        #expect(Set(service.asked) == Set((0..<16).map { "name-\($0)" }))
        service.open()
        #expect(await answers.value == 300)
        #expect(service.most == 16)
        #expect(resolver.pending == 0)
    }

    /// Waiting names get threads when earlier look-ups become slow, without another call to `find`.
    @Test func slowLookUpsAddThreads() async {
        let service = Service(reachedWith: 24)
        var limits = LookUpQueue.Limits()
        limits.patience = 1_000_000
        let resolver = Resolver(limits: limits) { service.look(up: $0) }
        for number in 0..<40 { _ = resolver.find("name-\(number)", for: 1) { _ in } }
        _ = await service.isReached.value
        #expect(resolver.pending == 40)
        let answer = Latch<Resolver.Outcome>()
        _ = resolver.find("bad.example", for: 1) { answer.set($0) }
        service.open()
        #expect(await answer.value == .failure(.unknown("no such host")))
        #expect(service.most <= 24)
    }

    @Test func concurrentRequestsForAHostShareALookUp() async {
        let service = Service(reachedWith: 1)
        let resolver = Resolver { service.look(up: $0) }
        let latches = (0..<50).map { _ in Latch<Resolver.Outcome>() }
        for latch in latches { _ = resolver.find("bad.example") { latch.set($0) } }
        _ = await service.isReached.value
        service.open()
        for latch in latches { #expect(await latch.value == .failure(.unknown("no such host"))) }
        #expect(service.asked == ["bad.example"])
    }

    @Test func withdrawnLookUpsAreNotReported() async {
        let service = Service(reachedWith: 1)
        let resolver = Resolver(limits: limits(threads: 1)) { service.look(up: $0) }
        let first = Latch<Resolver.Outcome>()
        _ = resolver.find("first") { first.set($0) }
        _ = await service.isReached.value
        let early = resolver.find("second") { _ in Issue.record("callback after withdrawal") }
        let running = resolver.find("first") { _ in Issue.record("callback after withdrawal") }
        resolver.withdraw("second", early)
        resolver.withdraw("first", running)
        #expect(resolver.pending == 1)
        service.open()
        #expect(await first.value == .success(["192.0.2.1"]))
        #expect(service.asked == ["first"], "the withdrawn name is not looked up")
    }

    @Test func systemResolverFindsLocalhostAndRejectsInvalidNames() async {
        let answer = Latch<Resolver.Outcome>()
        _ = Resolver.system.find("localhost") { answer.set($0) }
        let addresses = try? await answer.value.get()
        #expect(addresses?.endpoints.contains { ["127.0.0.1", "::1"].contains($0.ip) } == true)
        let failure = Latch<Resolver.Outcome>()
        _ = Resolver.system.find("nonexistent.invalid") { failure.set($0) }
        guard case .failure(.unknown(let text)) = await failure.value else {
            Issue.record("a name that cannot exist was resolved")
            return
        }
        #expect(!text.isEmpty)
    }

    @Test(arguments: [
        ("example.com", true), ("localhost", false), ("a.localhost", false), ("127.0.0.1", false), ("::1", false),
        ("localhost.example", true), ("x", true), ("host1", true), ("1.example", true), ("", false),
        ("localhost.", true), ("10.0.0.1.", false),
    ]) func addressesAndLocalhostNeedNoLookUp(host: String, needs: Bool) {
        #expect(NameCache.needsLookUp(host) == needs)
    }

    @Test func failedThreadStartFailsAllLookUps() async {
        let second = Latch<Resolver.Outcome>()
        let inner = Lock<Resolver?>(nil)
        let starts = Lock(0)
        let resolver = Resolver(limits: limits(threads: 2)) { _ in
            // The second look-up starts while the first thread is being created, and its thread fails as well.
            let isFirst = starts.withLock { starts in
                starts += 1
                return starts == 1
            }
            if isFirst { _ = inner.withLock { $0 }?.find("second") { second.set($0) } }
            return EAGAIN
        } lookUp: { _ in
            .success(["192.0.2.1"])
        }
        inner.withLock { $0 = resolver }
        let first = Latch<Resolver.Outcome>()
        _ = resolver.find("first") { first.set($0) }
        #expect(await first.value == .failure(.noThread(errno: EAGAIN)))
        #expect(await second.value == .failure(.noThread(errno: EAGAIN)))
        #expect(resolver.pending == 0)
        inner.withLock { $0 = nil }
    }
}
