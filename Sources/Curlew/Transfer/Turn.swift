// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewSupport

/// How long a task may work without letting others go first.
///
/// Measured in time, not in steps: steps that are short would else be mostly waiting where many tasks work, and steps that
/// are long would keep a session's loop, if this is its thread, from the wire.
struct Turn {
    /// Nanoseconds; far above what giving way costs, and below what anybody on the wire notices.
    private static let length: UInt64 = 2_000_000

    private var end = Monotonic.now() &+ Self.length

    /// Gives way when the turn is over, and begins the next.
    nonisolated(nonsending) mutating func giveWayIfOver() async {
        guard Monotonic.now() >= end else { return }
        await Task.yield()
        end = Monotonic.now() &+ Self.length
    }
}
