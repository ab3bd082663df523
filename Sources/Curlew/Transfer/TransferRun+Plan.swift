// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

/// The plan of the first attempt of a transfer that folds.
extension TransferRun {
    /// Returns the first attempt of a request that folds, and whether the chain runs beside it; nil for a request that
    /// does not fold.
    static func firstAttempt(
        of request: Request, by chain: Chain, on session: SessionCore, _ id: UInt64
    ) throws(NetworkError) -> (attempt: Attempt, startsChain: Bool)? {
        guard let folded = chain.fold(request) else { return nil }
        // A chain that runs from the start sees everything by itself.
        let startsChain = folded.interest.values.runsUserCode
        let position = AttemptPosition(id: id, interest: startsChain ? .none : folded.interest)
        return (try session.attempt(folded.request ?? request, at: position), startsChain)
    }

    /// The maximum age of a plan in nanoseconds, one second: a cookie in an older plan may have expired.
    private static let planLifetime: UInt64 = 1_000_000_000

    /// Returns the revision of the chain and the time of a plan; the time is 0 if no state has entries, since then the
    /// plan cannot become too old.
    static func planStamp(of chain: Chain, on session: SessionCore) -> (revision: UInt64, at: UInt64) {
        let (changes, hasEntries) = chain.stateSummary
        return (changes, hasEntries ? session.loop.clock.now() : 0)
    }

    /// Plans the first attempt again, at the start, if cookies or HSTS hosts have changed since the plan, or if there
    /// were any and the plan is older than a second.
    func refold() {
        guard let planned = state.withLock({ $0.machine.isPlanned ? $0.planned : nil }) else { return }
        let now = Self.planStamp(of: chain, on: session)
        guard now.revision != planned.revision || planned.at > 0 && now.at &- planned.at > Self.planLifetime else {
            return
        }
        // If the attempt cannot be planned any more, the chain reports the error.
        let attempt = (try? Self.firstAttempt(of: request, by: chain, on: session, id))?.attempt
        let old = state.withLock { state -> Attempt? in
            // Another task may have made a newer plan in the meantime.
            guard (now.revision, now.at) >= state.planned, state.machine.replan(attempt?.engine) else { return attempt }
            defer { (state.first, state.planned) = (attempt, now) }
            return state.first
        }
        // Release the attempt that is not used outside of the lock.
        withExtendedLifetime(old) {}
    }
}
