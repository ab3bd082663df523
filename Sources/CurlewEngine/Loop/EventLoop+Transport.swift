// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewSupport

// The loop's own part in transfers, on its thread: it refuses and ends them at its shutdown, and delivers.
extension EventLoop {
    /// The states of all transfers that have not ended, the oldest first; call it on the loop's thread.
    package var snapshots: [EngineTransfer.Snapshot] { transport?.snapshots ?? [] }

    /// Handles what is due in the transport, then the limit of a shutdown, and resumes the callers of ended transfers.
    func advance(_ transport: any Transport, now: UInt64) {
        transport.advance(now: now)
        if now >= shutdown.closeAt { endAll(on: transport) }
        deliveries.resumeEnded()
    }

    /// The time at which the loop has to turn without an event or a record.
    func deadline(of transport: any Transport) -> UInt64 {
        min(transport.deadline, deliveries.deadline, shutdown.closeAt)
    }

    func start(_ transfer: EngineTransfer, on transport: any Transport) {
        if shutdown.accepts(continues: transfer.plan.continues) { return transport.start(transfer) }
        var metrics = RawMetrics()
        metrics.queued = clock.now() &- transfer.startedAt
        transfer.complete(
            failure: EngineFailure(.closed, phase: .preparing), metrics: metrics, observer: deliveries.observer)
    }

    // MARK: Shutdown

    /// Refuses new transfers, and resumes `done` when the running ones have ended and no hold is left, or when `limit`
    /// nanoseconds have passed.
    func beginShutdown(
        of transport: any Transport, within limit: UInt64?, _ done: UnsafeContinuation<Void, Never>
    ) {
        shutdown.close(within: limit, now: clock.now(), done)
        holds.withLock { $0.isClosing = true }
        if limit == 0 { endAll(on: transport) }
    }

    private func endAll(on transport: any Transport) {
        shutdown.end()
        // Waiting transfers end first; otherwise they would be admitted into the slots released by the others.
        for transfer in transport.allTransfers.reversed() { transport.remove(transfer, .closed) }
    }

    /// Ends paused transfers, because no session is left to resume them.
    func endPaused(on transport: any Transport) {
        for transfer in transport.allTransfers.reversed() where transfer.wantsPause {
            transport.remove(transfer, .closed)
        }
    }

    /// Resumes the callers of `idle()` and `shutDown`, once a turn, if no transfer and no unread record is left: a
    /// record could start the next run of a transfer that has just ended.
    func resumeIfIdle(_ transport: any Transport) {
        guard shutdown.isAwaited, transport.isIdle else { return }
        let isQuiet = isQuiet
        if isQuiet || shutdown.phase == .over { finishClosing(transport) }
        if isQuiet && shutdown.awaitsIdle {
            shutdown.awaitsIdle = false
            resumeIdleWaiters()
        }
    }

    func finishClosing(_ transport: any Transport) {
        guard shutdown.phase != .open else { return }
        shutdown.end()
        transport.resetConnections()
        for closer in shutdown.takeClosers() { closer.resume() }
    }
}

extension Transport {
    /// The states of all transfers that have not ended, the oldest first.
    package var snapshots: [EngineTransfer.Snapshot] {
        allTransfers.sorted { $0.id < $1.id }.map { transfer in
            if let deliveries = transfer.loopState.deliveries { transfer.publish(deliveries.now) }
            return transfer.snapshot
        }
    }
}
