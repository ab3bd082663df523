// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// How fast bytes may pass: so many a second on average.
///
/// Whoever takes goes into debt, and nobody may take before the debt is paid; what was not used is credit for a tenth of a
/// second, so that being late costs nothing.
package struct TokenBucket: Sendable {
    /// Bytes a second.
    private let rate: UInt64
    /// When what was taken is paid for, by the monotonic clock.
    package private(set) var paidAt: UInt64 = 0

    /// A rate that cannot be reached is none: above it, the sums would not fit.
    static let fastest: UInt64 = 1 << 36
    private static let credit: UInt64 = 100_000_000

    /// - Parameter rate: Bytes a second; nil and what is above ``fastest`` makes none.
    package init?(rate: UInt64?) {
        guard let rate, rate <= TokenBucket.fastest else { return nil }
        self.rate = max(rate, 1)
    }

    package mutating func take(_ count: Int, at now: UInt64) {
        // Rounded up: many small pieces are not faster than one.
        let price = (UInt64(clamping: count) &* 1_000_000_000 &+ rate &- 1) / rate
        paidAt = max(paidAt, now &- min(now, TokenBucket.credit)) &+ price
    }

    package func isOpen(at now: UInt64) -> Bool { paidAt <= now }

    /// Bytes worth a twentieth of a second: what is taken at once, so that the wait in between is short.
    package var quantum: Int { Int(min(max(rate / 20, 512), 64 << 10)) }
}

/// The two buckets that a transfer, or all of a loop, draw from.
struct Throttle {
    var sending: TokenBucket?
    var receiving: TokenBucket?

    init(_ bandwidth: Bandwidth) {
        sending = TokenBucket(rate: bandwidth.sending)
        receiving = TokenBucket(rate: bandwidth.receiving)
    }
}

/// Bytes of bodies a second, each way; nil for as many as come.
package struct Bandwidth: Sendable {
    package var sending: UInt64?
    package var receiving: UInt64?

    package init(sending: UInt64? = nil, receiving: UInt64? = nil) {
        self.sending = sending
        self.receiving = receiving
    }

    var isLimited: Bool { sending != nil || receiving != nil }
}
