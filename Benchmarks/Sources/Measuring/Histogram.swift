// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Latencies in buckets 3 % wide.
///
/// The first ones are kept as they are: ten thousand tasks with a request each must not have buckets of their own, which
/// would count as memory of the client.
public struct Histogram: Sendable {
    private static let octaves = 40
    private var few: [UInt64] = []
    private var buckets: [UInt32] = []
    private var count = 0

    /// Nothing yet.
    public init() {}

    /// Takes one latency in.
    ///
    /// - Parameter nanoseconds: At least 32 count as different, and at most 9 minutes.
    public mutating func add(_ nanoseconds: UInt64) {
        if buckets.isEmpty && few.count < 4 {
            few.append(nanoseconds)
        } else {
            spread()
            sort(nanoseconds)
        }
    }

    /// Takes all of another one in.
    public mutating func add(_ other: Histogram) {
        for value in other.few { add(value) }
        guard !other.buckets.isEmpty else { return }
        spread()
        for index in buckets.indices { buckets[index] += other.buckets[index] }
        count += other.count
    }

    /// The latency below which a share of all lies, in microseconds; 0 when there are none.
    ///
    /// - Parameter share: From 0 to 1.
    public func microseconds(at share: Double) -> Double {
        var all = self
        all.spread()
        return all.spreadMicroseconds(at: share)
    }

    private func spreadMicroseconds(at share: Double) -> Double {
        let wanted = Int(Double(count) * share)
        var seen = 0
        for (index, number) in buckets.enumerated() where number > 0 {
            seen += Int(number)
            guard seen >= wanted else { continue }
            return Double(UInt64(1) << UInt64(index / 32)) * (1 + (Double(index % 32) + 0.5) / 32) / 1000
        }
        return 0
    }

    /// Moves those that were kept as they are into buckets.
    private mutating func spread() {
        guard buckets.isEmpty else { return }
        buckets = [UInt32](repeating: 0, count: Histogram.octaves * 32)
        for value in few { sort(value) }
        few = []
    }

    private mutating func sort(_ nanoseconds: UInt64) {
        let value = min(max(nanoseconds, 32), 1 << 39)
        let octave = 63 - value.leadingZeroBitCount
        buckets[octave * 32 + Int((value >> UInt64(octave - 5)) & 31)] += 1
        count += 1
    }
}
