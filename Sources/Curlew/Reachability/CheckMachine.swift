// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Decides when to run a check that depends on the network: after each change, and again after a failure.
///
/// At most one check runs. A change does not interrupt a running check, because frequent changes would then prevent
/// each end of a slow check; another check follows instead.
struct CheckMachine: Sendable, Hashable {
    enum Step: Sendable, Hashable {
        /// Run the check, and stop waiting.
        case check
        /// Wait, then call ``waitEnded()``.
        case wait(Duration)
        /// Stop waiting.
        case stopWaiting
    }

    private enum State: Hashable {
        case idle
        case checking(Next)
        case waiting
    }

    /// The step after the running check.
    private enum Next: Hashable {
        /// A wait after a failure; no step after a success.
        case result
        /// Another check, because the network has changed.
        case check
        /// No step, because the network no longer needs a check.
        case nothing
    }

    private var state = State.idle
    private var failures = 0

    /// The longest wait between a failed check and the next one.
    static let longestWait = Duration.seconds(60)

    /// Handles a change of the network.
    ///
    /// - Parameter needsCheck: Whether the new state of the network needs a check.
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

    /// Handles the end of the running check.
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

    /// Handles the end of the wait.
    mutating func waitEnded() -> Step? {
        guard state == .waiting else { return nil }
        state = .checking(.result)
        return .check
    }
}
