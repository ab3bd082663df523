// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Latencies in buckets 3 % wide.
public struct Histogram: Sendable {
    private static let octaves = 40
    private var buckets = [UInt32](repeating: 0, count: octaves * 32)
    private var count = 0

    /// Nothing yet.
    public init() {}

    /// Takes one latency in.
    ///
    /// - Parameter nanoseconds: At least 32 count as different, and at most 18 minutes.
    public mutating func add(_ nanoseconds: UInt64) {
        let value = min(max(nanoseconds, 32), 1 << 39)
        let octave = 63 - value.leadingZeroBitCount
        buckets[octave * 32 + Int((value >> UInt64(octave - 5)) & 31)] += 1
        count += 1
    }

    /// Takes all of another one in.
    public mutating func add(_ other: Histogram) {
        for index in buckets.indices { buckets[index] += other.buckets[index] }
        count += other.count
    }

    /// The latency below which a share of all lies, in microseconds; 0 when there are none.
    ///
    /// - Parameter share: From 0 to 1.
    public func microseconds(at share: Double) -> Double {
        let wanted = Int(Double(count) * share)
        var seen = 0
        for (index, number) in buckets.enumerated() where number > 0 {
            seen += Int(number)
            guard seen >= wanted else { continue }
            return Double(UInt64(1) << UInt64(index / 32)) * (1 + (Double(index % 32) + 0.5) / 32) / 1000
        }
        return 0
    }
}
