// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine

/// A clock that stands still: it notes how long somebody wanted to sleep, and lets them go on at once.
struct RecordingClock: Clock {
    struct Instant: InstantProtocol {
        var offset: Duration

        func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }
        func duration(to other: Instant) -> Duration { other.offset - offset }
        static func < (lhs: Instant, rhs: Instant) -> Bool { lhs.offset < rhs.offset }
    }

    private let slept = Box()
    /// Called with each wait before it ends.
    var onSleep: @Sendable (Duration) async -> Void = { _ in }

    private final class Box: Sendable { let waits = Lock<[Duration]>([]) }

    var now: Instant { Instant(offset: .zero) }
    var minimumResolution: Duration { .nanoseconds(1) }
    /// How long somebody wanted to sleep, in order.
    var waits: [Duration] { slept.waits.withLock { $0 } }

    func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        slept.waits.withLock { $0.append(deadline.offset) }
        await onSleep(deadline.offset)
        try Task.checkCancellation()
    }
}
