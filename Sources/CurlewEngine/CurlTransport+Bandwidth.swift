// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewSupport

// Bandwidth: a transfer that has used more than its share is paused until its debt is paid. Transfers that share a
// limit wait in one queue, and each gets a small amount at a time.
extension CurlTransport {
    /// Charges received bytes, and pauses the transfer until its limits allow more.
    func charge(_ transfer: EngineTransfer, received count: Int) {
        transfer.loopState.throttle?.receiving?.take(count, at: now)
        throttle.receiving?.take(count, at: now)
        guard !isOpen(\.receiving, for: transfer), !hasAll(transfer) else { return }
        transfer.loopState.isReceivingLimited = true
        enqueueLimited(transfer)
        transfer.applyPauses()
    }

    /// Whether the whole body has arrived, if its length is known; libcurl is then about to report the end.
    private func hasAll(_ transfer: EngineTransfer) -> Bool {
        (transfer.loopState.check.length ?? -1) == transfer.loopState.counters.received
    }

    func charge(_ transfer: EngineTransfer, sent count: Int) {
        transfer.loopState.throttle?.sending?.take(count, at: now)
        throttle.sending?.take(count, at: now)
    }

    /// Returns the number of bytes that may be sent now; nil if sending has to wait.
    func allowance(for transfer: EngineTransfer, of capacity: Int) -> Int? {
        guard throttle.sending != nil || transfer.loopState.throttle?.sending != nil else { return capacity }
        // A transfer in the queue waits for its turn even if the limit is open right now.
        guard !transfer.loopState.isSendingLimited, isOpen(\.sending, for: transfer) else {
            transfer.loopState.isSendingLimited = true
            enqueueLimited(transfer)
            return nil
        }
        return min(capacity, quantum(\.sending, of: transfer))
    }

    /// Returns the number of bytes that libcurl may read at once, at least 1 KiB.
    func readSize(of transfer: EngineTransfer, _ size: Int) -> Int {
        guard throttle.receiving != nil || transfer.loopState.throttle?.receiving != nil else { return size }
        return min(size, max(1024, quantum(\.receiving, of: transfer)))
    }

    /// Returns the number of bytes that a transfer may use at once.
    private func quantum(_ way: KeyPath<Throttle, TokenBucket?>, of transfer: EngineTransfer) -> Int {
        let own = transfer.loopState.throttle?[keyPath: way]?.quantum ?? .max
        return min(own, throttle[keyPath: way]?.quantum ?? .max)
    }

    private func isOpen(_ way: KeyPath<Throttle, TokenBucket?>, for transfer: EngineTransfer) -> Bool {
        transfer.loopState.throttle?[keyPath: way]?.isOpen(at: now) != false
            && throttle[keyPath: way]?.isOpen(at: now) != false
    }

    private func enqueueLimited(_ transfer: EngineTransfer) {
        releaseAt = min(releaseAt, opensAt(transfer, throttle))
        guard !transfer.loopState.isLimited else { return }
        transfer.loopState.isLimited = true
        limited.append(transfer)
    }

    /// Returns the time at which the limits of a transfer allow it to continue in one direction, if no other transfer
    /// uses them.
    private func opensAt(_ transfer: EngineTransfer, _ common: Throttle) -> UInt64 {
        let own = transfer.loopState.throttle
        var first = Monotonic.never
        if transfer.loopState.isReceivingLimited {
            first = max(own?.receiving?.paidAt ?? 0, common.receiving?.paidAt ?? 0)
        }
        if transfer.loopState.isSendingLimited {
            first = min(first, max(own?.sending?.paidAt ?? 0, common.sending?.paidAt ?? 0))
        }
        return first
    }

    /// Resumes transfers whose debts are paid, in the order of the queue, as far as the shared limits allow.
    func release(_ now: UInt64) {
        releaseAt = Monotonic.never
        let line = limited
        limited = []
        // For this turn, the copy is charged with the bytes that the resumed transfers are expected to use.
        var expected = throttle
        var freed: [EngineTransfer] = []
        for transfer in line {
            let receives = transfer.loopState.isReceivingLimited && takeTokens(\.receiving, transfer, &expected)
            let sends = transfer.loopState.isSendingLimited && takeTokens(\.sending, transfer, &expected)
            if receives { transfer.loopState.isReceivingLimited = false }
            if sends { transfer.loopState.isSendingLimited = false }
            if receives || sends { freed.append(transfer) }
            transfer.loopState.isLimited = transfer.loopState.isReceivingLimited || transfer.loopState.isSendingLimited
            guard transfer.loopState.isLimited else { continue }
            limited.append(transfer)
            // The expected use does not count here: the resumed transfers may have no bytes to transfer.
            releaseAt = min(releaseAt, max(opensAt(transfer, throttle), now &+ 2_000_000))
        }
        // libcurl may deliver buffered bytes at once; the transfer then joins the queue again, at its end.
        for transfer in freed {
            transfer.applyPauses()
            // The deadlines of the transfer were not checked while it waited.
            scheduleSweep(transfer)
        }
    }

    /// Takes the tokens that a waiting transfer needs to continue in one direction; returns false if it has to wait.
    private func takeTokens(
        _ way: WritableKeyPath<Throttle, TokenBucket?>, _ transfer: EngineTransfer, _ expected: inout Throttle
    ) -> Bool {
        guard isOpen(way, for: transfer), expected[keyPath: way]?.isOpen(at: now) != false else { return false }
        expected[keyPath: way]?.take(quantum(way, of: transfer), at: now)
        return true
    }

    /// Removes a transfer from the queue when it leaves its connection.
    func leaveLimitQueue(_ transfer: EngineTransfer) {
        guard transfer.loopState.isLimited else { return }
        transfer.loopState.isLimited = false
        transfer.loopState.isReceivingLimited = false
        transfer.loopState.isSendingLimited = false
        limited.removeAll { $0 === transfer }
    }
}
