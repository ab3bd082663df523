// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import Glibc

/// A thread that does the disk's work, so that a slow disk never holds up a loop or a Swift task's thread.
///
/// It starts with the first job and stays; jobs are short, and run one after the other.
package final class DiskThread: Sendable {
    /// Reads files to be sent; every reader stops when its pipe is full.
    static let shared = DiskThread("curlew-disk")
    /// Writes what is received, and opens, places and reads such files.
    package static let saving = DiskThread("curlew-save")
    /// Waits for what was written to be on the disk, which may take long.
    package static let syncing = DiskThread("curlew-sync")
    /// Writes to terminals, which may stand still for as long as somebody likes.
    package static let showing = DiskThread("curlew-show")

    private struct State {
        var jobs: [@Sendable () -> Void] = []
        var isStarted = false
        /// Whether it has found nothing to do, and nobody has woken it since.
        var isWaiting = false
        var generation: UInt64
    }

    private let state = Lock(State(generation: curlew_fork_generation()))
    private let signal = Lock<CInt>(-1)
    private let name: String

    private init(_ name: String) { self.name = name }

    /// What a job gives, run after those before it; nil when there is no thread to run it.
    ///
    /// It is not cancelled with the task that waits.
    package func value<Value: Sendable>(of job: @escaping @Sendable () -> Value) async -> Value? {
        // Handed over by a lock: a continuation that is resumed before its task waits orders memory, too, but the Thread
        // Sanitizer does not always see it.
        let result = Lock<Value?>(nil)
        await withUnsafeContinuation { continuation in
            let isRun = run {
                let value = job()
                result.withLock { $0 = value }
                continuation.resume()
            }
            if !isRun { continuation.resume() }
        }
        return result.withLock { $0 }
    }

    /// Runs `job` after those before it.
    ///
    /// False when there is no thread to run it.
    func run(_ job: @escaping @Sendable () -> Void) -> Bool {
        let (isStarted, wakes) = state.withLock { state in
            let generation = curlew_fork_generation()
            if state.generation != generation {
                // A child of fork() has no threads of its parent, and no use for its jobs.
                state = State(generation: generation)
            }
            if !state.isStarted { state.isStarted = begin() }
            if state.isStarted { state.jobs.append(job) }
            defer { state.isWaiting = false }
            return (state.isStarted, state.isWaiting)
        }
        if wakes { eventfd_write(signal.withLock { $0 }, 1) }
        return isStarted
    }

    private func begin() -> Bool {
        let descriptor = signal.withLock { signal in
            if signal < 0 { signal = curlew_eventfd_create() }
            return signal
        }
        return descriptor >= 0 && startThread(name) { self.work(descriptor) } == 0
    }

    private func work(_ signal: CInt) {
        while true {
            let jobs = state.withLock { state in
                defer { state.jobs = [] }
                state.isWaiting = state.jobs.isEmpty
                return state.jobs
            }
            for job in jobs { job() }
            if jobs.isEmpty {
                var waiting = pollfd(fd: signal, events: Int16(POLLIN), revents: 0)
                poll(&waiting, 1, -1)
                var value = eventfd_t()
                eventfd_read(signal, &value)
            }
        }
    }
}
