// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims

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

    /// Whether the answer is whole although the body is not all sent: nothing would be gained by sending the rest.
    ///
    /// libcurl would go on until it is all gone, or for ever when the server reads no more.
    var isAnsweredEarly: Bool {
        guard wire.isHeadComplete, !wire.isUserPaused, let handle = wire.handle else { return false }
        if case .none = plan.upload { return false }
        if wire.expectsBody && !wire.hasAnswerEnded {
            let length = curlew_get_offset(handle.curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T)
            guard length >= 0, wire.counters.received >= length else { return false }
        }
        if plan.isBodyPulled && wire.bodySentAt == 0 { return true }
        if wire.answeredAt == nil {
            let transport = handle.domain.transport
            wire.answeredAt = transport.now
            transport.scheduleSweep(self)
        }
        return false
    }
}
