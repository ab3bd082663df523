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
        /// How the flight in the air may be ended.
        var flight: Task<Void, Never>?
        var flights: UInt64 = 0
    }

    private let state: Lock<State>
    private let fetch: Fetch
    /// What stands in for a store that is empty.
    private let first: AccessToken?
    private let store: (any TokenStore)?
    private let settings: RefreshingAuthentication.Settings

    /// The sources that fetch a token in this task, whose requests go without.
    @TaskLocal private static var fetching: Set<ObjectIdentifier> = []

    init(
        _ token: AccessToken?, store: (any TokenStore)?, settings: RefreshingAuthentication.Settings,
        fetch: @escaping Fetch
    ) {
        let machine = TokenMachine(store == nil ? token : nil, skew: settings.skew, now: settings.now())
        state = Lock(State(machine: machine, hasLoaded: store == nil))
        self.store = store
        first = store == nil ? nil : token
        self.settings = settings
        self.fetch = fetch
    }

    /// Whether the task is one that fetches a token of this source.
    var isFetching: Bool { TokenSource.fetching.contains(ObjectIdentifier(self)) }

    /// The token there is, good or not.
    var current: AccessToken? { state.withLock { $0.machine.token ?? ($0.hasLoaded ? nil : first) } }

    /// How many wait for a token.
    var waiting: Int { state.withLock { $0.machine.waiting } }

    /// A token that the server is likely to take, after waiting for it if need be.
    ///
    /// - Parameter refused: The generation that the server has just refused.
    /// - Throws: What the fetch threw; `CancellationError` when the task is cancelled while it waits.
    func token(refused: UInt64? = nil) async throws -> TokenMachine.Held {
        let ticket = state.withLock { state in
            state.tickets += 1
            return state.tickets
        }
        return try await withTaskCancellationHandler {
            await withUnsafeContinuation { wait($0, ticket, refused: refused) }
        } onCancel: {
            let waiting = state.withLock { state in
                state.machine.leave(ticket) ? state.waiting.removeValue(forKey: ticket) : nil
            }
            waiting?.resume(returning: .failure(CancellationError()))
        }.get()
    }

    /// Takes note that the server refused a token, though nobody asks for another now.
    func refuse(_ generation: UInt64) { state.withLock { $0.machine.refuse(generation) } }

    /// Puts a token into the place of the one there is; nil takes it away from those who wait, too.
    ///
    /// - Throws: What the store throws.
    func replace(_ token: AccessToken?) async throws {
        release(or: .takenAway) { state, now in
            state.hasLoaded = true
            return state.machine.replace(token, now: now)
        }
        try await store?.save(token)
    }

    private func wait(_ waiting: Waiting, _ ticket: UInt64, refused: UInt64?) {
        let answer = state.withLock { state -> Result<TokenMachine.Held, any Error>? in
            // Whoever was cancelled before has found nobody to wake.
            if Task.isCancelled { return .failure(CancellationError()) }
            switch state.machine.ask(ticket, refused: refused, now: settings.now()) {
            case .use(let held): return .success(held)
            case .fail: return .failure(TokenFailure.tooSlow(settings.timeout))
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
        let (number, old, loads) = (state.flights, state.machine.token, !state.hasLoaded)
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
            guard state.withLock({ $0.machine.isAwaited }) else { return land(token) }
            // Before anybody goes on: it may be the only one that another can be got with.
            var failure: TokenFailure?
            do { try await store?.save(token) } catch { failure = .notSaved(error) }
            // Replaced by hand in the meantime: that one is to be kept.
            if !state.withLock({ $0.machine.isAwaited }) { try? await store?.save(current) }
            land(token, failing: failure)
        } catch {
            release(or: .notFetched(error)) { state, now in state.machine.crash(now: now) }
        }
    }

    /// What the store has, and whether it will do.
    private func load() async throws -> (AccessToken?, serves: Bool) {
        var kept = try await store?.load()
        if kept == nil, let first {
            try await store?.save(first)
            kept = first
        }
        state.withLock { $0.hasLoaded = true }
        return (kept, kept.map { $0.expiry.map { settings.now() < $0 } ?? true } ?? false)
    }

    private func land(_ token: AccessToken, failing failure: TokenFailure? = nil) {
        release(or: .takenAway, failing: failure) { state, now in
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
        let (waiting, held) = state.withLock { state in
            let release = change(&state, settings.now())
            if release.fliesAgain { fly(&state) }
            return (release.waiters.compactMap { state.waiting.removeValue(forKey: $0) }, release.held)
        }
        let outcome: Result<TokenMachine.Held, any Error> =
            if let failure { .failure(failure) } else if let held { .success(held) } else { .failure(reason) }
        for waiter in waiting { waiter.resume(returning: outcome) }
    }
}

/// Why there is no token.
enum TokenFailure: Error {
    case notFetched(any Error)
    case notSaved(any Error)
    case tooSlow(Duration)
    case takenAway

    /// The error of the user's own code; of an authorization server that refused, what it said.
    var cause: (any Error)? {
        switch self {
        case .notFetched(let error as NetworkError) where error.kind == .authenticationFailed: error.cause ?? error
        case .notFetched(let error), .notSaved(let error): error
        case .tooSlow, .takenAway: nil
        }
    }
}

extension TokenFailure: CustomStringConvertible {
    /// The rest of a sentence, with its full stop; nothing of a foreign cause, which may tell secrets.
    var description: String {
        switch self {
        case .notFetched(let error as NetworkError): "getting one failed: \(error.message)"
        case .notFetched(let error): "getting one failed with a \(type(of: error))."
        case .notSaved(let error): "the store did not keep it, with a \(type(of: error))."
        case .tooSlow(let timeout): "getting one took longer than \(timeout)."
        case .takenAway: "it was taken away while the request waited."
        }
    }
}
