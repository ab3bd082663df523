// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Loop: the one thread of a session. It waits in epoll, lets libcurl handle ready sockets, runs the jobs of the session
// actor and executes the records that other threads post. Curlew has no other threads for sockets.

internal import CurlewShims
internal import Glibc
internal import CurlewSupport

/// The loop thread of a session, which is also the serial executor of its actor.
///
/// Other threads only append to the inbox; the loop thread takes its contents once a turn. A turn waits, handles ready
/// sockets and due timers, publishes the bytes that arrived, and executes the records of the inbox.
package final class EventLoop: SerialExecutor, @unchecked Sendable {
    // Safe because the inbox is behind its lock, the descriptors and settings never change, and `confined` is touched
    // on the loop thread alone (checked by `transport`).

    /// A command from another thread.
    enum Record {
        case job(UnownedJob)
        case taskJob(UnownedJob, LoopTaskExecutor)
        case start(EngineTransfer)
        case cancel(EngineTransfer)
        case adjust(EngineTransfer)
        case watch(EngineTransfer)
        case watchAll
        case call(@Sendable (any Transport) -> Void)
        case awaitIdle
        case close(within: UInt64?, UnsafeContinuation<Void, Never>)
        case stop

        /// Whether the record starts the thread of a loop that has no thread yet.
        var startsThread: Bool {
            switch self {
            case .stop, .watchAll: false
            default: true
            }
        }
    }

    private enum Life { case unstarted, running, failed(errno: CInt), exited }

    private struct Inbox {
        var life = Life.unstarted
        var records: [Record] = []
        var isAsleep = false
        var exitWaiters: [UnsafeContinuation<Void, Never>] = []
    }

    package let configuration: EngineConfiguration
    package let clock: LoopClock
    /// Called on the loop thread after a turn that took longer than `slowTurn` of the configuration.
    let onSlowTurn: @Sendable (_ nanoseconds: UInt64) -> Void

    let holds = Lock(Holds())
    /// The observer of all transfers.
    let commonObserver = Lock<(any EngineObserver)?>(nil)

    private let inbox = LockedPointer(allocating: Inbox())
    /// The descriptors are written under the lock of the inbox, before the thread starts.
    private var epoll: CInt = -1
    private var wake: CInt = -1
    private let generation: UInt64
    private let thread = Lock<pthread_t?>(nil)
    private let makeTransport: @Sendable (EventLoop, Deliveries, CInt) -> any Transport
    private var confined: (any Transport)?
    /// The deliveries and the shutdown of the loop, touched on its thread alone.
    let deliveries: Deliveries
    var shutdown = Shutdown()

    /// Creates a loop whose thread starts with the first record.
    ///
    /// - Parameters:
    ///   - configuration: The settings, which never change.
    ///   - clock: The clock of the loop and its transfers.
    ///   - onSlowTurn: Called on the loop's thread after a slow turn.
    ///   - transport: Creates the transport on the loop's thread, for the deliveries and the epoll descriptor.
    package init(
        configuration: EngineConfiguration, clock: LoopClock = LoopClock(),
        onSlowTurn: @escaping @Sendable (UInt64) -> Void = { _ in },
        transport: @escaping @Sendable (EventLoop, Deliveries, CInt) -> any Transport = {
            CurlTransport(loop: $0, deliveries: $1, epoll: $2)
        }
    ) {
        self.configuration = configuration
        self.clock = clock
        self.onSlowTurn = onSlowTurn
        makeTransport = transport
        deliveries = Deliveries(turnLimit: configuration.turn, now: clock.now())
        generation = curlew_fork_generation()
        clock.stub?.onAdvance { [weak self] in if self?.isRunning == true { self?.call { _ in } } }
    }

    deinit {
        closeDescriptors()
        inbox.deallocate()
    }

    /// Creates the descriptors and the thread, under the lock of the inbox.
    ///
    /// Returns errno, or 0 for success.
    private func begin() -> CInt {
        epoll = curlew_epoll_create()
        wake = epoll < 0 ? -1 : curlew_eventfd_create()
        var failure = epoll < 0 || wake < 0 ? errno : 0
        if failure == 0 {
            // The descriptor is edge-triggered, so it need not be read after each event.
            failure = curlew_epoll_update(
                epoll, wake, false, curlew_readable | curlew_edge_triggered, SocketTable.wakeToken)
        }
        if failure == 0 { failure = startThread("curlew-loop") { self.run() } }
        if failure != 0 { closeDescriptors() }
        return failure
    }

    private func closeDescriptors() {
        if epoll >= 0 { close(epoll) }
        if wake >= 0 { close(wake) }
        epoll = -1
        wake = -1
    }

    // MARK: Posting, from any thread

    /// Whether this process has the loop's thread: false in a child of `fork()`.
    package var hasThread: Bool { generation == curlew_fork_generation() }

    /// The errno of a failed attempt to create the thread; 0 otherwise.
    package var startFailure: CInt { inbox.withLock { if case .failed(let errno) = $0.life { errno } else { 0 } } }

    package var isRunning: Bool { inbox.withLock { if case .running = $0.life { true } else { false } } }

    /// Whether the inbox has records that the loop has not taken.
    var hasRecords: Bool { inbox.withLock { !$0.records.isEmpty } }

    /// Appends a record, and wakes the thread if it sleeps.
    ///
    /// Returns false if there is no thread to read the record.
    @discardableResult
    func post(_ record: Record) -> Bool {
        guard hasThread else { return false }
        let (accepted, mustWake) = inbox.withLock { inbox in
            switch inbox.life {
            case .running: break
            case .exited: return (false, false)
            case .unstarted, .failed:
                guard record.startsThread else { return (false, false) }
                let failure = begin()
                inbox.life = failure == 0 ? .running : .failed(errno: failure)
                if failure != 0 { return (false, false) }
            }
            inbox.records.append(record)
            defer { inbox.isAsleep = false }
            return (true, inbox.isAsleep)
        }
        if mustWake { eventfd_write(wake, 1) }
        return accepted
    }

    /// Runs `body` on the loop thread; returns false if the loop has ended and `body` will never run.
    @discardableResult
    package func call(_ body: @escaping @Sendable (any Transport) -> Void) -> Bool { post(.call(body)) }

    /// Rejects new transfers, and returns when the running ones have ended and there is no hold, or after `limit`
    /// nanoseconds.
    ///
    /// Meanwhile the loop accepts runs that continue held work.
    package func shutDown(within limit: UInt64?) async {
        await withUnsafeContinuation { done in
            if !post(.close(within: limit, done)) { done.resume() }
        }
    }

    /// Returns once the thread has freed its resources and ended.
    package func waitUntilExited() async {
        guard hasThread else { return }
        await withUnsafeContinuation { continuation in
            let isGone = inbox.withLock { inbox in
                if case .running = inbox.life {
                    inbox.exitWaiters.append(continuation)
                    return false
                }
                return true
            }
            if isGone { continuation.resume() }
        }
    }

    // MARK: Executor

    package func enqueue(_ job: consuming ExecutorJob) {
        let unowned = UnownedJob(job)
        if !post(.job(unowned)) {
            // No thread will ever run this job (in a child of fork, or after the loop has ended and no other job can be
            // running). It runs here, so that a caller that awaits the actor never hangs.
            unowned.runSynchronously(on: asUnownedSerialExecutor())
        }
    }

    package func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

    package func isIsolatingCurrentContext() -> Bool? { !hasThread || isCurrentThread }

    package func checkIsolated() {
        precondition(isIsolatingCurrentContext() == true, "Session state was touched outside its loop thread")
    }

    var isCurrentThread: Bool {
        thread.withLock { $0.map { pthread_equal($0, pthread_self()) != 0 } ?? false }
    }

    /// The transport, for code on the loop thread; nil if the thread has ended.
    package var transport: (any Transport)? { hasThread && isCurrentThread ? confined : nil }

    // MARK: The thread

    private func run() {
        thread.withLock { $0 = pthread_self() }
        deliveries.observer = observerOfAll
        deliveries.beginTurn(now: clock.now())
        let transport = makeTransport(self, deliveries, epoll)
        confined = transport
        var ready = [curlew_ready](repeating: curlew_ready(), count: 128)
        var batch: [Record] = []
        var isStopping = false
        var rounds = 0
        var activity = LoopActivity()
        var turnStart = clock.now()
        transport.beginTurn(now: turnStart)
        while true {
            if batch.isEmpty { takeInbox(into: &batch) }
            if executeAll(&batch, transport) { isStopping = true }
            advance(transport, now: turnStart)
            resumeIfIdle(transport)
            if isStopping && transport.isIdle && exitIfEmpty(transport) { break }

            let now = clock.now()
            if now &- turnStart > configuration.slowTurn { onSlowTurn(now &- turnStart) }
            note(activity.update(isIdle: transport.isIdle, now: now))
            let timeout = timeout(until: min(deadline(of: transport), activity.quietAt), now: now)
            let sleeps = timeout != 0 && markAsleep()
            // Records posted meanwhile, mostly by this thread, are executed before the loop calls epoll again. The
            // clock does not advance meanwhile: a deadline counts as passed only after all bytes that have arrived were
            // read.
            if !sleeps && timeout != 0 && rounds < 8 && now &- turnStart < 1_000_000 {
                rounds += 1
                continue
            }
            rounds = 0
            let count = curlew_epoll_wait(epoll, &ready, CInt(ready.count), sleeps ? timeout : 0)
            if sleeps { takeInbox(into: &batch) }
            turnStart = clock.now()
            deliveries.beginTurn(now: turnStart)
            transport.beginTurn(now: turnStart)
            deliveries.resumeTurns()
            for index in 0..<Int(count) where ready[index].token != SocketTable.wakeToken {
                transport.socketIsReady(token: ready[index].token, mask: ready[index].mask)
            }
            advance(transport, now: turnStart)
        }
        confined = nil
        if activity.isActive { note(.ended) }
    }

    /// Returns the milliseconds until a deadline, rounded up; -1 for no limit.
    ///
    /// The time of a stub does not pass while the loop sleeps, but that of libcurl's timers does.
    private func timeout(until deadline: UInt64, now: UInt64) -> CInt {
        if deadline <= now { return 0 }
        if clock.stub != nil { return 5 }
        guard deadline != Monotonic.never else { return -1 }
        return CInt(clamping: (deadline - now + 999_999) / 1_000_000)
    }

    private func note(_ change: LoopActivity.Change?) {
        switch change {
        case .began: HeapTrimmer.shared.began()
        case .ended: HeapTrimmer.shared.ended()
        case nil: break
        }
    }

    /// Takes the records of the inbox, and marks the loop awake.
    private func takeInbox(into batch: inout [Record]) {
        inbox.withLock { inbox in
            inbox.isAsleep = false
            swap(&inbox.records, &batch)
        }
    }

    /// Marks the loop asleep if the inbox is empty, and returns whether it is.
    private func markAsleep() -> Bool {
        inbox.withLock { inbox in
            inbox.isAsleep = inbox.records.isEmpty
            return inbox.isAsleep
        }
    }

    /// Ends the loop unless records were posted meanwhile.
    ///
    /// All resources are freed before the waiting callers are resumed.
    private func exitIfEmpty(_ transport: any Transport) -> Bool {
        transport.resetConnections()
        deliveries.clear()
        let waiters: [UnsafeContinuation<Void, Never>]? = inbox.withLock { inbox in
            guard inbox.records.isEmpty else { return nil }
            inbox.life = .exited
            defer { inbox.exitWaiters = [] }
            return inbox.exitWaiters
        }
        guard let waiters else { return false }
        thread.withLock { $0 = nil }
        finishClosing(transport)
        resumeIdleWaiters()
        for waiter in waiters { waiter.resume() }
        return true
    }

    /// Executes the records and clears the batch at once, because a record keeps its transfer alive and the thread may
    /// sleep for long.
    ///
    /// Returns whether one of them ends the loop.
    private func executeAll(_ batch: inout [Record], _ transport: any Transport) -> Bool {
        if batch.count == 1 { return execute(batch.removeLast(), transport) }
        var isStopping = false
        for record in batch { if execute(record, transport) { isStopping = true } }
        batch.removeAll(keepingCapacity: true)
        return isStopping
    }

    /// Executes a record; returns true for the record that ends the loop.
    private func execute(_ record: Record, _ transport: any Transport) -> Bool {
        switch record {
        case .job(let job): job.runSynchronously(on: asUnownedSerialExecutor())
        case .taskJob(let job, let executor): job.runSynchronously(on: executor.asUnownedTaskExecutor())
        case .start(let transfer): start(transfer, on: transport)
        case .cancel(let transfer): transport.remove(transfer, .cancelled)
        case .adjust(let transfer): transport.adjust(transfer)
        case .watch(let transfer): deliveries.watch(transfer)
        case .watchAll:
            deliveries.observer = observerOfAll
            for transfer in transport.allTransfers { deliveries.watch(transfer) }
        case .call(let body): body(transport)
        case .awaitIdle: shutdown.awaitsIdle = true
        case .close(let limit, let done): beginShutdown(of: transport, within: limit, done)
        case .stop:
            endPaused(on: transport)
            return true
        }
        return false
    }
}

/// A share in a running loop: when the last share is released, detached transfers finish and the thread ends.
///
/// The last release may happen on any thread, also on the loop's own, so the thread is never joined.
package final class LoopShare: Sendable {
    package let loop: EventLoop

    package init(_ loop: EventLoop) { self.loop = loop }

    deinit { loop.post(.stop) }
}

/// The loop thread as a task executor: tasks that prefer it run between socket events, with no hop to the session.
///
/// Code that opts in must not block: every transfer of the session waits for it.
package final class LoopTaskExecutor: TaskExecutor {
    private let share: LoopShare

    package init(_ share: LoopShare) { self.share = share }

    package func enqueue(_ job: consuming ExecutorJob) {
        let unowned = UnownedJob(job)
        if !share.loop.post(.taskJob(unowned, self)) { unowned.runSynchronously(on: asUnownedTaskExecutor()) }
    }
}
