// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A token bucket that limits the average number of bytes per second.
///
/// Taking bytes creates a debt, and the bucket stays closed until the debt is paid. Unused time is credited up to a
/// tenth of a second, so a late wake-up does not lower the rate.
package struct TokenBucket: Sendable {
    /// The rate in bytes per second.
    private let rate: UInt64
    /// The time at which the debt is paid, on the monotonic clock.
    package private(set) var paidAt: UInt64 = 0

    /// The largest rate that counts as a limit, in bytes per second; larger rates are unreachable, and the sums would
    /// overflow.
    static let fastest: UInt64 = 1 << 36
    private static let credit: UInt64 = 100_000_000

    /// - Parameter rate: Bytes per second; the result is nil for nil and for rates above ``fastest``.
    package init?(rate: UInt64?) {
        guard let rate, rate <= TokenBucket.fastest else { return nil }
        self.rate = max(rate, 1)
    }

    package mutating func take(_ count: Int, at now: UInt64) {
        // The price is rounded up, so that many small amounts are not faster than one large one.
        let price = (UInt64(clamping: count) &* 1_000_000_000 &+ rate &- 1) / rate
        paidAt = max(paidAt, now &- min(now, TokenBucket.credit)) &+ price
    }

    package func isOpen(at now: UInt64) -> Bool { paidAt <= now }

    /// The bytes of a twentieth of a second, which a transfer takes at once; so the wait in between is short.
    package var quantum: Int { Int(min(max(rate / 20, 512), 64 << 10)) }
}

/// The two buckets of a transfer, or of all transfers of a loop.
package struct Throttle: Sendable {
    var sending: TokenBucket?
    var receiving: TokenBucket?

    /// - Parameters:
    ///   - sending: Bytes of bodies per second; nil for no limit.
    ///   - receiving: Bytes of bodies per second; nil for no limit.
    package init(sending: UInt64? = nil, receiving: UInt64? = nil) {
        self.sending = TokenBucket(rate: sending)
        self.receiving = TokenBucket(rate: receiving)
    }
}
