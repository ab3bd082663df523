// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import Glibc

/// The one thread that reads files to be sent, so that a slow disk never holds up a loop or a Swift task's thread.
///
/// It starts with the first job and stays; jobs are short, since every reader stops when its pipe is full.
final class DiskThread: Sendable {
    static let shared = DiskThread()

    private struct State {
        var jobs: [@Sendable () -> Void] = []
        var isStarted = false
        var generation: UInt64
    }

    private let state = Lock(State(generation: curlew_fork_generation()))
    private let signal = Lock<CInt>(-1)

    private init() {}

    /// Runs `job` after those before it.
    ///
    /// False when there is no thread to run it.
    func run(_ job: @escaping @Sendable () -> Void) -> Bool {
        let isStarted = state.withLock { state in
            let generation = curlew_fork_generation()
            if state.generation != generation {
                // A child of fork() has no threads of its parent, and no use for its jobs.
                state = State(generation: generation)
            }
            if !state.isStarted { state.isStarted = begin() }
            if state.isStarted { state.jobs.append(job) }
            return state.isStarted
        }
        if isStarted { eventfd_write(signal.withLock { $0 }, 1) }
        return isStarted
    }

    private func begin() -> Bool {
        let descriptor = signal.withLock { signal in
            if signal < 0 { signal = curlew_eventfd_create() }
            return signal
        }
        return descriptor >= 0 && startThread("curlew-disk") { self.work(descriptor) } == 0
    }

    private func work(_ signal: CInt) {
        while true {
            let jobs = state.withLock { state in
                defer { state.jobs = [] }
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
