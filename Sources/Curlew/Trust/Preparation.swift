// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// Whether one evaluator among several was made ready; one that could not be is not asked.
final class Preparation: Sendable {
    private enum State {
        /// Kept, so that roots that are made anew each time they are asked for stay loaded.
        case unprepared, ready(TrustRoots), failed(TrustFailure)
    }

    private let state = Lock(State.unprepared)

    /// Once is enough, unless it could not be done, or not wholly.
    func prepare(_ evaluator: some TrustEvaluator) {
        if case .ready = state.withLock({ $0 }), !isIncomplete(evaluator) { return }
        var state = State.ready(evaluator.roots)
        do throws(TrustFailure) {
            try evaluator.prepare()
        } catch {
            state = .failed(error)
        }
        self.state.withLock { $0 = state }
    }

    func isIncomplete(_ evaluator: some TrustEvaluator) -> Bool {
        if case .failed = state.withLock({ $0 }) { return true }
        return evaluator.isIncomplete
    }

    func judge(_ peer: PeerIdentity, by evaluator: some TrustEvaluator) throws(TrustFailure) {
        if case .failed(let failure) = state.withLock({ $0 }) { throw failure }
        try evaluator.judge(peer)
    }
}

/// An evaluator that goes on when some of those that it asks cannot be made ready.
protocol PartlyPrepared: TrustEvaluator {
    /// Whether one of them is still to be made ready.
    var isStillToPrepare: Bool { get }
}

extension TrustEvaluator {
    /// Whether some of those that it asks are still to be made ready.
    var isIncomplete: Bool { (self as? any PartlyPrepared)?.isStillToPrepare == true }
}
