// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Decides which disk job runs next, and how many threads there are.
///
/// Each job has a key, mostly a directory. Jobs of one key run one after the other, in order of arrival. Jobs of
/// different keys run concurrently, each on its own thread, so a key whose disk hangs delays no other key.
struct DiskQueue<Job> {
    /// The action that a new job requires.
    enum Need: Hashable {
        /// No action: a running thread will take the job.
        case nothing
        /// A sleeping thread must be woken.
        case waking
        /// A new thread must be started.
        case thread
    }

    private struct KeyQueue {
        var jobs: [Job] = []
        var isRunning = false
    }

    private let maximum: Int
    /// The jobs of each key that has waiting or running jobs.
    private var queues: [String: KeyQueue] = [:]
    /// The keys with waiting jobs and no running job, in the order in which they are served.
    private var ready: [String] = []
    /// The number of threads.
    private(set) var threads = 0
    /// The number of threads that sleep and were not woken.
    private(set) var sleeping = 0

    /// Creates a queue.
    ///
    /// - Parameter maximum: The maximum number of threads.
    init(maximum: Int) { self.maximum = maximum }

    /// Adds a job after the other jobs of the same key.
    mutating func add(_ job: Job, at key: String) -> Need {
        var queue = queues.removeValue(forKey: key) ?? KeyQueue()
        let isNew = queue.jobs.isEmpty && !queue.isRunning
        queue.jobs.append(job)
        queues[key] = queue
        if !isNew { return .nothing }
        ready.append(key)
        if sleeping > 0 {
            sleeping -= 1
            return .waking
        }
        if threads >= maximum { return .nothing }
        threads += 1
        return .thread
    }

    /// Takes back a thread that could not be started for a key.
    ///
    /// - Returns: Whether there is another thread, for which the job then waits; otherwise the job leaves the queue.
    mutating func threadFailed(for key: String) -> Bool {
        threads -= 1
        if threads > 0 { return true }
        queues[key] = nil
        ready.removeAll { $0 == key }
        return false
    }

    /// Returns the next job of a thread and its key; nil when there is no job, in which case the thread must sleep.
    ///
    /// - Parameter last: The key of the job that the thread finished; nil when it finished no job.
    mutating func next(after last: String?) -> (job: Job, key: String)? {
        if let last, var queue = queues.removeValue(forKey: last) {
            queue.isRunning = false
            if !queue.jobs.isEmpty {
                queues[last] = queue
                ready.append(last)
            }
        }
        guard let key = ready.first, var queue = queues.removeValue(forKey: key) else {
            sleeping += 1
            return nil
        }
        ready.removeFirst()
        let job = queue.jobs.removeFirst()
        queue.isRunning = true
        queues[key] = queue
        return (job, key)
    }

    /// Removes a thread whose sleep timed out.
    ///
    /// - Returns: False when a thread was woken but has not noticed yet, which may be this thread.
    mutating func removeSleeper() -> Bool {
        guard sleeping > 0 else { return false }
        sleeping -= 1
        threads -= 1
        return true
    }
}
