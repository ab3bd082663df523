// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Saves the changes of an object in the background: some time after the first change, and again after a failure.
///
/// At most one task for each object saves or waits.
package final class DelayedSave<Object: AnyObject & Sendable>: Sendable {
    private let delay: Duration
    private let retryDelay: Duration
    private let hasChanges: @Sendable (Object) -> Bool
    private let save: @Sendable (Object) async -> Bool
    private let state = Lock(State())

    private struct State {
        /// Whether a task saves or waits for `delay`.
        var isScheduled = false
        /// Waits for `retryDelay`.
        var retry: Task<Void, Never>?
    }

    /// Creates the schedule of one object.
    ///
    /// - Parameters:
    ///   - delay: The time from the first change to the save; one second unless given.
    ///   - retryDelay: The time from a failure to the next save; one minute unless given.
    ///   - hasChanges: Returns whether the object has changes to save.
    ///   - save: Saves the changes; returns whether that succeeded.
    package init(
        delay: Duration = .seconds(1), retryDelay: Duration = .seconds(60),
        hasChanges: @escaping @Sendable (Object) -> Bool, save: @escaping @Sendable (Object) async -> Bool
    ) {
        self.delay = delay
        self.retryDelay = retryDelay
        self.hasChanges = hasChanges
        self.save = save
    }

    /// Schedules a save of the object, unless a task saves or waits for `delay` already.
    ///
    /// The object stays alive until it was saved once, but not for the next attempt after a failure.
    package func schedule(_ object: Object) { start(object, after: delay) }

    private func start(_ object: Object, after delay: Duration) {
        let (isFirst, retry) = state.withLock { state in
            defer { state = State(isScheduled: true) }
            return (!state.isScheduled, state.retry)
        }
        retry?.cancel()
        guard isFirst else { return }
        Task(priority: .utility) {
            try? await ContinuousClock().wait(for: delay)
            await run(object)
        }
    }

    private func run(_ object: Object) async {
        let isSaved = hasChanges(object) ? await save(object) : true
        state.withLock { $0.isScheduled = false }
        // Changes during the save could not schedule another one.
        guard hasChanges(object) else { return }
        if isSaved { schedule(object) } else { retry(object) }
    }

    private func retry(_ object: Object) {
        let retry = Task(priority: .utility) { [weak object] in
            do { try await ContinuousClock().wait(for: retryDelay) } catch { return }
            if let object { start(object, after: .zero) }
        }
        let isObsolete = state.withLock { state in
            if !state.isScheduled { state.retry = retry }
            return state.isScheduled
        }
        // A change has scheduled a save in the meantime.
        if isObsolete { retry.cancel() }
    }
}
