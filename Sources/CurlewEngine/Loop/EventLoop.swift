// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Loop: the one thread of a session. It waits in epoll, lets libcurl act on ready sockets, runs the session actor's
// jobs and carries out the records other threads post. Nothing else in Curlew owns a thread for sockets.

internal import CurlewShims
internal import Glibc

/// The loop thread of a session, which is also the serial executor of its actor.
///
/// Other threads only ever append to the inbox; the thread swaps it out once a turn. A turn is: wait, act on ready
/// sockets and due timers, hand over what arrived, carry out the inbox.
package final class EventLoop: SerialExecutor, @unchecked Sendable {
    // Safe because the inbox is behind its lock, the descriptors and settings never change, and `confined` is touched
    // on the loop thread alone (checked by `transport`).

    /// What other threads ask of the loop.
    enum Record {
        case job(UnownedJob)
        case taskJob(UnownedJob, LoopTaskExecutor)
        case start(EngineTransfer)
        case cancel(EngineTransfer)
        case adjust(EngineTransfer)
        case watch(EngineTransfer)
        case watchEveryone
        case call(@Sendable (CurlTransport) -> Void)
        case stop

        /// Whether it is of use to a loop that has done nothing so far.
        var startsThread: Bool {
            switch self {
            case .stop, .watchEveryone: false
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
    /// Called on the loop thread after a turn that took longer than the configuration allows.
    let onSlowTurn: @Sendable (_ nanoseconds: UInt64) -> Void

    let holds = Lock(Holds())
    /// Who watches all transfers.
    let commonWitness = Lock<(any EngineWitness)?>(nil)

    private let inbox = Lock(Inbox())
    /// Written under the inbox's lock, before the thread starts.
    private var epoll: CInt = -1
    private var wake: CInt = -1
    private let generation: UInt64
    private let thread = Lock<pthread_t?>(nil)
    private var confined: CurlTransport?

    /// Makes a loop whose thread starts with the first record.
    package init(configuration: EngineConfiguration, onSlowTurn: @escaping @Sendable (UInt64) -> Void = { _ in }) {
        self.configuration = configuration
        self.onSlowTurn = onSlowTurn
        generation = curlew_fork_generation()
    }

    deinit { closeDescriptors() }

    /// Makes the descriptors and the thread, under the inbox's lock.
    ///
    /// Gives errno, 0 for success.
    private func begin() -> CInt {
        epoll = curlew_epoll_create()
        wake = epoll < 0 ? -1 : curlew_eventfd_create()
        var failure = epoll < 0 || wake < 0 ? errno : 0
        if failure == 0 {
            // So that it need not be read each time.
            failure = curlew_epoll_update(
                epoll, wake, false, curlew_readable | curlew_once_each, SocketTable.wakeToken)
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

    /// Whether this process still has the loop's thread: false in a child after `fork()`.
    package var hasThread: Bool { generation == curlew_fork_generation() }

    /// Why no thread could be made, when that failed; 0 otherwise.
    package var startFailure: CInt { inbox.withLock { if case .failed(let errno) = $0.life { errno } else { 0 } } }

    package var isRunning: Bool { inbox.withLock { if case .running = $0.life { true } else { false } } }

    /// Whether something was posted that the loop has not taken.
    var hasRecords: Bool { inbox.withLock { !$0.records.isEmpty } }

    /// Appends a record and wakes the thread when it sleeps.
    ///
    /// False when no thread is there to read it.
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

    /// Runs `body` on the loop thread; false when the loop is gone and it never will.
    @discardableResult
    package func call(_ body: @escaping @Sendable (CurlTransport) -> Void) -> Bool { post(.call(body)) }

    /// Refuses new transfers and returns when the running ones have ended and nothing is held, at the latest after `limit`
    /// nanoseconds.
    ///
    /// Runs that continue something held are accepted meanwhile.
    package func shutDown(within limit: UInt64?) async {
        await withUnsafeContinuation { done in
            if !call({ $0.shutDown(within: limit, done: done) }) { done.resume() }
        }
    }

    /// Returns once the thread has freed everything and gone.
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
            // No thread will ever run it (after fork, or after exit when nothing else can be running): run it here,
            // so that whoever awaits the actor is answered and never hangs.
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

    /// The transport, for code that runs on the loop thread; nil when the thread is gone.
    package var transport: CurlTransport? { hasThread && isCurrentThread ? confined : nil }

    // MARK: The thread

    private func run() {
        thread.withLock { $0 = pthread_self() }
        let transport = CurlTransport(loop: self, epoll: epoll)
        confined = transport
        var ready = [curlew_ready](repeating: curlew_ready(), count: 128)
        var batch: [Record] = []
        var isStopping = false
        var rounds = 0
        var activity = LoopActivity()
        var turnStart = Monotonic.now()
        while true {
            takeInbox(into: &batch, sleepingAllowed: false)
            for record in batch { if carryOut(record, transport) { isStopping = true } }
            // At once: a record keeps its transfer alive, and the thread may sleep for long.
            batch.removeAll(keepingCapacity: true)
            transport.advance(now: turnStart)
            transport.tellIfIdle()
            if isStopping && transport.isIdle && exitIfEmpty(transport) { break }

            let now = Monotonic.now()
            if now &- turnStart > configuration.slowTurn { onSlowTurn(now &- turnStart) }
            note(activity.update(isIdle: transport.isIdle, now: now))
            let timeout = activity.timeout(transport.timeout(now: now), now: now)
            let sleeps = timeout != 0 && takeInbox(into: &batch, sleepingAllowed: true)
            // What was posted meanwhile, mostly on this thread, is carried out without asking for events in between. The clock
            // stands still: what is too late is known only when everything was read that has come.
            if !sleeps && timeout != 0 && rounds < 8 && now &- turnStart < 1_000_000 {
                rounds += 1
                continue
            }
            rounds = 0
            let count = curlew_epoll_wait(epoll, &ready, CInt(ready.count), sleeps ? timeout : 0)
            if sleeps { inbox.withLock { $0.isAsleep = false } }
            turnStart = Monotonic.now()
            transport.beginTurn(now: turnStart)
            for index in 0..<Int(count) where ready[index].token != SocketTable.wakeToken {
                transport.socketIsReady(token: ready[index].token, mask: ready[index].mask)
            }
            transport.advance(now: turnStart)
        }
        confined = nil
        if activity.isActive { note(.ended) }
    }

    private func note(_ change: LoopActivity.Change?) {
        switch change {
        case .began: HeapTrimmer.shared.began()
        case .ended: HeapTrimmer.shared.ended()
        case nil: break
        }
    }

    /// Swaps the inbox into `batch`, or, when asked to prepare for sleep, only marks the loop asleep if nothing waits.
    @discardableResult
    private func takeInbox(into batch: inout [Record], sleepingAllowed: Bool) -> Bool {
        inbox.withLock { inbox in
            if sleepingAllowed {
                inbox.isAsleep = inbox.records.isEmpty
                return inbox.isAsleep
            }
            swap(&inbox.records, &batch)
            return false
        }
    }

    /// Ends the loop unless something was posted meanwhile.
    ///
    /// Everything is freed before anyone hears of it.
    private func exitIfEmpty(_ transport: CurlTransport) -> Bool {
        transport.close()
        let waiters: [UnsafeContinuation<Void, Never>]? = inbox.withLock { inbox in
            guard inbox.records.isEmpty else { return nil }
            inbox.life = .exited
            defer { inbox.exitWaiters = [] }
            return inbox.exitWaiters
        }
        guard let waiters else { return false }
        thread.withLock { $0 = nil }
        transport.finishClosing()
        tellIdle()
        for waiter in waiters { waiter.resume() }
        return true
    }

    /// True for the record that ends the loop.
    private func carryOut(_ record: Record, _ transport: CurlTransport) -> Bool {
        switch record {
        case .job(let job): job.runSynchronously(on: asUnownedSerialExecutor())
        case .taskJob(let job, let executor): job.runSynchronously(on: executor.asUnownedTaskExecutor())
        case .start(let transfer): transport.start(transfer)
        case .cancel(let transfer): transport.cancel(transfer)
        case .adjust(let transfer): transport.adjust(transfer)
        case .watch(let transfer): transport.watch(transfer)
        case .watchEveryone: transport.watchEveryone()
        case .call(let body): body(transport)
        case .stop:
            transport.abandonPaused()
            return true
        }
        return false
    }
}

/// A share in a running loop: when the last share goes, detached transfers finish and the thread ends.
///
/// The last release may happen on any thread, the loop's own too, so nothing is joined.
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
