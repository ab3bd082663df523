// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew

/// Decides which jobs of a loader run, and which requests share a job.
///
/// Each request is a waiter of one job. Waiters with equal keys share a job until it ends. A job ends early only when
/// its last waiter has left. A cancelled job keeps its slot until it has ended; a waiter that arrives then gets a new
/// job. Higher priorities run first; `order` decides between equal ones.
struct LoadQueue<Key: Hashable> {
    /// The number of a waiter.
    typealias Waiter = UInt64
    /// The number of a job; later jobs have higher numbers.
    typealias Job = UInt64

    /// An action for the loader.
    enum Action: Hashable {
        case start(Job)
        case cancel(Job)
    }

    private enum State { case queued, running, cancelled }

    private struct Entry {
        let key: Key?
        var waiters: [Waiter]
        var priority: Request.Priority
        var state = State.queued
    }

    /// The position of a queued job.
    private struct QueuedJob {
        let priority: Request.Priority
        let job: Job
    }

    private let maximum: Int
    private let order: ImageLoader.Order
    private var jobs: [Job: Entry] = [:]
    private var jobOfKey: [Key: Job] = [:]
    private var jobOfWaiter: [Waiter: (job: Job, priority: Request.Priority)] = [:]
    /// The queued jobs; the last one runs next.
    private var queue: [QueuedJob] = []
    private var last: UInt64 = 0
    /// The number of running jobs, also of cancelled ones that have not ended.
    private(set) var active = 0

    /// Creates a queue.
    ///
    /// - Parameters:
    ///   - maximum: The maximum number of running jobs, at least 1.
    ///   - order: The order of jobs of the same priority.
    init(maximum: Int, order: ImageLoader.Order) { (self.maximum, self.order) = (max(maximum, 1), order) }

    /// The number of jobs that wait for a slot.
    var queued: Int { queue.count }

    /// Returns the job of a waiter that has not left.
    func job(of waiter: Waiter) -> Job? { jobOfWaiter[waiter]?.job }

    /// Whether a job is queued or has not ended.
    func contains(_ job: Job) -> Bool { jobs[job] != nil }

    /// Returns a number for a request that needs no job.
    mutating func nextNumber() -> Waiter {
        last += 1
        return last
    }

    /// Adds a waiter.
    ///
    /// - Parameters:
    ///   - key: Equal keys share a job; nil shares with no other waiter.
    ///   - priority: The priority of the waiter; that of a job is the highest of its waiters.
    /// - Returns: The waiter, its job, and whether the job is new.
    mutating func add(_ key: Key?, _ priority: Request.Priority) -> (waiter: Waiter, job: Job, isNew: Bool) {
        last += 1
        let waiter = last
        if let key, let job = jobOfKey[key] {
            jobs[job]?.waiters.append(waiter)
            jobOfWaiter[waiter] = (job, priority)
            adapt(job)
            return (waiter, job, false)
        }
        last += 1
        let job = last
        jobs[job] = Entry(key: key, waiters: [waiter], priority: priority)
        jobOfWaiter[waiter] = (job, priority)
        if let key { jobOfKey[key] = job }
        enqueue(QueuedJob(priority: priority, job: job))
        return (waiter, job, true)
    }

    /// Changes the priority of a waiter.
    mutating func change(_ waiter: Waiter, to priority: Request.Priority) {
        guard let job = jobOfWaiter[waiter]?.job else { return }
        jobOfWaiter[waiter] = (job, priority)
        adapt(job)
    }

    /// Removes a waiter, whose job ends if it has no other.
    mutating func leave(_ waiter: Waiter) -> [Action] {
        guard let (job, _) = jobOfWaiter.removeValue(forKey: waiter), var entry = jobs[job] else { return [] }
        entry.waiters.removeAll { $0 == waiter }
        jobs[job] = entry
        guard entry.waiters.isEmpty else {
            adapt(job)
            return []
        }
        if let key = entry.key { jobOfKey[key] = nil }
        switch entry.state {
        case .queued:
            dequeue(QueuedJob(priority: entry.priority, job: job))
            jobs[job] = nil
            return []
        case .running:
            jobs[job]?.state = .cancelled
            return [.cancel(job)]
        case .cancelled: return []
        }
    }

    /// Starts the next jobs while there are free slots.
    mutating func next() -> [Action] {
        var actions: [Action] = []
        while active < maximum, let place = queue.popLast() {
            jobs[place.job]?.state = .running
            active += 1
            actions.append(.start(place.job))
        }
        return actions
    }

    /// Ends a running job.
    ///
    /// - Returns: Its waiters, in the order in which they came.
    @discardableResult
    mutating func end(_ job: Job) -> [Waiter] {
        guard let entry = jobs[job], entry.state != .queued else { return [] }
        jobs[job] = nil
        active -= 1
        if let key = entry.key, jobOfKey[key] == job { jobOfKey[key] = nil }
        for waiter in entry.waiters { jobOfWaiter[waiter] = nil }
        return entry.waiters
    }

    /// Gives a job the highest priority of its waiters.
    private mutating func adapt(_ job: Job) {
        guard let entry = jobs[job], let priority = entry.waiters.compactMap({ jobOfWaiter[$0]?.priority }).max(),
            priority != entry.priority
        else { return }
        jobs[job]?.priority = priority
        guard entry.state == .queued else { return }
        dequeue(QueuedJob(priority: entry.priority, job: job))
        enqueue(QueuedJob(priority: priority, job: job))
    }

    // MARK: Order

    private func runsLater(_ first: QueuedJob, than second: QueuedJob) -> Bool {
        if first.priority != second.priority { return first.priority < second.priority }
        return order == .fifo ? first.job > second.job : first.job < second.job
    }

    /// The index of a queued job, or the index at which to insert it.
    private func position(of place: QueuedJob) -> Int {
        var (low, high) = (0, queue.count)
        while low < high {
            let middle = (low + high) / 2
            if runsLater(queue[middle], than: place) { low = middle + 1 } else { high = middle }
        }
        return low
    }

    private mutating func enqueue(_ place: QueuedJob) { queue.insert(place, at: position(of: place)) }

    private mutating func dequeue(_ place: QueuedJob) { queue.remove(at: position(of: place)) }
}
