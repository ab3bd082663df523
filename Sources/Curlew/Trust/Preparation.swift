// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

/// The preparation state of one evaluator in a composite; an evaluator that failed to prepare does not run.
final class Preparation: Sendable {
    private enum State {
        /// `ready` keeps the roots, so that they stay loaded if `evaluator.roots` creates a new value at each access.
        case unprepared, ready(TrustRoots), failed(TrustFailure)
    }

    private let state = Lock(State.unprepared)

    /// Prepares the evaluator, unless an earlier call prepared it completely.
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

/// An evaluator whose `prepare` can succeed while some of its nested evaluators are unprepared.
protocol PartiallyPrepared: TrustEvaluator {
    /// Whether at least one nested evaluator is unprepared.
    var hasUnpreparedEvaluators: Bool { get }
}

extension TrustEvaluator {
    /// Whether this evaluator has unprepared nested evaluators.
    var isIncomplete: Bool { (self as? any PartiallyPrepared)?.hasUnpreparedEvaluators == true }
}
