// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import Glibc

/// Gives the memory that the allocator keeps back to the system, once all loops of the process have been quiet for a while.
///
/// After many large bodies glibc keeps a hundred megabytes for later. Asking it to let go takes a walk through all of it,
/// the memory of the whole process. So that happens on a thread of its own, at most once between two times of work, and
/// only when the process has grown since the last time.
final class HeapTrimmer: Sendable {
    static let shared = HeapTrimmer(resident: residentBytes, trim: { curlew_trim_heap() })

    /// By how many bytes the process must have grown.
    static let growth = 16 << 20

    private struct State {
        /// Loops that work, or did a moment ago.
        var active = 0
        /// Counts how often one began.
        var beginnings: UInt64 = 0
        var hasThread = false
        /// The fewest bytes that the process had since memory was last given back.
        var least = 0
        var generation = curlew_fork_generation()
    }

    private let state = Lock(State())
    private let pause: UInt32
    private let resident: @Sendable () -> Int
    private let trim: @Sendable () -> Void

    /// - Parameters:
    ///   - patience: Nanoseconds from the end of the last loop's work until memory is given back.
    ///   - resident: How many bytes of memory the process has.
    ///   - trim: Gives it back. Both are called on a thread of their own.
    init(
        patience: UInt64 = LoopActivity.patience, resident: @escaping @Sendable () -> Int,
        trim: @escaping @Sendable () -> Void
    ) {
        pause = UInt32(clamping: patience / 1000)
        self.resident = resident
        self.trim = trim
    }

    /// A loop works.
    func began() {
        change { state in
            state.active += 1
            state.beginnings += 1
        }
    }

    /// A loop has been quiet for a while, or is gone.
    func ended() {
        let mustStart = change { state in
            // In a child of fork() the loops of its parent do not count.
            state.active = max(0, state.active - 1)
            guard state.active == 0, !state.hasThread else { return false }
            state.hasThread = true
            return true
        }
        if mustStart, startThread("curlew-trim", { self.wait() }) != 0 { change { $0.hasThread = false } }
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
            if change({ $0.active == 0 && $0.beginnings == seen }) { giveBack() }
            let isOver = change { state in
                let isOver = state.active > 0 || state.beginnings == seen
                if isOver { state.hasThread = false }
                return isOver
            }
            if isOver { return }
        }
    }

    private func giveBack() {
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

    /// The resident memory of the process (proc(5), statm).
    private static func residentBytes() -> Int {
        let text = String(decoding: (try? DiskFile.contents(of: "/proc/self/statm", upTo: 4096)) ?? [], as: UTF8.self)
        let pages = text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        return pages * Int(sysconf(Int32(_SC_PAGESIZE)))
    }
}

/// Tells when a loop begins to work, and when it has been quiet for a while; a comparison each turn.
struct LoopActivity {
    enum Change { case began, ended }

    /// Nanoseconds without work after which a loop is quiet.
    static let patience: UInt64 = 5_000_000_000

    private(set) var isActive = false
    /// When the loop is quiet unless it works again; `Monotonic.never` while it works or is quiet.
    private(set) var quietAt = Monotonic.never

    /// Takes note of how the loop stands at the end of a turn.
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

    /// Milliseconds that the loop may sleep, given those that others let it; -1 for any time.
    func timeout(_ others: CInt, now: UInt64) -> CInt {
        guard quietAt != Monotonic.never else { return others }
        let own = CInt(clamping: (max(quietAt, now) - now + 999_999) / 1_000_000)
        return others < 0 ? own : min(own, others)
    }
}
