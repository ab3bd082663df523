// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import Glibc

/// Threads that do the disk's work, so that a slow disk never holds up a loop or a Swift task's thread.
///
/// Jobs at one place, mostly a directory, run one after the other; each place with work has a thread, up to `most`. So a
/// file system that hangs holds up its own files alone, unless work waits in that many of its directories. Threads end
/// when they have had nothing to do for a while.
package final class DiskThread: Sendable {
    /// Reads files to be sent; every reader stops when its pipe is full.
    static let shared = DiskThread("curlew-disk")
    /// Writes what is received, and opens, places and reads such files.
    package static let saving = DiskThread("curlew-save")
    /// Waits for what was written to be on the disk, which may take long.
    package static let syncing = DiskThread("curlew-sync")
    /// Writes to terminals, which may stand still for as long as somebody likes.
    package static let showing = DiskThread("curlew-show")
    /// Writes the secrets of TLS connections.
    package static let keys = DiskThread("curlew-keys")

    private struct State {
        var queue: DiskQueue<@Sendable () -> Void>
        var generation = curlew_fork_generation()
        /// Wakes one thread for each time it is raised.
        let signal = Semaphore()
    }

    private let state: Lock<State>
    private let name: String
    private let most: Int
    private let patience: Int

    /// - Parameters:
    ///   - most: How many threads there are at once, at most.
    ///   - patience: Seconds after which a thread with nothing to do ends.
    init(_ name: String, most: Int = 32, patience: Int = 10) {
        self.name = name
        self.most = most
        self.patience = patience
        state = Lock(State(queue: DiskQueue(most: most)))
    }

    /// How many threads there are, for tests.
    var threads: Int { state.withLock { $0.queue.threads } }

    /// What a job gives, run after those before it at the same place; nil when there is no thread to run it.
    ///
    /// It is not cancelled with the task that waits.
    ///
    /// - Parameter path: The file that the job is about; jobs about files of one directory run one after the other.
    package func value<Value: Sendable>(
        at path: String = "", of job: @escaping @Sendable () -> Value
    ) async -> Value? {
        // Handed over by a lock: a continuation that is resumed before its task waits orders memory, too, but the Thread
        // Sanitizer does not always see it.
        let result = Lock<Value?>(nil)
        await withUnsafeContinuation { continuation in
            let isRun = run(at: path) {
                let value = job()
                result.withLock { $0 = value }
                continuation.resume()
            }
            if !isRun { continuation.resume() }
        }
        return result.withLock { $0 }
    }

    /// Runs `job` after those before it about files of the same directory.
    ///
    /// False when there is no thread to run it.
    package func run(at path: String = "", _ job: @escaping @Sendable () -> Void) -> Bool {
        run(in: path.isEmpty ? "" : DiskFile.directory(of: path), job)
    }

    /// Runs `job` after those before it at the same place.
    ///
    /// False when there is no thread to run it.
    func run(in place: String, _ job: @escaping @Sendable () -> Void) -> Bool {
        state.withLock { state in
            // A child of fork() has no threads of its parent, and no use for its jobs.
            if state.generation != curlew_fork_generation() { state = State(queue: DiskQueue(most: most)) }
            switch state.queue.add(job, at: place) {
            case .nothing: return true
            case .waking:
                state.signal.raise()
                return true
            case .thread:
                let signal = state.signal
                return startThread(name, { self.work(signal) }) == 0 || state.queue.threadFailed(for: place)
            }
        }
    }

    private func work(_ signal: Semaphore) {
        var place: String?
        while true {
            if let (job, at) = state.withLock({ $0.queue.next(after: place) }) {
                job()
                place = at
            } else {
                place = nil
                while !signal.wait(seconds: patience) {
                    if state.withLock({ $0.queue.endSleeper() }) { return }
                }
            }
        }
    }
}

/// A counter that threads wait for; without a descriptor that a child of `fork()` would share with its parent.
private final class Semaphore: @unchecked Sendable {
    // Safe because the memory is made once, and the system's functions may be called by any thread.
    private let memory = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

    init() {
        memory.initialize(to: sem_t())
        sem_init(memory, 0, 0)
    }

    deinit {
        sem_destroy(memory)
        memory.deallocate()
    }

    func raise() { sem_post(memory) }

    /// Waits until it was raised once more, and takes that back; false when it was not for so long.
    func wait(seconds: Int) -> Bool {
        var end = timespec()
        clock_gettime(CLOCK_REALTIME, &end)
        end.tv_sec += seconds
        while sem_timedwait(memory, &end) != 0 {
            if errno != EINTR { return false }
        }
        return true
    }
}
