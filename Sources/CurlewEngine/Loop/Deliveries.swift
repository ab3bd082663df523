// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewSupport

/// The bytes, progress and ends that a loop hands to waiting tasks once a turn.
///
/// Transports and transfers use it on the loop's thread alone.
package final class Deliveries {
    /// Small slabs hold the first bytes of a body, large ones the rest of a body that arrives fast.
    let slabs = SlabPool(size: 64 << 10, most: 16)
    let largeSlabs = SlabPool(size: 256 << 10, most: 8)
    /// The clock of the loop in nanoseconds, read once a turn.
    var now: UInt64 { turnClock.pointee }
    /// A pointer to the clock, for code that reads it often.
    var clock: UnsafePointer<UInt64> { UnsafePointer(turnClock) }
    private let turnClock: UnsafeMutablePointer<UInt64>
    /// The maximum number of bytes that a transfer receives in a turn.
    private let turnLimit: Int
    /// The observer of all transfers.
    var observer: (any EngineObserver)?
    /// Incremented whenever bytes have moved.
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    private(set) var progress: UInt64 = 0
    /// Transfers with bytes or counters that were not published yet.
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    private var dirty: [EngineTransfer] = []
    /// Tasks that wait for ends of this turn and have not been resumed yet.
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    private var ended: [Waiter] = []
    /// Transfers whose progress or head is published later, and the earliest time at which one of them is due.
    private var deferredProgress: [EngineTransfer] = []
    private var deferredUntil = Monotonic.never
    /// Transfers that have received their maximum for this turn.
    private var pausedForTurn: [EngineTransfer] = []

    init(turnLimit: Int, now: UInt64) {
        self.turnLimit = turnLimit
        turnClock = .allocate(capacity: 1)
        turnClock.initialize(to: now)
    }

    deinit { turnClock.deallocate() }

    // MARK: Turns

    func beginTurn(now: UInt64) { turnClock.pointee = now }

    /// Returns whether a transfer has received its maximum for this turn, and registers it to be resumed in the next
    /// turn.
    ///
    /// libcurl 7.88 reads up to a hundred times in one call while bytes are available.
    func endTurnIfFull(for transfer: EngineTransfer, _ count: Int) -> Bool {
        if transfer.loopState.turn != now {
            transfer.loopState.turn = now
            transfer.loopState.inTurn = 0
        }
        transfer.loopState.inTurn += count
        guard transfer.loopState.inTurn >= turnLimit, !transfer.loopState.isTurnOver else { return false }
        transfer.loopState.isTurnOver = true
        pausedForTurn.append(transfer)
        return true
    }

    /// Resumes the transfers that have received their maximum in the last turn.
    func resumeTurns() {
        if pausedForTurn.isEmpty { return }
        let transfers = pausedForTurn
        pausedForTurn = []
        for transfer in transfers {
            transfer.loopState.isTurnOver = false
            transfer.applyPauses()
        }
    }

    /// The time at which the loop has to turn for deliveries; 0 for pending ones.
    var deadline: UInt64 { pausedForTurn.isEmpty && dirty.isEmpty ? deferredUntil : 0 }

    // MARK: Bytes and progress

    func markDirty(_ transfer: EngineTransfer) {
        progress &+= 1
        guard !transfer.loopState.isDirty else { return }
        transfer.loopState.isDirty = true
        dirty.append(transfer)
    }

    /// Publishes a transfer's bytes and progress at `time`.
    func deferPublishing(of transfer: EngineTransfer, until time: UInt64) {
        deferredUntil = min(deferredUntil, time)
        guard !transfer.loopState.isProgressDeferred else { return }
        transfer.loopState.isProgressDeferred = true
        deferredProgress.append(transfer)
    }

    /// Publishes what has arrived and the progress that is due.
    ///
    /// - Parameter check: Called for each transfer after its bytes were published.
    func flush(_ now: UInt64, then check: (EngineTransfer) -> Void) {
        if !dirty.isEmpty { flushDirty(now, check) }
        if now >= deferredUntil { flushProgress(now) }
    }

    private func flushDirty(_ now: UInt64, _ check: (EngineTransfer) -> Void) {
        if dirty.count == 1 { return flush(dirty.removeLast(), now, check) }
        var batch: [EngineTransfer] = []
        swap(&batch, &dirty)
        for transfer in batch { flush(transfer, now, check) }
        batch.removeAll(keepingCapacity: true)
        if dirty.isEmpty { swap(&batch, &dirty) }
    }

    private func flush(_ transfer: EngineTransfer, _ now: UInt64, _ check: (EngineTransfer) -> Void) {
        transfer.loopState.isDirty = false
        guard transfer.loopState.deliveries != nil else { return }
        transfer.sendDeferredSentEvent()
        transfer.publish(now)
        check(transfer)
    }

    private func flushProgress(_ now: UInt64) {
        let late = deferredProgress
        deferredProgress = []
        deferredUntil = Monotonic.never
        for transfer in late {
            transfer.loopState.isProgressDeferred = false
            if transfer.loopState.deliveries != nil { transfer.publish(now) }
        }
    }

    /// Forgets all transfers, after the last one has ended.
    ///
    /// The loop owns this object, and each transfer holds the loop, so that a transfer left here would keep the loop.
    func clear() {
        dirty = []
        deferredProgress = []
        pausedForTurn = []
        deferredUntil = Monotonic.never
    }

    // MARK: Ends

    /// Resumes tasks that wait for an end: at once if the task runs on this thread, otherwise together with the others
    /// at the end of the turn.
    func resume(_ waiters: SmallList<Waiter>) {
        waiters.forEach { waiter in if waiter.isOfCurrentThread { waiter.resume() } else { ended.append(waiter) } }
    }

    /// Resumes the callers that wait for the ends of this turn.
    ///
    /// On a busy core each resumption costs a switch to another thread and back. From four ends on, one detached task
    /// resumes all callers, which costs one switch in total.
    func resumeEnded() {
        if ended.isEmpty { return }
        if ended.count == 1 { return ended.removeLast().resume() }
        if ended.count < 4 {
            for waiter in ended { waiter.resume() }
        } else {
            let all = ended
            Task.detached(priority: .high) { for waiter in all { waiter.resume() } }
        }
        ended.removeAll(keepingCapacity: ended.count < 4)
    }
}
