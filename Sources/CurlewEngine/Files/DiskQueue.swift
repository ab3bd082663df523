// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Decides which job of the disk runs next, and how many threads there are.
///
/// Jobs of one place run one after the other, in the order they came. Places run side by side, each on a thread, so that a
/// place where the disk does not answer delays no other one.
struct DiskQueue<Job> {
    /// What a new job needs.
    enum Need: Hashable {
        /// A thread comes to it by itself.
        case nothing
        /// One of the sleeping threads must be woken.
        case waking
        /// A new thread must be started.
        case thread
    }

    private struct Lane {
        var jobs: [Job] = []
        var isRunning = false
    }

    private let most: Int
    /// Places with jobs, and those whose job is running.
    private var lanes: [String: Lane] = [:]
    /// Places with jobs of which no job is running, in the order in which they are served.
    private var ready: [String] = []
    /// All threads, and those that sleep and were not woken.
    private(set) var threads = 0
    private(set) var sleeping = 0

    /// - Parameter most: How many threads there are at once, at most.
    init(most: Int) { self.most = most }

    /// Adds a job behind those of the same place.
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

    /// Takes back a thread that could not be started for a place, whose job waits for another thread.
    ///
    /// Gives whether there is another thread; the job leaves the queue otherwise.
    mutating func threadFailed(for place: String) -> Bool {
        threads -= 1
        if threads > 0 { return true }
        lanes[place] = nil
        ready.removeAll { $0 == place }
        return false
    }

    /// The next job of a thread, and its place; nil when there is nothing to do, so that the thread sleeps from now on.
    ///
    /// - Parameter last: The place of the job that the thread has finished; nil when it has finished no job.
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

    /// Ends a thread that has slept for long.
    ///
    /// False when a thread was woken and has not found out yet: it might be this one.
    mutating func endSleeper() -> Bool {
        guard sleeping > 0 else { return false }
        sleeping -= 1
        threads -= 1
        return true
    }
}
