// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import Glibc
internal import CurlewSupport

/// A pool of threads for disk operations and other long work, so that they never block a loop or a thread of the Swift
/// runtime.
///
/// Jobs of one key, mostly a directory, run one after the other. Each key with jobs has its own thread, up to
/// `maximum` threads. A file system that hangs therefore delays only its own files, unless jobs wait in `maximum` of
/// its directories. Idle threads end after a while.
package final class DiskThread: Sendable {
    /// Reads files that are sent; every reader stops when its pipe is full.
    static let shared = DiskThread("curlew-disk")
    /// Writes received data, and opens, moves and reads files of received data.
    package static let saving = DiskThread("curlew-save")
    /// Syncs written data to the disk, which may take long.
    package static let syncing = DiskThread("curlew-sync")
    /// Writes to terminals, which may block for an unlimited time.
    package static let showing = DiskThread("curlew-show")
    /// Reads and writes files of cookies and HSTS hosts, which may wait for other processes.
    package static let sharing = DiskThread("curlew-share")
    /// Reads and writes the indexes and bodies of caches on the disk.
    package static let caching = DiskThread("curlew-cache")
    /// Decodes images, each with a key of its own; no more threads than processors.
    package static let decoding = DiskThread(
        "curlew-decode", maximum: max(Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))), 1))
    /// Reads and writes the files of media caches; each reader and each file has a key of its own.
    package static let media = DiskThread("curlew-media")
    /// Writes the secrets of TLS connections.
    package static let keys = DiskThread("curlew-keys")

    private struct State {
        var queue: DiskQueue<@Sendable () -> Void>
        var generation = curlew_fork_generation()
        /// Wakes one thread each time it is raised.
        let signal = Semaphore()
    }

    private let state: Lock<State>
    private let name: String
    private let maximum: Int
    private let patience: Int

    /// Creates a pool.
    ///
    /// - Parameters:
    ///   - name: The name of its threads.
    ///   - maximum: The maximum number of threads.
    ///   - patience: The time in seconds after which an idle thread ends.
    init(_ name: String, maximum: Int = 32, patience: Int = 10) {
        self.name = name
        self.maximum = maximum
        self.patience = patience
        state = Lock(State(queue: DiskQueue(maximum: maximum)))
    }

    /// The number of threads, for tests.
    var threads: Int { state.withLock { $0.queue.threads } }

    /// Runs a job after earlier jobs of the same key, and returns its result; nil when no thread can be started.
    ///
    /// Cancellation of the waiting task does not cancel the job.
    ///
    /// - Parameter path: The file of the job; jobs for files of the same directory run one after the other.
    package func value<Value: Sendable>(
        at path: String = "", of job: @escaping @Sendable () -> Value
    ) async -> Value? {
        await value(in: path.isEmpty ? "" : DiskFile.directory(of: path), of: job)
    }

    /// Runs a job after earlier jobs of the same key, and returns its result; nil when no thread can be started.
    ///
    /// Cancellation of the waiting task does not cancel the job.
    package func value<Value: Sendable>(in key: String, of job: @escaping @Sendable () -> Value) async -> Value? {
        // Pass the result through a lock: a continuation that is resumed before its task suspends also orders memory,
        // but the Thread Sanitizer does not always recognize that.
        let result = Lock<Value?>(nil)
        await withUnsafeContinuation { continuation in
            let isRun = run(in: key) {
                let value = job()
                result.withLock { $0 = value }
                continuation.resume()
            }
            if !isRun { continuation.resume() }
        }
        return result.withLock { $0 }
    }

    /// Runs `job` after earlier jobs for files of the same directory.
    ///
    /// - Returns: False when no thread can be started.
    package func run(at path: String = "", _ job: @escaping @Sendable () -> Void) -> Bool {
        run(in: path.isEmpty ? "" : DiskFile.directory(of: path), job)
    }

    /// Runs `job` after earlier jobs of the same key.
    ///
    /// - Returns: False when no thread can be started.
    package func run(in key: String, _ job: @escaping @Sendable () -> Void) -> Bool {
        state.withLock { state in
            // A child of fork() has no threads of its parent, and must not run the parent's jobs.
            if state.generation != curlew_fork_generation() { state = State(queue: DiskQueue(maximum: maximum)) }
            switch state.queue.add(job, at: key) {
            case .nothing: return true
            case .waking:
                state.signal.raise()
                return true
            case .thread:
                let signal = state.signal
                return startThread(name, { self.work(signal) }) == 0 || state.queue.threadFailed(for: key)
            }
        }
    }

    private func work(_ signal: Semaphore) {
        var key: String?
        while true {
            if let (job, at) = state.withLock({ $0.queue.next(after: key) }) {
                job()
                key = at
            } else {
                key = nil
                while !signal.wait(seconds: patience) {
                    if state.withLock({ $0.queue.removeSleeper() }) { return }
                }
            }
        }
    }
}

/// A counting semaphore without a file descriptor, which a child of `fork()` would share with its parent.
private final class Semaphore: @unchecked Sendable {
    // Safe because the memory is allocated once, and any thread may call the system's functions on it.
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

    /// Waits until the count is positive and decrements it; returns false after a timeout.
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
