// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import Glibc

/// Gives the memory that the allocator keeps back to the system, once all loops of the process have been quiet for a while.
///
/// After many large bodies glibc keeps a hundred megabytes for later. Asking it to let go takes a walk through all of it,
/// so that happens on a thread of its own, and only once between two times of work.
final class HeapTrimmer: Sendable {
    static let shared = HeapTrimmer(trim: { curlew_trim_heap() })

    private struct State {
        /// Loops that work, or did a moment ago.
        var active = 0
        /// Counts how often one began.
        var beginnings: UInt64 = 0
        var hasThread = false
        var generation = curlew_fork_generation()
    }

    private let state = Lock(State())
    private let pause: UInt32
    private let trim: @Sendable () -> Void

    /// - Parameters:
    ///   - patience: Nanoseconds from the end of the last loop's work until memory is given back.
    ///   - trim: Gives it back; on a thread of its own.
    init(patience: UInt64 = LoopActivity.patience, trim: @escaping @Sendable () -> Void) {
        pause = UInt32(clamping: patience / 1000)
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
            let (isQuiet, isOver) = change { state in
                let isQuiet = state.active == 0 && state.beginnings == seen
                let isOver = isQuiet || state.active > 0
                if isOver { state.hasThread = false }
                return (isQuiet, isOver)
            }
            if isQuiet { trim() }
            if isOver { return }
        }
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
