// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewShims
import CurlewTesting
import Dispatch
import Glibc
import Testing

@testable import CurlewEngine

/// Engine transfers to a server on the loopback interface.
struct EngineBench {
    let server: MockServer
    let share: LoopShare
    let trust: TrustDomain

    init(_ configuration: EngineConfiguration = EngineConfiguration()) throws {
        server = try MockServer()
        share = LoopShare(EventLoop(configuration: configuration))
        trust = TrustDomain(prepare: { true }, judge: { _ in nil })
        _ = CurlVersion.current
    }

    func plan(_ path: String, method: String = "GET", upload: TransferPlan.Upload = .none) -> TransferPlan {
        var plan = TransferPlan(
            method: method, url: server.url(path), host: "127.0.0.1", port: server.port, isSecure: false,
            lines: HeaderLines([]), upload: upload, trust: trust)
        plan.isIdempotent = ["GET", "HEAD", "PUT"].contains(method)
        return plan
    }

    func transfer(_ path: String, method: String = "GET", upload: TransferPlan.Upload = .none) -> EngineTransfer {
        EngineTransfer(plan(path, method: method, upload: upload), on: share.loop)
    }
}

extension TransferPlan {
    /// Changes the URL of the plan; host, port and scheme stay unchanged unless given.
    mutating func lead(to url: String, host: String? = nil, port: UInt16? = nil, isSecure: Bool? = nil) {
        target = PlannedURL(
            url, host: host ?? self.host, port: port ?? self.port, isSecure: isSecure ?? self.isSecure)
    }
}

@Suite("After fork()", .serialized, .timeLimit(.minutes(5)))
struct ForkTests {
    /// The body of a child process, which returns the exit status.
    private final class Child {
        let run: () -> CInt
        init(_ run: @escaping () -> CInt) { self.run = run }
    }

    /// Runs `body` in a forked child and returns its exit status or the negated signal; a child that hangs is killed.
    ///
    /// A child may inherit a locked lock of Swift's runtime from another thread. A deadlock in the engine would happen
    /// every time, so a child that was killed is retried.
    private func fork(_ body: @escaping () -> CInt) -> CInt {
        var status = forkOnce(body)
        for _ in 0..<2 where status == -SIGALRM { status = forkOnce(body) }
        return status
    }

    private func forkOnce(_ body: @escaping () -> CInt) -> CInt {
        let child = Child(body)
        return withExtendedLifetime(child) {
            curlew_run_in_fork(
                { argument in
                    dieUnlessQuick()
                    guard let argument else { return 99 }
                    return Unmanaged<Child>.fromOpaque(argument).takeUnretainedValue().run()
                }, Unmanaged.passUnretained(child).toOpaque())
        }
    }

    @Test func childStatusAndSignalAreReturned() {
        #expect(fork { 7 } == 7)
        #expect(fork { raise(SIGKILL) } == -SIGKILL)
    }

    @Test func unstartedLoopHasNoThreadInAChild() {
        let loop = EventLoop(configuration: EngineConfiguration())
        #expect(loop.hasThread)
        let status = fork {
            if loop.hasThread { return 1 }
            if loop.call({ _ in }) { return 2 }
            if loop.transport != nil { return 3 }
            return loop.isIsolatingCurrentContext() == true ? 0 : 4
        }
        #expect(status == 0)
        #expect(loop.hasThread, "the parent keeps it")
    }

    @Test func transferStartedInAChildFailsAsClosed() async throws {
        let bench = try EngineBench()
        bench.server.on("GET", "/", .text("hello"))
        let first = bench.transfer("/")
        first.start()
        #expect(await first.waitForEndUncancelled().failure == nil)
        let cold = bench.transfer("/")
        let status = fork {
            cold.start()
            guard let failure = cold.outcome?.failure else { return 1 }
            guard case .closed = failure.reason else { return 2 }
            guard case .finished = cold.snapshot.state else { return 3 }
            // Calls on a finished transfer have no effect and return.
            cold.cancel()
            cold.pause()
            cold.priority = 3
            first.cancel()
            return first.outcome?.failure == nil ? 0 : 4
        }
        #expect(status == 0)
        cold.start()
        #expect(await cold.waitForEndUncancelled().failure == nil, "the parent's copy is unaffected")
    }

    @Test func cancellationInAChildLeavesTheParentsTransferRunning() async throws {
        let bench = try EngineBench()
        let gate = Gate()
        bench.server.on("GET", "/", .text("hello").fault(.stall(gate), at: .body(2)))
        let transfer = bench.transfer("/")
        transfer.start()
        await gate.waitUntilReached()
        let status = fork {
            transfer.cancel()
            guard let failure = transfer.outcome?.failure else { return 1 }
            if case .closed = failure.reason { return 0 }
            return 2
        }
        #expect(status == 0)
        gate.open()
        let outcome = await transfer.waitForEndUncancelled()
        #expect(outcome.failure == nil)
        #expect(transfer.takeBodyChunk().map(Array.init) == Array("hello".utf8))
    }

    @Test func childNeverWaitsForLocksHeldByParentThreads() async throws {
        let bench = try EngineBench()
        let loop = bench.share.loop
        // Swift's runtime must know the types already: a child forked while another thread instantiates a type hangs.
        let closed = LoopShare(EventLoop(configuration: EngineConfiguration()))
        closed.loop.call { _ in }
        closed.loop.post(.stop)
        await closed.loop.waitUntilExited()
        let known = EngineTransfer(bench.plan("/"), on: closed.loop)
        known.start()
        #expect(known.outcome?.failure != nil)
        let isOver = Lock(false)
        // Two threads hold the loop's locks as often as they can.
        let threads = try (0..<2).map { _ in
            try TestThread {
                while !isOver.withLock({ $0 }) {
                    loop.call { _ in }
                    _ = loop.startFailure
                }
            }
        }
        for _ in 0..<20 {
            let transfer = bench.transfer("/")
            let status = fork {
                transfer.start()
                return transfer.outcome?.failure == nil ? 1 : 0
            }
            #expect(status == 0)
        }
        isOver.withLock { $0 = true }
        for thread in threads { thread.join() }
    }

    /// A wake-up in the child must not reach a thread of the parent.
    @Test func childHasItsOwnDiskThreads() async {
        let disk = DiskThread("curlew-test", patience: 60)
        // The parent's thread has slept once and sleeps again.
        for _ in 0..<2 { _ = await disk.value { true } }
        let status = fork {
            for _ in 0..<300 {
                let done = DispatchSemaphore(value: 0)
                if !disk.run({ done.signal() }) { return 1 }
                done.wait()
                // Gives the thread time to sleep, so that the next job has to wake it.
                for _ in 0..<50 { sched_yield() }
            }
            return disk.threads == 1 ? 0 : 2
        }
        #expect(status == 0)
        #expect(await disk.value { true } == true)
    }

    @Test func childWatchesMemoryWithItsOwnThread() async throws {
        let scene = try MemoryScene()
        defer { withExtendedLifetime(scene) {} }
        let monitor = MemoryMonitor(scene.places)
        let first = Latch<Bool>()
        let number = monitor.observe { _ in first.set(true) }
        _ = await first.value
        let status = fork {
            let done = DispatchSemaphore(value: 0)
            let number = monitor.observe { if $0.support.watched.count == 3 { done.signal() } }
            done.wait()
            monitor.end(number)
            return 0
        }
        #expect(status == 0)
        #expect(monitor.isWatching)
        monitor.end(number)
    }

    @Test func loopReleasedInAChildKeepsTheParentsLoopRunning() async throws {
        let share = Lock<LoopShare?>(LoopShare(EventLoop(configuration: EngineConfiguration())))
        let isRunning = Latch<Bool>()
        share.withLock { $0 }?.loop.call { _ in isRunning.set(true) }
        _ = await isRunning.value
        let status = fork {
            share.withLock { $0 = nil }
            return 0
        }
        #expect(status == 0)
        #expect(share.withLock { $0 }?.loop.call { _ in } == true)
    }
}

/// Ends a child process that hangs.
///
/// The threads of tasks block every signal, and a child inherits that.
private func dieUnlessQuick() {
    var alone = sigset_t()
    sigemptyset(&alone)
    sigaddset(&alone, SIGALRM)
    pthread_sigmask(SIG_UNBLOCK, &alone, nil)
    alarm(5)
}
