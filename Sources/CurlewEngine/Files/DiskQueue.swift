// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Decides which disk job runs next, and how many threads there are.
///
/// A place is a key for jobs, mostly a directory. Jobs of one place run one after the other, in order of arrival. Jobs
/// of different places run concurrently, each on its own thread, so a place whose disk hangs delays no other place.
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

    private struct Lane {
        var jobs: [Job] = []
        var isRunning = false
    }

    private let most: Int
    /// The jobs of each place that has waiting or running jobs.
    private var lanes: [String: Lane] = [:]
    /// The places with waiting jobs and no running job, in the order in which they are served.
    private var ready: [String] = []
    /// The number of threads.
    private(set) var threads = 0
    /// The number of threads that sleep and were not woken.
    private(set) var sleeping = 0

    /// Creates a queue.
    ///
    /// - Parameter most: The maximum number of threads.
    init(most: Int) { self.most = most }

    /// Adds a job after the other jobs of the same place.
    mutating func add(_ job: Job, at place: String) -> Need {
        var lane = lanes.removeValue(forKey: place) ?? Lane()
        let isNew = lane.jobs.isEmpty && !lane.isRunning
        lane.jobs.append(job)
        lanes[place] = lane
        if !isNew { return .nothing }
        ready.append(place)
        if sleeping > 0 {
            sleeping -= 1
            return .waking
        }
        if threads >= most { return .nothing }
        threads += 1
        return .thread
    }

    /// Takes back a thread that could not be started for a place.
    ///
    /// - Returns: Whether there is another thread, for which the job then waits; otherwise the job leaves the queue.
    mutating func threadFailed(for place: String) -> Bool {
        threads -= 1
        if threads > 0 { return true }
        lanes[place] = nil
        ready.removeAll { $0 == place }
        return false
    }

    /// Returns the next job of a thread and its place; nil when there is no job, in which case the thread must sleep.
    ///
    /// - Parameter last: The place of the job that the thread finished; nil when it finished no job.
    mutating func next(after last: String?) -> (job: Job, place: String)? {
        if let last, var lane = lanes.removeValue(forKey: last) {
            lane.isRunning = false
            if !lane.jobs.isEmpty {
                lanes[last] = lane
                ready.append(last)
            }
        }
        guard let place = ready.first, var lane = lanes.removeValue(forKey: place) else {
            sleeping += 1
            return nil
        }
        ready.removeFirst()
        let job = lane.jobs.removeFirst()
        lane.isRunning = true
        lanes[place] = lane
        return (job, place)
    }

    /// Removes a thread whose sleep timed out.
    ///
    /// - Returns: False when a thread was woken but has not noticed yet, which may be this thread.
    mutating func endSleeper() -> Bool {
        guard sleeping > 0 else { return false }
        sleeping -= 1
        threads -= 1
        return true
    }
}
