// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import FoundationEssentials
internal import CurlewSupport

/// Provides tokens to requests, and fetches a new token once for all of them: ``TokenMachine`` with tasks and time.
final class TokenSource: Sendable {
    /// Fetches a token in place of the given one, which is nil when there is no old token.
    typealias Fetch = @Sendable (AccessToken?) async throws -> AccessToken
    private typealias Waiting = UnsafeContinuation<Result<TokenMachine.Held, any Error>, Never>

    private struct State {
        var machine: TokenMachine
        var waiting: [UInt64: Waiting] = [:]
        var sequenceNumbers: UInt64 = 0
        var hasLoaded: Bool
        /// The token that the store had but that is not usable any more, kept until another token replaces it.
        var kept: AccessToken?
        /// The call of the closure that the current refresh waits for.
        var fetch: Task<AccessToken, any Error>?
        /// The reason why the last refresh failed.
        var lastFailure: TokenFailure?
    }

    private let state: Lock<State>
    private let fetch: Fetch
    /// The token that is used when the store is empty.
    private let first: AccessToken?
    private let store: SerialQueue?
    private let settings: RefreshingAuthentication.Settings

    /// The sources that fetch a token in this task; requests of this task are sent without a token of those sources.
    @TaskLocal private static var fetching: Set<ObjectIdentifier> = []

    init(
        _ token: AccessToken?, store: (any TokenStore)?, settings: RefreshingAuthentication.Settings,
        fetch: @escaping Fetch
    ) {
        let machine = TokenMachine(store == nil ? token : nil, skew: settings.skew, now: settings.now())
        state = Lock(State(machine: machine, hasLoaded: store == nil))
        self.store = store.map { SerialQueue($0) }
        first = store == nil ? nil : token
        self.settings = settings
        self.fetch = fetch
    }

    /// Whether the current task fetches a token of this source.
    var isFetching: Bool { TokenSource.fetching.contains(ObjectIdentifier(self)) }

    /// The current token, usable or not.
    var current: AccessToken? { state.withLock { $0.machine.token ?? $0.kept ?? ($0.hasLoaded ? nil : first) } }

    /// Whether a token is being fetched.
    var isRefreshing: Bool { state.withLock { $0.machine.isRefreshing } }

    /// The number of requests that wait for a token.
    var waiting: Int { state.withLock { $0.machine.waiting } }

    /// A token that the server is likely to accept; nil when there is no such token now.
    var ready: TokenMachine.Held? {
        let now = settings.now()
        return state.withLock { $0.machine.ready(now) }
    }

    /// Returns a token that the server is likely to accept, and waits for it if necessary.
    ///
    /// - Throws: `TokenFailure`; `CancellationError` when the task is cancelled while it waits.
    func token() async throws -> TokenMachine.Held {
        let sequenceNumber = state.withLock { state in
            state.sequenceNumbers += 1
            return state.sequenceNumbers
        }
        return try await withTaskCancellationHandler {
            await withUnsafeContinuation { wait($0, sequenceNumber) }
        } onCancel: {
            let waiting = state.withLock { state in
                state.machine.leave(sequenceNumber) ? state.waiting.removeValue(forKey: sequenceNumber) : nil
            }
            waiting?.resume(returning: .failure(CancellationError()))
        }.get()
    }

    /// Records that the server refused a token; returns false when a new token is unlikely to help.
    func refuse(_ generation: UInt64) -> Bool {
        let now = settings.now()
        return state.withLock { $0.machine.refuse(generation, now: now) }
    }

    /// Records that a server accepted a token.
    func accept(_ generation: UInt64) { state.withLock { $0.machine.accept(generation) } }

    /// Records whether the server refused the second token of a request whose first token it had refused.
    func recordSecondResponse(_ generation: UInt64, isRefused: Bool) {
        let now = settings.now()
        state.withLock { $0.machine.recordSecondResponse(generation, isRefused: isRefused, now: now) }
    }

    /// Replaces the token; nil removes it, also for requests that wait for one.
    ///
    /// - Throws: The error that the store throws; `NetworkError` of kind `timedOut` when the store takes too long.
    func replace(_ token: AccessToken?) async throws {
        release(or: .tokenRemoved) { state, now in
            state.hasLoaded = true
            state.kept = nil
            state.fetch?.cancel()
            return state.machine.replace(token, now: now)
        }
        switch await saveCurrent() {
        case .notSaved(let error): throw error
        case .some(let failure):
            throw NetworkError(.timedOut, phase: .preparing, "The token was not saved: \(failure)", hint: failure.hint)
        case nil: break
        }
    }

    private func wait(_ waiting: Waiting, _ sequenceNumber: UInt64) {
        let now = settings.now()
        let outcome = state.withLock { state -> Result<TokenMachine.Held, any Error>? in
            // The cancellation handler of a task that was cancelled earlier has found no continuation to resume.
            if Task.isCancelled { return .failure(CancellationError()) }
            switch state.machine.ask(sequenceNumber, now: now) {
            case .use(let held): return .success(held)
            case .useAndRefresh(let held):
                startRefresh(&state)
                return .success(held)
            case .fail: return .failure(TokenFailure.tooSlow(settings.timeout))
            case .pause(let left): return .failure(TokenFailure.paused(left, after: state.lastFailure))
            case .waitAndRefresh: startRefresh(&state)
            case .wait: break
            }
            state.waiting[sequenceNumber] = waiting
            return nil
        }
        if let outcome { waiting.resume(returning: outcome) }
    }

    // MARK: Refreshes

    /// Starts a refresh in a task of its own, so that cancelling a waiting request does not cancel the refresh.
    private func startRefresh(_ state: inout State) {
        let (old, generation) = (state.machine.token ?? state.kept, state.machine.generation)
        let loads = !state.hasLoaded
        Task {
            await TokenSource.$fetching.withValue(TokenSource.fetching.union([ObjectIdentifier(self)])) {
                await runRefresh(from: old, generation, loads: loads)
            }
        }
    }

    private func runRefresh(from old: AccessToken?, _ generation: UInt64, loads: Bool) async {
        do {
            let (kept, serves) = try await loads ? load() : (old, false)
            if serves, let kept { return finishRefresh(kept) }
            // The token may have been replaced or removed while the store was loading.
            guard isAwaited else { throw CancellationError() }
            let token = try await fetched(kept, generation)
            // Save the token before the waiters continue: it may be the only one that can fetch another token.
            finishRefresh(token, failing: await save(token, generation))
        } catch {
            let failure = error as? TokenFailure ?? .notFetched(error)
            release(or: failure) { state, now in
                state.fetch = nil
                state.lastFailure = failure
                return state.machine.failRefresh(now: now)
            }
        }
    }

    /// Returns the token that the closure fetches.
    ///
    /// After the timeout, the waiters fail and the closure's task is cancelled. After the same time again, the refresh
    /// fails, though the closure may still run.
    private func fetched(_ old: AccessToken?, _ generation: UInt64) async throws -> AccessToken {
        let task = Task { try await fetch(old) }
        state.withLock { $0.fetch = task }
        // The token may have been replaced in between.
        if !isAwaited { task.cancel() }
        if let token = try await withTimeout({ try await task.value }) { return token }
        task.cancel()
        release(or: .tooSlow(settings.timeout)) { state, now in state.machine.markOverdue(now: now) }
        if let token = try await withTimeout({ try await task.value }) { return token }
        // The closure may still return the only token that can fetch another one.
        Task {
            guard let token = try? await task.value else { return }
            release(or: .tokenRemoved) { state, now in
                guard state.machine.generation == generation else { return TokenMachine.Release() }
                state.kept = nil
                return state.machine.replace(token, now: now)
            }
            _ = await saveCurrent()
        }
        throw TokenFailure.tooSlow(settings.timeout)
    }

    /// Returns the value of an operation; nil when the operation takes longer than the timeout, and continues.
    private func withTimeout<Value: Sendable>(
        _ operation: @escaping @Sendable () async throws -> Value
    ) async throws -> Value? {
        let (clock, timeout) = (settings.clock, settings.timeout)
        return try await race(operation) { () async -> Result<Value?, any Error>? in
            do { try await clock.wait(for: timeout) } catch { return nil }
            return .success(nil)
        }
    }

    /// Saves a fetched token, or the token that has replaced it by the time the store is called; returns the reason if
    /// saving fails.
    ///
    /// - Parameter generation: The generation of the token that the fetched token replaces.
    private func save(_ token: AccessToken, _ generation: UInt64) async -> TokenFailure? {
        await stored { [self] store in
            try await store.save(state.withLock { $0.machine.generation == generation ? token : $0.machine.token })
        }
    }

    /// Saves the token that is current when the store is called: another token may have replaced it by then.
    private func saveCurrent() async -> TokenFailure? {
        await stored { [self] store in try await store.save(state.withLock { $0.machine.token }) }
    }

    private func stored(_ operation: @escaping @Sendable (any TokenStore) async throws -> Void) async -> TokenFailure? {
        guard let store else { return nil }
        do {
            let isDone: Void? = try await withTimeout { try await store.use(operation) }
            return isDone == nil ? .storeTooSlow(settings.timeout) : nil
        } catch {
            return .notSaved(error)
        }
    }

    /// Loads the token of the store, and returns it and whether it is still valid.
    private func load() async throws -> (AccessToken?, serves: Bool) {
        guard let store else { return (nil, false) }
        let loaded = try await withTimeout { [self] in
            try await store.use { [self] store -> AccessToken? in
                if let kept = try await store.load() { return kept }
                if isAwaited, let first { try await store.save(first) }
                return first
            }
        }
        guard let kept = loaded else { throw TokenFailure.storeTooSlow(settings.timeout) }
        state.withLock { state in
            guard state.machine.isAwaited else { return }
            state.hasLoaded = true
            state.kept = kept
        }
        return (kept, kept.map { $0.expiry.map { settings.now() < $0 } ?? true } ?? false)
    }

    /// Whether the current refresh is still expected to bring a token.
    private var isAwaited: Bool { state.withLock { $0.machine.isAwaited } }

    private func finishRefresh(_ token: AccessToken, failing failure: TokenFailure? = nil) {
        release(or: .tokenRemoved, failing: failure) { state, now in
            if state.machine.isAwaited { state.kept = nil }
            state.fetch = nil
            state.hasLoaded = true
            return state.machine.finishRefresh(token, now: now)
        }
    }

    /// Resumes the waiters that a change releases.
    ///
    /// - Parameters:
    ///   - reason: The error of waiters when there is no token for them.
    ///   - failure: The error of all waiters, with or without a token.
    private func release(
        or reason: TokenFailure, failing failure: TokenFailure? = nil,
        _ change: (inout State, Date) -> TokenMachine.Release
    ) {
        let now = settings.now()
        let (waiting, held) = state.withLock { state in
            let release = change(&state, now)
            if release.restartsRefresh { startRefresh(&state) }
            return (release.waiters.compactMap { state.waiting.removeValue(forKey: $0) }, release.held)
        }
        let outcome: Result<TokenMachine.Held, any Error> =
            if let failure { .failure(failure) } else if let held { .success(held) } else { .failure(reason) }
        for waiter in waiting { waiter.resume(returning: outcome) }
    }
}
