// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import Dispatch
import Glibc
import Testing

@testable import CurlewEngine

/// Look-ups without a network: the function that blocks is the test's own.
@Suite("Resolver", .timeLimit(.minutes(5)))
struct ResolverTests {
    /// A name service that answers when it is allowed to, and counts.
    final class Service: Sendable {
        struct State {
            var asked: [String] = []
            var running = 0
            var most = 0
        }

        private let awaited: Int
        private let state = Lock(State())
        private let door = DispatchSemaphore(value: 0)
        /// Set when as many look-ups are running as the test waits for.
        let isReached = Latch<Bool>()

        init(reachedWith count: Int) { awaited = count }

        func look(up name: String) -> Resolver.Answer {
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

    /// So many threads for anyone, however long look-ups take.
    private func limits(threads: Int) -> LookUpQueue.Limits {
        var limits = LookUpQueue.Limits()
        (limits.usual, limits.most, limits.kept) = (threads, threads, 0)
        (limits.share, limits.mostPerSession) = (threads, threads)
        return limits
    }

    @Test func threeHundredNamesTakeAFewThreads() async {
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

    /// Without a call in between: names that wait get threads once those before them have taken long.
    @Test func threadsAreAddedWhileLookUpsTakeLong() async {
        let service = Service(reachedWith: 24)
        var limits = LookUpQueue.Limits()
        limits.patience = 1_000_000
        let resolver = Resolver(limits: limits) { service.look(up: $0) }
        for number in 0..<40 { _ = resolver.find("name-\(number)", for: 1) { _ in } }
        _ = await service.isReached.value
        #expect(resolver.pending == 40)
        let answer = Latch<Resolver.Answer>()
        _ = resolver.find("bad.example", for: 1) { answer.set($0) }
        service.open()
        #expect(await answer.value == .failure(.unknown("no such host")))
        #expect(service.most <= 24)
    }

    @Test func oneLookUpForAllWhoAsk() async {
        let service = Service(reachedWith: 1)
        let resolver = Resolver { service.look(up: $0) }
        let latches = (0..<50).map { _ in Latch<Resolver.Answer>() }
        for latch in latches { _ = resolver.find("bad.example") { latch.set($0) } }
        _ = await service.isReached.value
        service.open()
        for latch in latches { #expect(await latch.value == .failure(.unknown("no such host"))) }
        #expect(service.asked == ["bad.example"])
    }

    @Test func whoWithdrawsIsNotTold() async {
        let service = Service(reachedWith: 1)
        let resolver = Resolver(limits: limits(threads: 1)) { service.look(up: $0) }
        let first = Latch<Resolver.Answer>()
        _ = resolver.find("first") { first.set($0) }
        _ = await service.isReached.value
        let early = resolver.find("second") { _ in Issue.record("told after it withdrew") }
        let running = resolver.find("first") { _ in Issue.record("told after it withdrew") }
        resolver.withdraw("second", early)
        resolver.withdraw("first", running)
        #expect(resolver.pending == 1)
        service.open()
        #expect(await first.value == .success(["192.0.2.1"]))
        #expect(service.asked == ["first"], "what nobody wants is not looked up")
    }

    @Test func theSystemKnowsLocalNames() async {
        let answer = Latch<Resolver.Answer>()
        _ = Resolver.system.find("localhost") { answer.set($0) }
        let addresses = try? await answer.value.get()
        #expect(addresses?.contains { $0 == "127.0.0.1" || $0 == "::1" } == true)
        let failure = Latch<Resolver.Answer>()
        _ = Resolver.system.find("nonexistent.invalid") { failure.set($0) }
        guard case .failure(.unknown(let text)) = await failure.value else {
            Issue.record("a name that cannot exist was found")
            return
        }
        #expect(!text.isEmpty)
    }

    @Test(arguments: [
        ("example.com", true), ("localhost", false), ("a.localhost", false), ("127.0.0.1", false), ("::1", false),
        ("localhost.example", true), ("x", true), ("host1", true), ("1.example", true), ("", false),
        ("localhost.", true), ("10.0.0.1.", false),
    ]) func whatNeedsLookingUp(host: String, needs: Bool) {
        #expect(NameCache.needsLookUp(host) == needs)
    }

    @Test func withoutAThreadEveryoneIsTold() async {
        let second = Latch<Resolver.Answer>()
        let inner = Lock<Resolver?>(nil)
        let starts = Lock(0)
        let resolver = Resolver(limits: limits(threads: 2)) { _ in
            // Somebody asks while the first thread is being made, and gets none either.
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
        let first = Latch<Resolver.Answer>()
        _ = resolver.find("first") { first.set($0) }
        #expect(await first.value == .failure(.noThread(errno: EAGAIN)))
        #expect(await second.value == .failure(.noThread(errno: EAGAIN)))
        #expect(resolver.pending == 0)
        inner.withLock { $0 = nil }
    }
}
