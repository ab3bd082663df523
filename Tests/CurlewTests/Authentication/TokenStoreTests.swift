// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// Token stores: loading, saving, failures, and races of saving with refreshes and replacements.
@Suite(.timeLimit(.minutes(5)))
struct TokenStoreTests {
    private struct RefreshFailed: Error {}

    private final class MemoryTokenStore: TokenStore {
        let kept: Lock<AccessToken?>
        let loads = Lock(0)
        let fails = Lock(false)
        let failsToSave = Lock(false)

        init(_ token: AccessToken?) { kept = Lock(token) }

        func load() async throws -> AccessToken? {
            loads.withLock { $0 += 1 }
            if fails.withLock({ $0 }) { throw RefreshFailed() }
            return kept.withLock { $0 }
        }

        func save(_ token: AccessToken?) async throws {
            if fails.withLock({ $0 }) || failsToSave.withLock({ $0 }) { throw RefreshFailed() }
            kept.withLock { $0 = token }
        }
    }

    @Test func storeIsLoadedOnceAndSavesNewTokens() async throws {
        let scene = try TokenScene(accepting: "kept")
        let shelf = MemoryTokenStore(AccessToken("kept", refreshToken: "r"))
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

    @Test func expiredStoredTokenIsPassedToTheRefresh() async throws {
        let scene = try TokenScene(accepting: "t1")
        let shelf = MemoryTokenStore(AccessToken("kept", expiresIn: .seconds(-5), refreshToken: "r"))
        let auth = RefreshingAuthentication(store: shelf) { old in
            #expect(old?.refreshToken == "r")
            return scene.fetch(old)
        }
        #expect(try await scene.status(scene.request(auth)) == 200)
    }

    @Test func storedTokenWinsOverTheInitialToken() async throws {
        let scene = try TokenScene(accepting: "first")
        let shelf = MemoryTokenStore(nil)
        let auth = RefreshingAuthentication(AccessToken("first"), store: shelf) { scene.fetch($0) }
        #expect(auth.token?.value == "first")
        #expect(try await scene.status(scene.request(auth)) == 200)
        // The first token is saved, and so is its replacement.
        #expect(shelf.kept.withLock { $0?.value } == "first")
        scene.accept("t1")
        #expect(try await scene.status(scene.request(auth)) == 200)
        let next = RefreshingAuthentication(AccessToken("first"), store: shelf) { scene.fetch($0) }
        #expect(try await scene.status(scene.request(next)) == 200)
        #expect(scene.fetches.withLock { $0 } == 1 && next.token?.value == "t1")
    }

    @Test func storeFailuresFailTheRequest() async throws {
        let scene = try TokenScene(accepting: "t1")
        let shelf = MemoryTokenStore(nil)
        shelf.fails.withLock { $0 = true }
        let auth = RefreshingAuthentication(store: shelf) { scene.fetch($0) }
        let error = try await networkError { try await scene.status(scene.request(auth)) }
        #expect(error.kind == .authenticationFailed && error.cause is RefreshFailed)
        #expect(scene.fetches.withLock { $0 } == 0)
        let full = MemoryTokenStore(AccessToken("old"))
        full.failsToSave.withLock { $0 = true }
        let broken = RefreshingAuthentication(store: full) { scene.fetch($0) }
        let second = try await networkError { try await scene.status(scene.request(broken)) }
        #expect(second.cause is RefreshFailed && second.message.contains("store"))
        #expect(broken.token?.value == "t1")
        #expect(try await scene.status(scene.request(broken)) == 200)
    }

    // MARK: Failures and races

    @Test func failedRefreshKeepsTheStoredToken() async throws {
        let scene = try TokenScene(accepting: "t1")
        let shelf = MemoryTokenStore(AccessToken("kept", expiresIn: .seconds(-5), refreshToken: "r"))
        let tries = Lock(0)
        let auth = RefreshingAuthentication(store: shelf) { old in
            #expect(old?.refreshToken == "r")
            let count = tries.withLock { count in
                count += 1
                return count
            }
            if count == 1 { throw RefreshFailed() }
            return scene.fetch(old)
        }
        let error = try await networkError { try await scene.status(scene.request(auth)) }
        #expect(error.cause is RefreshFailed && auth.token?.refreshToken == "r")
        #expect(try await scene.status(scene.request(auth)) == 200)
        #expect(shelf.loads.withLock { $0 } == 1 && auth.token?.value == "t1")
    }

    /// A store that stops while it saves a certain token, until the test opens a gate.
    private final class BlockingTokenStore: TokenStore {
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
            #expect(isAlone, "calls of the store must not overlap")
            defer { busy.withLock { $0 = false } }
            return try await body()
        }
    }

    @Test func replacedTokenIsSavedAfterARefreshedOne() async throws {
        let (desk, gate) = (BlockingTokenStore(), Gate())
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

    @Test func tokenReplacedDuringARefreshIsSaved() async throws {
        let (desk, gate, arrival) = (BlockingTokenStore(), Gate(), Gate())
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
        // The stale refresh ends without effect.
        await until { !source.isRefreshing }
        #expect(desk.kept.withLock { $0?.value } == "mine" && source.current?.value == "mine")
    }

    @Test func logoutDuringASaveRemovesTheToken() async throws {
        let (desk, gate) = (BlockingTokenStore(), Gate())
        desk.saving.withLock { $0 = (gate, "first") }
        let source = TokenSource(AccessToken("first"), store: desk, settings: .init()) { _ in throw RefreshFailed() }
        let waiter = Task { try await source.token() }
        await desk.arrival.wait()
        let replacing = Task { try await source.replace(nil) }
        await #expect(throws: TokenFailure.self) { _ = try await waiter.value }
        gate.open()
        try await replacing.value
        #expect(desk.kept.withLock { $0 } == nil && source.current == nil)
    }

    @Test func lastOfConcurrentReplacementsIsSaved() async throws {
        let desk = BlockingTokenStore()
        let source = TokenSource(nil, store: desk, settings: .init()) { _ in throw RefreshFailed() }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<50 {
                group.addTask { try await source.replace(number % 5 == 0 ? nil : AccessToken("\(number)")) }
            }
            try await group.waitForAll()
        }
        #expect(desk.kept.withLock { $0 } == source.current)
    }

    @Test func lateTokenIsSaved() async throws {
        let (desk, gate, arrival, clock) = (BlockingTokenStore(), Gate(), Gate(), StubClock())
        let settings = RefreshingAuthentication.Settings(timeout: .seconds(5), clock: clock)
        let source = TokenSource(nil, store: desk, settings: settings) { _ in
            arrival.open()
            // The closure ignores its cancellation.
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

    @Test func hangingStoreFailsWaitersAfterTheTimeout() async throws {
        let (desk, gate, clock) = (BlockingTokenStore(), Gate(), StubClock())
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
        // The token is used nevertheless, and saved when the store continues.
        #expect(try await source.token().token.value == "fetched")
        gate.open()
        await until { desk.kept.withLock { $0?.value } == "fetched" }
    }

    private func passTime(_ clock: StubClock, whileFlying source: TokenSource) async {
        await until {
            clock.advance(by: .seconds(5))
            return !source.isRefreshing
        }
    }

    /// Waits for the condition, or until the test's time limit cancels the task.
    private func until(_ condition: () -> Bool) async {
        while !condition(), !Task.isCancelled { await Task.yield() }
    }
}
