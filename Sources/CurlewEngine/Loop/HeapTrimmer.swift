// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import Glibc
internal import CurlewSupport

/// Returns unused heap memory to the system, once all loops of the process have been quiet for a while.
///
/// After many large bodies, glibc keeps a hundred megabytes for later use. Trimming walks through the memory of the
/// whole process. It therefore runs on its own thread, at most once between two periods of work, and only if the
/// process has grown since the last time. Caches that release memory under memory pressure request an immediate trim.
package final class HeapTrimmer: Sendable {
    package static let shared = HeapTrimmer(resident: residentBytes, trim: { curlew_trim_heap() })

    /// The growth of the process, in bytes, from which trimming is worth its cost.
    static let growth = 16 << 20

    private struct State {
        /// The loops that are working or worked a moment ago.
        var active = 0
        /// Incremented when a loop begins to work.
        var beginnings: UInt64 = 0
        var hasThread = false
        /// The smallest size of the process since the last trim, in bytes.
        var least = 0
        /// The number of requests for an immediate trim.
        var requests: UInt64 = 0
        /// Whether a thread handles requests.
        var hasRequestThread = false
        var generation = curlew_fork_generation()
    }

    private let state = Lock(State())
    private let pause: UInt32
    private let resident: @Sendable () -> Int
    private let trim: @Sendable () -> Void

    /// - Parameters:
    ///   - patience: Nanoseconds from the end of the last loop's work until the heap is trimmed.
    ///   - resident: Returns the resident memory of the process in bytes.
    ///   - trim: Trims the heap. Both closures are called on a separate thread.
    init(
        patience: UInt64 = LoopActivity.patience, resident: @escaping @Sendable () -> Int,
        trim: @escaping @Sendable () -> Void
    ) {
        pause = UInt32(clamping: patience / 1000)
        self.resident = resident
        self.trim = trim
    }

    /// Records that a loop has begun to work.
    func began() {
        change { state in
            state.active += 1
            state.beginnings += 1
        }
    }

    /// Records that a loop has been quiet for a while, or has ended.
    func ended() {
        let mustStart = change { state in
            // In a child of fork(), the loops of the parent do not count.
            state.active = max(0, state.active - 1)
            guard state.active == 0, !state.hasThread else { return false }
            state.hasThread = true
            return true
        }
        if mustStart, startThread("curlew-trim", { self.wait() }) != 0 { change { $0.hasThread = false } }
    }

    /// Trims the heap at once on a separate thread, even if the process has not grown.
    ///
    /// Requests that arrive during a trim share the next trim.
    package func request() {
        let mustStart = change { state in
            state.requests += 1
            defer { state.hasRequestThread = true }
            return !state.hasRequestThread
        }
        if mustStart, startThread("curlew-trim", { self.handleRequests() }) != 0 {
            change { $0.hasRequestThread = false }
        }
    }

    private func handleRequests() {
        while true {
            let seen = change { $0.requests }
            trim()
            let rest = resident()
            let isOver = change { state in
                state.least = rest
                if state.requests == seen { state.hasRequestThread = false }
                return state.requests == seen
            }
            if isOver { return }
        }
    }

    private func change<Result>(_ body: (inout State) -> Result) -> Result {
        state.withLock { state in
            if state.generation != curlew_fork_generation() { state = State() }
            return body(&state)
        }
    }

    private func wait() {
        while true {
            let seen = change { $0.beginnings }
            usleep(pause)
            if change({ $0.active == 0 && $0.beginnings == seen }) { trimIfGrown() }
            let isOver = change { state in
                let isOver = state.active > 0 || state.beginnings == seen
                if isOver { state.hasThread = false }
                return isOver
            }
            if isOver { return }
        }
    }

    private func trimIfGrown() {
        let size = resident()
        let hasGrown = change { state in
            state.least = min(state.least, size)
            return size - state.least >= Self.growth
        }
        guard hasGrown else { return }
        trim()
        let rest = resident()
        change { $0.least = rest }
    }

    /// Returns the resident memory of the process in bytes (proc(5), statm).
    private static func residentBytes() -> Int {
        let text = String(decoding: (try? DiskFile.contents(of: "/proc/self/statm", upTo: 4096)) ?? [], as: UTF8.self)
        let pages = text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        return pages * Int(sysconf(Int32(_SC_PAGESIZE)))
    }
}

/// Detects when a loop begins to work and when it has been quiet for a while, with one comparison per turn.
struct LoopActivity {
    enum Change { case began, ended }

    /// Nanoseconds without work after which a loop is quiet.
    static let patience: UInt64 = 5_000_000_000

    private(set) var isActive = false
    /// The time at which the loop becomes quiet unless it works again; `Monotonic.never` while it works or is quiet.
    private(set) var quietAt = Monotonic.never

    /// Records the state of the loop at the end of a turn, and returns the change.
    mutating func update(isIdle: Bool, now: UInt64) -> Change? {
        if !isIdle {
            quietAt = Monotonic.never
            if isActive { return nil }
            isActive = true
            return .began
        }
        guard isActive else { return nil }
        if quietAt == Monotonic.never { quietAt = now &+ Self.patience }
        guard now >= quietAt else { return nil }
        (isActive, quietAt) = (false, Monotonic.never)
        return .ended
    }
}
