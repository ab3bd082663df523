// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// Tokens that outlive the program, whatever happens while they are kept.
@Suite(.timeLimit(.minutes(5)))
struct TokenStoreTests {
    private struct NoLuck: Error {}

    private final class Shelf: TokenStore {
        let kept: Lock<AccessToken?>
        let loads = Lock(0)
        let fails = Lock(false)
        let failsToSave = Lock(false)

        init(_ token: AccessToken?) { kept = Lock(token) }

        func load() async throws -> AccessToken? {
            loads.withLock { $0 += 1 }
            if fails.withLock({ $0 }) { throw NoLuck() }
            return kept.withLock { $0 }
        }

        func save(_ token: AccessToken?) async throws {
            if fails.withLock({ $0 }) || failsToSave.withLock({ $0 }) { throw NoLuck() }
            kept.withLock { $0 = token }
        }
    }

    @Test func aStoreIsAskedOnceAndKeepsWhatComes() async throws {
        let scene = try TokenScene(accepting: "kept")
        let shelf = Shelf(AccessToken("kept", refreshToken: "r"))
        let auth = RefreshingAuthentication(store: shelf) { old in
            #expect(old?.refreshToken == "r")
            return scene.fetch(old)
        }
        #expect(try await scene.status(scene.request(auth)) == 200)
        #expect(scene.fetches.withLock { $0 } == 0)
        scene.accept("t1")
        #expect(try await scene.status(scene.request(auth)) == 200)
        #expect(shelf.kept.withLock { $0?.value } == "t1" && shelf.loads.withLock { $0 } == 1)
        try await auth.replace(nil)
        #expect(shelf.kept.withLock { $0 } == nil && auth.token == nil)
    }

    @Test func whatIsKeptButExpiredIsTheOldToken() async throws {
        let scene = try TokenScene(accepting: "t1")
        let shelf = Shelf(AccessToken("kept", expiresIn: .seconds(-5), refreshToken: "r"))
        let auth = RefreshingAuthentication(store: shelf) { old in
            #expect(old?.refreshToken == "r")
            return scene.fetch(old)
        }
        #expect(try await scene.status(scene.request(auth)) == 200)
    }

    @Test func whatIsKeptWinsOverTheFirstToken() async throws {
        let scene = try TokenScene(accepting: "first")
        let shelf = Shelf(nil)
        let auth = RefreshingAuthentication(AccessToken("first"), store: shelf) { scene.fetch($0) }
        #expect(auth.token?.value == "first")
        #expect(try await scene.status(scene.request(auth)) == 200)
        // It is kept from now on, and what takes its place too.
        #expect(shelf.kept.withLock { $0?.value } == "first")
        scene.accept("t1")
        #expect(try await scene.status(scene.request(auth)) == 200)
        let next = RefreshingAuthentication(AccessToken("first"), store: shelf) { scene.fetch($0) }
        #expect(try await scene.status(scene.request(next)) == 200)
        #expect(scene.fetches.withLock { $0 } == 1 && next.token?.value == "t1")
    }

    @Test func aStoreThatFailsIsHeardOfOnce() async throws {
        let scene = try TokenScene(accepting: "t1")
        let shelf = Shelf(nil)
        shelf.fails.withLock { $0 = true }
        let auth = RefreshingAuthentication(store: shelf) { scene.fetch($0) }
        let error = try await networkError { try await scene.status(scene.request(auth)) }
        #expect(error.kind == .authenticationFailed && error.cause is NoLuck)
        #expect(scene.fetches.withLock { $0 } == 0)
        let full = Shelf(AccessToken("old"))
        full.failsToSave.withLock { $0 = true }
        let broken = RefreshingAuthentication(store: full) { scene.fetch($0) }
        let second = try await networkError { try await scene.status(scene.request(broken)) }
        #expect(second.cause is NoLuck && second.message.contains("store"))
        #expect(broken.token?.value == "t1")
        #expect(try await scene.status(scene.request(broken)) == 200)
    }

    // MARK: Failures and races

    @Test func aFailedFetchLosesNothing() async throws {
        let scene = try TokenScene(accepting: "t1")
        let shelf = Shelf(AccessToken("kept", expiresIn: .seconds(-5), refreshToken: "r"))
        let tries = Lock(0)
        let auth = RefreshingAuthentication(store: shelf) { old in
            #expect(old?.refreshToken == "r")
            let count = tries.withLock { count in
                count += 1
                return count
            }
            if count == 1 { throw NoLuck() }
            return scene.fetch(old)
        }
        let error = try await networkError { try await scene.status(scene.request(auth)) }
        #expect(error.cause is NoLuck && auth.token?.refreshToken == "r")
        #expect(try await scene.status(scene.request(auth)) == 200)
        #expect(shelf.loads.withLock { $0 } == 1 && auth.token?.value == "t1")
    }

    /// A store whose calls stop where the test wants.
    private final class Desk: TokenStore {
        let kept = Lock<AccessToken?>(nil)
        let saving = Lock<(gate: Gate, value: String)?>(nil)
        let arrival = Gate()
        private let busy = Lock(false)

        func load() async throws -> AccessToken? { try await alone { self.kept.withLock { $0 } } }

        func save(_ token: AccessToken?) async throws {
            try await alone {
                if let (gate, value) = self.saving.withLock({ $0 }), token?.value == value {
                    self.arrival.open()
                    await gate.wait()
                }
                try Task.checkCancellation()
                self.kept.withLock { $0 = token }
            }
        }

        private func alone<Value>(_ body: () async throws -> Value) async throws -> Value {
            let isAlone = busy.withLock { busy in
                defer { busy = true }
                return !busy
            }
            #expect(isAlone, "one call at a time")
            defer { busy.withLock { $0 = false } }
            return try await body()
        }
    }

    @Test func aTokenPutInByHandIsTheOneKept() async throws {
        let (desk, gate) = (Desk(), Gate())
        desk.saving.withLock { $0 = (gate, "fetched") }
        let source = TokenSource(nil, store: desk, settings: .init()) { _ in AccessToken("fetched") }
        let waiter = Task { try await source.token() }
        await desk.arrival.wait()
        let replacing = Task { try await source.replace(AccessToken("mine")) }
        #expect(try await waiter.value.token.value == "mine")
        gate.open()
        try await replacing.value
        #expect(desk.kept.withLock { $0?.value } == "mine" && source.current?.value == "mine")
    }

    @Test func aTokenPutInByHandDuringAFetchIsTheOneKept() async throws {
        let (desk, gate, arrival) = (Desk(), Gate(), Gate())
        let source = TokenSource(nil, store: desk, settings: .init()) { _ in
            arrival.open()
            _ = await Task { await gate.wait() }.value
            return AccessToken("fetched")
        }
        let waiter = Task { try await source.token() }
        await arrival.wait()
        try await source.replace(AccessToken("mine"))
        #expect(try await waiter.value.token.value == "mine")
        gate.open()
        // When the fetch is over another can begin.
        await until { !source.isFlying }
        #expect(desk.kept.withLock { $0?.value } == "mine" && source.current?.value == "mine")
    }

    @Test func whoLogsOutWhileTheStoreIsAskedIsLoggedOut() async throws {
        let (desk, gate) = (Desk(), Gate())
        desk.saving.withLock { $0 = (gate, "first") }
        let source = TokenSource(AccessToken("first"), store: desk, settings: .init()) { _ in throw NoLuck() }
        let waiter = Task { try await source.token() }
        await desk.arrival.wait()
        let replacing = Task { try await source.replace(nil) }
        await #expect(throws: TokenFailure.self) { _ = try await waiter.value }
        gate.open()
        try await replacing.value
        #expect(desk.kept.withLock { $0 } == nil && source.current == nil)
    }

    @Test func theLastOfManyReplacementsIsKept() async throws {
        let desk = Desk()
        let source = TokenSource(nil, store: desk, settings: .init()) { _ in throw NoLuck() }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<50 {
                group.addTask { try await source.replace(number % 5 == 0 ? nil : AccessToken("\(number)")) }
            }
            try await group.waitForAll()
        }
        #expect(desk.kept.withLock { $0 } == source.current)
    }

    @Test func whatComesLateIsKeptAllTheSame() async throws {
        let (desk, gate, arrival, clock) = (Desk(), Gate(), Gate(), HandClock())
        let settings = RefreshingAuthentication.Settings(timeout: .seconds(5), clock: clock)
        let source = TokenSource(nil, store: desk, settings: settings) { _ in
            arrival.open()
            // The closure does not hear of its cancellation.
            _ = await Task { await gate.wait() }.value
            return AccessToken("late", refreshToken: "the only one")
        }
        let waiter = Task { try await source.token() }
        await arrival.wait()
        await passTime(clock, whileFlying: source)
        await #expect(throws: TokenFailure.self) { _ = try await waiter.value }
        gate.open()
        await until { desk.kept.withLock { $0 } != nil }
        #expect(desk.kept.withLock { $0?.refreshToken } == "the only one")
        #expect(try await source.token().token.value == "late")
    }

    @Test func aStoreThatHangsHoldsNobodyForEver() async throws {
        let (desk, gate, clock) = (Desk(), Gate(), HandClock())
        desk.saving.withLock { $0 = (gate, "fetched") }
        let settings = RefreshingAuthentication.Settings(timeout: .seconds(5), clock: clock)
        let source = TokenSource(nil, store: desk, settings: settings) { _ in AccessToken("fetched") }
        let waiter = Task { try await source.token() }
        await desk.arrival.wait()
        await passTime(clock, whileFlying: source)
        let outcome = await waiter.result
        guard case .failure(let error) = outcome, case .storeTooSlow? = error as? TokenFailure else {
            return #expect(Bool(false), "\(outcome)")
        }
        // The token is there all the same, and kept as soon as that can be.
        #expect(try await source.token().token.value == "fetched")
        gate.open()
        await until { desk.kept.withLock { $0?.value } == "fetched" }
    }

    private func passTime(_ clock: HandClock, whileFlying source: TokenSource) async {
        await until {
            clock.advance(by: .seconds(5))
            return !source.isFlying
        }
    }

    /// Ends with the test's time, too.
    private func until(_ condition: () -> Bool) async {
        while !condition(), !Task.isCancelled { await Task.yield() }
    }
}
