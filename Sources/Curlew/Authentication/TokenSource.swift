// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import FoundationEssentials

/// Gives tokens to those who ask, and fetches a new one for all of them together: ``TokenMachine`` with tasks and time.
final class TokenSource: Sendable {
    /// Fetches a token in the place of another, nil when there is none.
    typealias Fetch = @Sendable (AccessToken?) async throws -> AccessToken
    private typealias Waiting = UnsafeContinuation<Result<TokenMachine.Held, any Error>, Never>

    private struct State {
        var machine: TokenMachine
        var waiting: [UInt64: Waiting] = [:]
        var tickets: UInt64 = 0
        var hasLoaded: Bool
        /// What the store had but is no good any more, until something comes in its place.
        var kept: AccessToken?
        /// The closure's call that the flight in the air waits for.
        var fetch: Task<AccessToken, any Error>?
        /// Why the last one failed.
        var lastFailure: TokenFailure?
    }

    private let state: Lock<State>
    private let fetch: Fetch
    /// What stands in for a store that is empty.
    private let first: AccessToken?
    private let store: StoreLine?
    private let settings: RefreshingAuthentication.Settings

    /// The sources that fetch a token in this task, whose requests go without.
    @TaskLocal private static var fetching: Set<ObjectIdentifier> = []

    init(
        _ token: AccessToken?, store: (any TokenStore)?, settings: RefreshingAuthentication.Settings,
        fetch: @escaping Fetch
    ) {
        let machine = TokenMachine(store == nil ? token : nil, skew: settings.skew, now: settings.now())
        state = Lock(State(machine: machine, hasLoaded: store == nil))
        self.store = store.map { StoreLine($0) }
        first = store == nil ? nil : token
        self.settings = settings
        self.fetch = fetch
    }

    /// Whether the task is one that fetches a token of this source.
    var isFetching: Bool { TokenSource.fetching.contains(ObjectIdentifier(self)) }

    /// The token there is, good or not.
    var current: AccessToken? { state.withLock { $0.machine.token ?? $0.kept ?? ($0.hasLoaded ? nil : first) } }

    /// Whether a token is being got.
    var isFlying: Bool { state.withLock { $0.machine.isFlying } }

    /// How many wait for a token.
    var waiting: Int { state.withLock { $0.machine.waiting } }

    /// A token that the server is likely to take, if there is one now.
    var ready: TokenMachine.Held? {
        let now = settings.now()
        return state.withLock { $0.machine.ready(now) }
    }

    /// A token that the server is likely to take, after waiting for it if need be.
    ///
    /// - Throws: `TokenFailure`; `CancellationError` when the task is cancelled while it waits.
    func token() async throws -> TokenMachine.Held {
        let ticket = state.withLock { state in
            state.tickets += 1
            return state.tickets
        }
        return try await withTaskCancellationHandler {
            await withUnsafeContinuation { wait($0, ticket) }
        } onCancel: {
            let waiting = state.withLock { state in
                state.machine.leave(ticket) ? state.waiting.removeValue(forKey: ticket) : nil
            }
            waiting?.resume(returning: .failure(CancellationError()))
        }.get()
    }

    /// Takes note that the server refused a token; false when another one would not help, as far as one knows.
    func refuse(_ generation: UInt64) -> Bool {
        let now = settings.now()
        return state.withLock { $0.machine.refuse(generation, now: now) }
    }

    /// Takes note that a server took a token.
    func accept(_ generation: UInt64) { state.withLock { $0.machine.accept(generation) } }

    /// Takes note of what the server said to a request whose first token it had refused.
    func judge(_ generation: UInt64, isRefused: Bool) {
        let now = settings.now()
        state.withLock { $0.machine.judge(generation, isRefused: isRefused, now: now) }
    }

    /// Puts a token into the place of the one there is; nil takes it away from those who wait, too.
    ///
    /// - Throws: What the store throws.
    func replace(_ token: AccessToken?) async throws {
        release(or: .takenAway) { state, now in
            state.hasLoaded = true
            state.kept = nil
            state.fetch?.cancel()
            return state.machine.replace(token, now: now)
        }
        switch await saveCurrent() {
        case .notSaved(let error): throw error
        case .some(let failure):
            throw NetworkError(.timedOut, phase: .preparing, "The token was not kept: \(failure)", hint: failure.hint)
        case nil: break
        }
    }

    private func wait(_ waiting: Waiting, _ ticket: UInt64) {
        let now = settings.now()
        let answer = state.withLock { state -> Result<TokenMachine.Held, any Error>? in
            // Whoever was cancelled before has found nobody to wake.
            if Task.isCancelled { return .failure(CancellationError()) }
            switch state.machine.ask(ticket, now: now) {
            case .use(let held): return .success(held)
            case .useAndFly(let held):
                fly(&state)
                return .success(held)
            case .fail: return .failure(TokenFailure.tooSlow(settings.timeout))
            case .pause(let left): return .failure(TokenFailure.paused(left, after: state.lastFailure))
            case .waitAndFly: fly(&state)
            case .wait: break
            }
            state.waiting[ticket] = waiting
            return nil
        }
        if let answer { waiting.resume(returning: answer) }
    }

    // MARK: Flights

    /// Begins a flight in a task of its own, which nobody who waits can cancel.
    private func fly(_ state: inout State) {
        let (old, generation) = (state.machine.token ?? state.kept, state.machine.generation)
        let loads = !state.hasLoaded
        Task {
            await TokenSource.$fetching.withValue(TokenSource.fetching.union([ObjectIdentifier(self)])) {
                await fly(from: old, generation, loads: loads)
            }
        }
    }

    private func fly(from old: AccessToken?, _ generation: UInt64, loads: Bool) async {
        do {
            let (kept, serves) = try await loads ? load() : (old, false)
            if serves, let kept { return land(kept) }
            // Somebody logged out, or in, while the store was asked.
            guard isAwaited else { throw CancellationError() }
            let token = try await fetched(kept, generation)
            // Before anybody goes on: it may be the only one that another can be got with.
            land(token, failing: await save(token, generation))
        } catch {
            let failure = error as? TokenFailure ?? .notFetched(error)
            release(or: failure) { state, now in
                state.fetch = nil
                state.lastFailure = failure
                return state.machine.crash(now: now)
            }
        }
    }

    /// What the closure brings; whoever waits for it is told when it is late, and nobody when it is very late.
    private func fetched(_ old: AccessToken?, _ generation: UInt64) async throws -> AccessToken {
        let task = Task { try await fetch(old) }
        state.withLock { $0.fetch = task }
        // It may have been replaced in between.
        if !isAwaited { task.cancel() }
        if let token = try await inTime({ try await task.value }) { return token }
        task.cancel()
        release(or: .tooSlow(settings.timeout)) { state, now in state.machine.isLate(now: now) }
        if let token = try await inTime({ try await task.value }) { return token }
        // It may still bring the only token that another can be got with.
        Task {
            guard let token = try? await task.value else { return }
            release(or: .takenAway) { state, now in
                guard state.machine.generation == generation else { return TokenMachine.Release() }
                state.kept = nil
                return state.machine.replace(token, now: now)
            }
            _ = await saveCurrent()
        }
        throw TokenFailure.tooSlow(settings.timeout)
    }

    /// What an operation gives; nil when it takes longer than anybody waits, and goes on.
    private func inTime<Value: Sendable>(
        _ operation: @escaping @Sendable () async throws -> Value
    ) async throws -> Value? {
        let (clock, timeout) = (settings.clock, settings.timeout)
        return try await Abandonment<Value?>.value(operation) {
            do { try await clock.wait(for: timeout) } catch { return nil }
            return .success(nil)
        }
    }

    /// Keeps a token that was fetched, or what was put into its place by the time it is the store's turn; why it was not kept.
    ///
    /// - Parameter generation: Of the token that it replaces.
    private func save(_ token: AccessToken, _ generation: UInt64) async -> TokenFailure? {
        await stored { [self] store in
            try await store.save(state.withLock { $0.machine.generation == generation ? token : $0.machine.token })
        }
    }

    /// Keeps the token there is when it is the store's turn: another may have been put into its place.
    private func saveCurrent() async -> TokenFailure? {
        await stored { [self] store in try await store.save(state.withLock { $0.machine.token }) }
    }

    private func stored(_ operation: @escaping @Sendable (any TokenStore) async throws -> Void) async -> TokenFailure? {
        guard let store else { return nil }
        do {
            let isDone: Void? = try await inTime { try await store.use(operation) }
            return isDone == nil ? .storeTooSlow(settings.timeout) : nil
        } catch {
            return .notSaved(error)
        }
    }

    /// What the store has, and whether it will do.
    private func load() async throws -> (AccessToken?, serves: Bool) {
        guard let store else { return (nil, false) }
        let loaded = try await inTime { [self] in
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

    /// Whether the flight in the air is still to bring a token.
    private var isAwaited: Bool { state.withLock { $0.machine.isAwaited } }

    private func land(_ token: AccessToken, failing failure: TokenFailure? = nil) {
        release(or: .takenAway, failing: failure) { state, now in
            if state.machine.isAwaited { state.kept = nil }
            state.fetch = nil
            state.hasLoaded = true
            return state.machine.land(token, now: now)
        }
    }

    /// Lets those go on whom a change releases.
    ///
    /// - Parameters:
    ///   - reason: What they get when there is no token for them.
    ///   - failure: What they get in any case.
    private func release(
        or reason: TokenFailure, failing failure: TokenFailure? = nil,
        _ change: (inout State, Date) -> TokenMachine.Release
    ) {
        let now = settings.now()
        let (waiting, held) = state.withLock { state in
            let release = change(&state, now)
            if release.fliesAgain { fly(&state) }
            return (release.waiters.compactMap { state.waiting.removeValue(forKey: $0) }, release.held)
        }
        let outcome: Result<TokenMachine.Held, any Error> =
            if let failure { .failure(failure) } else if let held { .success(held) } else { .failure(reason) }
        for waiter in waiting { waiter.resume(returning: outcome) }
    }
}
