// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

// Bandwidth: a transfer that has taken more than its share is paused until that is paid for. Those that share a limit
// stand in one line, and each gets a little at a time.
extension CurlTransport {
    /// Charges what was received, and pauses the transfer until it may have more.
    func charge(_ transfer: EngineTransfer, received count: Int) {
        transfer.wire.throttle?.receiving?.take(count, at: now)
        throttle.receiving?.take(count, at: now)
        guard !isOpen(\.receiving, for: transfer), !hasAll(transfer) else { return }
        transfer.wire.isReceivingLimited = true
        line(up: transfer)
        transfer.applyPauses()
    }

    /// Whether the whole body is there, as far as that can be known: libcurl is about to say so.
    private func hasAll(_ transfer: EngineTransfer) -> Bool {
        (transfer.wire.check.length ?? -1) == transfer.wire.counters.received
    }

    func charge(_ transfer: EngineTransfer, sent count: Int) {
        transfer.wire.throttle?.sending?.take(count, at: now)
        throttle.sending?.take(count, at: now)
    }

    /// How many bytes may be sent at once; nil when that is to wait.
    func allowance(for transfer: EngineTransfer, of capacity: Int) -> Int? {
        guard throttle.sending != nil || transfer.wire.throttle?.sending != nil else { return capacity }
        // Whoever stands in line is not served by chance.
        guard !transfer.wire.isSendingLimited, isOpen(\.sending, for: transfer) else {
            transfer.wire.isSendingLimited = true
            line(up: transfer)
            return nil
        }
        return min(capacity, quantum(\.sending, of: transfer))
    }

    /// How much libcurl may read at once, which is 1 KiB at least.
    func readSize(of transfer: EngineTransfer, _ size: Int) -> Int {
        guard throttle.receiving != nil || transfer.wire.throttle?.receiving != nil else { return size }
        return min(size, max(1024, quantum(\.receiving, of: transfer)))
    }

    /// What a transfer takes at once.
    private func quantum(_ way: KeyPath<Throttle, TokenBucket?>, of transfer: EngineTransfer) -> Int {
        let own = transfer.wire.throttle?[keyPath: way]?.quantum ?? .max
        return min(own, throttle[keyPath: way]?.quantum ?? .max)
    }

    private func isOpen(_ way: KeyPath<Throttle, TokenBucket?>, for transfer: EngineTransfer) -> Bool {
        transfer.wire.throttle?[keyPath: way]?.isOpen(at: now) != false
            && throttle[keyPath: way]?.isOpen(at: now) != false
    }

    private func line(up transfer: EngineTransfer) {
        releaseAt = min(releaseAt, opensAt(transfer, throttle))
        guard !transfer.wire.isLimited else { return }
        transfer.wire.isLimited = true
        limited.append(transfer)
    }

    /// When a transfer can go on one way or the other, as others leave it.
    private func opensAt(_ transfer: EngineTransfer, _ common: Throttle) -> UInt64 {
        let own = transfer.wire.throttle
        var first = Monotonic.never
        if transfer.wire.isReceivingLimited {
            first = max(own?.receiving?.paidAt ?? 0, common.receiving?.paidAt ?? 0)
        }
        if transfer.wire.isSendingLimited {
            first = min(first, max(own?.sending?.paidAt ?? 0, common.sending?.paidAt ?? 0))
        }
        return first
    }

    /// Lets those go on whose debts are paid, in the order of the line, as many as can be served.
    func release(_ now: UInt64) {
        releaseAt = Monotonic.never
        let line = limited
        limited = []
        // What those who go on now are expected to take is kept for them, for this turn.
        var expected = throttle
        var freed: [EngineTransfer] = []
        for transfer in line {
            let receives = transfer.wire.isReceivingLimited && mayGoOn(\.receiving, transfer, &expected)
            let sends = transfer.wire.isSendingLimited && mayGoOn(\.sending, transfer, &expected)
            if receives { transfer.wire.isReceivingLimited = false }
            if sends { transfer.wire.isSendingLimited = false }
            if receives || sends { freed.append(transfer) }
            transfer.wire.isLimited = transfer.wire.isReceivingLimited || transfer.wire.isSendingLimited
            guard transfer.wire.isLimited else { continue }
            limited.append(transfer)
            // Not when what is expected would be paid: those who go on may have nothing to take.
            releaseAt = min(releaseAt, max(opensAt(transfer, throttle), now &+ 2_000_000))
        }
        // libcurl may hand over at once what it holds, and the transfer then stands in line again, at its end.
        for transfer in freed {
            transfer.applyPauses()
            // While it waited, nobody looked at its deadlines.
            scheduleSweep(transfer)
        }
    }

    private func mayGoOn(
        _ way: WritableKeyPath<Throttle, TokenBucket?>, _ transfer: EngineTransfer, _ expected: inout Throttle
    ) -> Bool {
        guard isOpen(way, for: transfer), expected[keyPath: way]?.isOpen(at: now) != false else { return false }
        expected[keyPath: way]?.take(quantum(way, of: transfer), at: now)
        return true
    }

    /// Forgets a transfer that leaves the wire.
    func leaveLimits(_ transfer: EngineTransfer) {
        guard transfer.wire.isLimited else { return }
        transfer.wire.isLimited = false
        transfer.wire.isReceivingLimited = false
        transfer.wire.isSendingLimited = false
        limited.removeAll { $0 === transfer }
    }
}
