// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import Dispatch
import Glibc

@testable import CurlewEngine

/// A plain thread that a test starts and joins, for code that blocks: the threads of tasks must not block.
final class TestThread {
    struct Refused: Error { let errno: CInt }

    private final class Body {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    private var thread = pthread_t()

    init(_ body: @escaping @Sendable () -> Void) throws {
        let retained = Unmanaged.passRetained(Body(body))
        let failure = pthread_create(
            &thread, nil,
            { argument in
                argument.map { Unmanaged<Body>.fromOpaque($0).takeRetainedValue().run() }
                return nil
            }, retained.toOpaque())
        if failure != 0 {
            retained.release()
            throw Refused(errno: failure)
        }
    }

    func join() { pthread_join(thread, nil) }
}

/// A value that is set once and that threads and tasks can wait for.
final class Latch<Value: Sendable>: Sendable {
    private struct State {
        var value: Value?
        var waiters: [UnsafeContinuation<Value, Never>] = []
    }

    private let state = Lock(State())

    /// The value, or nil while it is unset.
    var current: Value? { state.withLock { $0.value } }

    /// Sets the value; later calls have no effect.
    func set(_ value: Value) {
        let waiters = state.withLock { state in
            if state.value == nil { state.value = value }
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume(returning: value) }
    }

    var value: Value {
        get async {
            await withUnsafeContinuation { waiter in
                let value = state.withLock { state in
                    if state.value == nil { state.waiters.append(waiter) }
                    return state.value
                }
                if let value { waiter.resume(returning: value) }
            }
        }
    }
}

/// A serial task executor that lets a test wait until the tasks resumed on it have run.
final class Lane: TaskExecutor {
    private let queue = DispatchQueue(label: "lane")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { [self] in job.runSynchronously(on: asUnownedTaskExecutor()) }
    }

    /// Returns when every job enqueued before has run until it ended or suspended.
    func drain() async { await withUnsafeContinuation { waiter in queue.async { waiter.resume() } } }
}

/// Returns the number of the current thread, as listed in /proc/self/task.
func threadNumber() -> pid_t {
    var text = [CChar](repeating: 0, count: 64)
    let count = readlink("/proc/thread-self", &text, text.count)
    let target = String(decoding: text.prefix(max(0, count)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    return target.split(separator: "/").last.flatMap { pid_t($0) } ?? 0
}

/// Yields until a condition that cannot notify its waiters holds; returns false if the task is cancelled first.
func eventually(_ condition: () -> Bool) async -> Bool {
    while !condition() {
        if Task.isCancelled { return false }
        await Task.yield()
    }
    return true
}
