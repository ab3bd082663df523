// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Decides when to run a check that depends on the network: after each change, and again while it fails.
///
/// At most one check runs. A change during a check leads to another check, so that a check that is slower than the
/// changes still ends.
struct CheckMachine: Sendable, Hashable {
    enum Step: Sendable, Hashable {
        /// Runs the check, instead of waiting.
        case check
        /// Waits, then reports ``waitEnded()``.
        case wait(Duration)
        /// Waits no longer.
        case stopWaiting
    }

    private enum State: Hashable {
        case idle
        case checking(Next)
        case waiting
    }

    /// What follows the running check.
    private enum Next: Hashable {
        /// Its result decides.
        case result
        /// Another check, because the network has changed.
        case check
        /// Nothing, because the check is no longer needed.
        case nothing
    }

    private var state = State.idle
    private var failures = 0

    /// The longest time between two checks that fail.
    static let longestWait = Duration.seconds(60)

    /// The network has changed.
    ///
    /// - Parameter needsCheck: Whether a check is of use in the new state.
    mutating func changed(needsCheck: Bool) -> Step? {
        failures = 0
        switch state {
        case .checking:
            state = .checking(needsCheck ? .check : .nothing)
            return nil
        case .idle, .waiting:
            let wasWaiting = state == .waiting
            state = needsCheck ? .checking(.result) : .idle
            return needsCheck ? .check : wasWaiting ? .stopWaiting : nil
        }
    }

    /// The check has ended.
    mutating func checkEnded(isSuccess: Bool) -> Step? {
        guard case .checking(let next) = state else { return nil }
        switch next {
        case .check:
            state = .checking(.result)
            return .check
        case .result where !isSuccess:
            state = .waiting
            failures += 1
            return .wait(failures > 6 ? Self.longestWait : .seconds(1 << (failures - 1)))
        case .result, .nothing:
            state = .idle
            return nil
        }
    }

    /// The wait has ended.
    mutating func waitEnded() -> Step? {
        guard state == .waiting else { return nil }
        state = .checking(.result)
        return .check
    }
}
