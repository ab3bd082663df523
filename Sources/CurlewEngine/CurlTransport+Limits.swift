// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims

// Time: each transfer's earliest deadline is known, and nobody is looked at before the first of all is due.
extension CurlTransport {
    /// Makes sure that the sweep comes when the transfer's next deadline is due.
    func scheduleSweep(_ transfer: EngineTransfer) { sweepAt = min(sweepAt, deadline(of: transfer).at) }

    /// When a transfer is late, and for which limit.
    ///
    /// What cannot be known yet is looked at again a limit later.
    private func deadline(of transfer: EngineTransfer) -> (at: UInt64, limit: EngineFailure.Limit?) {
        let plan = transfer.plan
        var first: (at: UInt64, limit: EngineFailure.Limit?) = (Monotonic.never, nil)
        func consider(_ at: UInt64, _ limit: EngineFailure.Limit?) { if at < first.at { first = (at, limit) } }
        if let total = plan.totalTimeout { consider(transfer.startedAt &+ total, .total) }
        guard let handle = transfer.wire.handle else {
            if transfer.wire.hasPlace {
                if let connect = plan.connectTimeout { consider(transfer.wire.admittedAt &+ connect, .connect) }
            } else if let queue = plan.queueTimeout {
                consider(max(transfer.startedAt, transfer.wire.resumedAt) &+ queue, .queue)
            }
            return first
        }
        if transfer.wire.isUploadHeld && !transfer.isHeldBack {
            consider(transfer.wire.lastActivity &+ CurlTransport.quiet, .held)
        }
        if let answered = transfer.wire.answeredAt { consider(answered &+ CurlTransport.grace, .answered) }
        let isConnected = curlew_get_offset(handle.curl, CURLINFO_PRETRANSFER_TIME_T) > 0
        if let idle = plan.idleTimeout, !transfer.isHeldBack {
            // Not connected yet: that is the connect timeout's business.
            consider((isConnected ? transfer.wire.lastActivity : now) &+ idle, isConnected ? .idle : nil)
        }
        if let head = plan.headTimeout, !transfer.wire.isHeadComplete, !transfer.wire.isUserPaused {
            let sent = sendingEnded(handle, transfer)
            consider((sent ?? now) &+ head, sent == nil ? nil : .head)
        }
        return first
    }

    /// When the whole request had been sent; nil while it has not.
    private func sendingEnded(_ handle: EasyHandle, _ transfer: EngineTransfer) -> UInt64? {
        let ready = curlew_get_offset(handle.curl, CURLINFO_PRETRANSFER_TIME_T)
        guard ready > 0 else { return nil }
        let begun = transfer.wire.launchedAt &+ UInt64(ready) &* 1000
        if transfer.plan.isBodyPulled && transfer.wire.bodySentAt == 0 { return nil }
        return max(begun, transfer.wire.bodySentAt, transfer.wire.resumedAt)
    }

    /// How long libcurl may take to notice that an answer is whole before it is ended for it, in nanoseconds.
    private static let grace: UInt64 = 50_000_000

    /// How long nothing may come before a held body goes on, in nanoseconds.
    private static let quiet: UInt64 = 10_000_000

    /// Ends what is late, and finds out when to look again.
    func sweep(_ now: UInt64) {
        sweepAt = Monotonic.never
        var late: [(EngineTransfer, EngineFailure.Limit)] = []
        for transfer in everyone {
            let (at, limit) = deadline(of: transfer)
            if now >= at, let limit { late.append((transfer, limit)) } else { sweepAt = min(sweepAt, at) }
        }
        for (transfer, limit) in late where transfer.outcome == nil {
            switch limit {
            case .held:
                transfer.releaseUpload()
                scheduleSweep(transfer)
            case .answered: if let handle = transfer.wire.handle { end(handle, nil) }
            case .queue:
                if transfer.wantsPause {
                    // It waits because it is told to.
                    transfer.wire.resumedAt = now
                    scheduleSweep(transfer)
                } else {
                    remove(transfer, .queueTimedOut(report(on: transfer)))
                }
            case .connect, .head, .idle, .total: remove(transfer, .timedOut(limit))
            }
        }
    }
}
