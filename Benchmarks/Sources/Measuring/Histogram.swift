// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Latencies in buckets 3 % wide.
///
/// The first values are stored individually: ten thousand tasks with one request each must not allocate buckets, which
/// would count as memory of the client.
public struct Histogram: Sendable {
    private static let octaves = 40
    private var few: [UInt64] = []
    private var buckets: [UInt32] = []
    private var count = 0

    /// Creates an empty histogram.
    public init() {}

    /// Adds one latency.
    ///
    /// - Parameter nanoseconds: The latency; values below 32 ns count as 32 ns, values above 9 minutes as 9 minutes.
    public mutating func add(_ nanoseconds: UInt64) {
        if buckets.isEmpty && few.count < 4 {
            few.append(nanoseconds)
        } else {
            spread()
            sort(nanoseconds)
        }
    }

    /// Adds all latencies of another histogram.
    public mutating func add(_ other: Histogram) {
        for value in other.few { add(value) }
        guard !other.buckets.isEmpty else { return }
        spread()
        for index in buckets.indices { buckets[index] += other.buckets[index] }
        count += other.count
    }

    /// Returns a quantile of the latencies in microseconds; 0 for an empty histogram.
    ///
    /// - Parameter share: The quantile, from 0 to 1.
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

    /// Moves the individually stored values to buckets.
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
