// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A meter that turns a growing count of bytes into a rate, an exponentially weighted moving average.
///
/// The caller passes the time. The meter combines intervals shorter than 100 ms, so that bytes read in one burst do not
/// distort the rate. It corrects for the missing history at the start, so that the first rate is not too low.
package struct RateMeter: Sendable {
    private let timeConstant: Double
    private var last: (time: UInt64, bytes: Int64)?
    private var weighted: Double = 0
    private var weight: Double = 0

    /// Creates a meter in which the weight of the past falls to a third within `timeConstant`.
    package init(timeConstant: Duration = .seconds(3)) {
        self.timeConstant = timeConstant.inSeconds
    }

    /// The rate at the last record; 0 before there are two records 100 ms apart.
    package var bytesPerSecond: Double { weight > 0 ? weighted / weight : 0 }

    /// Records the total number of bytes at a time, in nanoseconds of any steady clock.
    ///
    /// A total below the last one resets the meter.
    package mutating func record(now: UInt64, totalBytes: Int64) {
        guard let last, totalBytes >= last.bytes, now >= last.time else {
            self.last = (now, totalBytes)
            (weighted, weight) = (0, 0)
            return
        }
        guard now - last.time >= 100_000_000 else { return }
        let interval = Double(now - last.time) * 1e-9
        let decay = exp(-interval / timeConstant)
        weighted = weighted * decay + Double(totalBytes - last.bytes) / interval * (1 - decay)
        weight = weight * decay + (1 - decay)
        self.last = (now, totalBytes)
    }
}
