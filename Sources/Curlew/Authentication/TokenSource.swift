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
        /// How the flight in the air may be ended.
        var flight: Task<Void, Never>?
        var flights: UInt64 = 0
        /// Why the last one failed.
        var lastError: (any Error)?
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
            state.flight?.cancel()
            return state.machine.replace(token, now: now)
        }
        // What is there when it is the store's turn: another may have been put into its place.
        try await store?.use { [self] store in try await store.save(state.withLock { $0.machine.token }) }
    }

    private func wait(_ waiting: Waiting, _ ticket: UInt64) {
        let now = settings.now()
        let answer = state.withLock { state -> Result<TokenMachine.Held, any Error>? in
            // Whoever was cancelled before has found nobody to wake.
            if Task.isCancelled { return .failure(CancellationError()) }
            switch state.machine.ask(ticket, now: now) {
            case .use(let held): return .success(held)
            case .fail: return .failure(TokenFailure.tooSlow(settings.timeout))
            case .pause(let left): return .failure(TokenFailure.paused(left, after: state.lastError))
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
        state.flights += 1
        let (number, old, loads) = (state.flights, state.machine.token ?? state.kept, !state.hasLoaded)
        state.flight = Task {
            let alarm = Task {
                try await settings.clock.sleep(for: settings.timeout)
                isLate(number)
            }
            await TokenSource.$fetching.withValue(TokenSource.fetching.union([ObjectIdentifier(self)])) {
                await fly(from: old, loads: loads)
            }
            alarm.cancel()
        }
    }

    private func fly(from old: AccessToken?, loads: Bool) async {
        do {
            let (kept, serves) = try await loads ? load() : (old, false)
            if serves, let kept { return land(kept) }
            let token = try await fetch(kept)
            // Before anybody goes on: it may be the only one that another can be got with.
            var failure: TokenFailure?
            do {
                try await store?.use { [self] store in
                    // Replaced by hand in the meantime: that one is to be kept.
                    if isAwaited { try await store.save(token) }
                }
            } catch {
                failure = .notSaved(error)
            }
            land(token, failing: failure)
        } catch {
            release(or: .notFetched(error)) { state, now in
                state.lastError = error
                return state.machine.crash(now: now)
            }
        }
    }

    /// What the store has, and whether it will do.
    private func load() async throws -> (AccessToken?, serves: Bool) {
        let kept = try await store?.use { [self] store in
            if let kept = try await store.load() { return kept }
            if isAwaited, let first { try await store.save(first) }
            return first
        }
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
            state.hasLoaded = true
            return state.machine.land(token, now: now)
        }
    }

    private func isLate(_ number: UInt64) {
        release(or: .tooSlow(settings.timeout)) { state, now in
            guard state.flights == number else { return TokenMachine.Release() }
            state.flight?.cancel()
            return state.machine.isLate(now: now)
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
