// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension EngineTransfer {
    /// What others may have changed since the loop last looked.
    var wishes: (collects: Bool, isPaused: Bool, isFlowPaused: Bool, buffered: Int, priority: Int) {
        shared.withLock { ($0.collects, $0.lifecycle.wantsPause, $0.isFlowPaused, $0.buffered, $0.priority) }
    }

    var wantsPause: Bool { shared.withLock { $0.lifecycle.wantsPause } }
    var priorityNow: Int { shared.withLock { $0.priority } }
    var startedAt: UInt64 { shared.withLock { $0.counters.startedAt } }

    /// Makes the move to running and says whether the body is collected; nil when the transfer is paused or over.
    func tryAdmission() -> Bool? {
        shared.withLock { $0.lifecycle.on(.admit) ? $0.collects : nil }
    }
}
