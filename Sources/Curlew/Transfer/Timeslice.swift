// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewSupport

/// The timeslice in which a task may work without yielding to other tasks.
///
/// The slice is measured in time, not in steps: yielding after each short step would waste most of the time when many
/// tasks work, and long steps on a session's thread would block the session's loop.
struct Timeslice {
    /// The length in nanoseconds, far above the cost of yielding, and too short to delay the network noticeably.
    private static let length: UInt64 = 2_000_000

    private var end = Monotonic.now() &+ Self.length

    /// Yields when the slice is over, and starts the next one.
    nonisolated(nonsending) mutating func yieldIfOver() async {
        guard Monotonic.now() >= end else { return }
        await Task.yield()
        end = Monotonic.now() &+ Self.length
    }
}
