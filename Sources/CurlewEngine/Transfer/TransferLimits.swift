// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The limits of a run: times in nanoseconds, sizes in bytes; nil means no limit.
package struct TransferLimits: Sendable {
    package var connect: UInt64?
    /// From the last byte of the request to the end of the response's head.
    package var head: UInt64?
    package var idle: UInt64?
    /// The fewest bytes that must move in each span.
    package var minimumRate: (bytes: Int64, within: UInt64)?
    package var queue: UInt64?
    /// From the start of the transfer, which may have several attempts.
    package var total: UInt64?
    /// The time that the server may take to respond to `Expect: 100-continue`; after that the body is sent anyway.
    package var continueTimeout: UInt64 = 1_000_000_000
    /// The buckets of the run as they are at its start.
    package var throttle: Throttle?
    /// The maximum size of a collected body.
    package var bodySize = Int.max
    /// The maximum size of all heads and the trailers together, and the maximum number of their fields.
    package var headSize = 256 << 10
    package var fieldCount = 1000

    package init() {}

    /// A time limit that a transfer can exceed, except for the one of the queue.
    package enum Kind: Sendable, Hashable {
        case connect, head, idle, total
        /// The minimum number of bytes that must be transferred.
        case slow(bytes: Int64)
    }

    /// Returns the length of a time limit; 0 without a limit.
    func length(of limit: Kind) -> UInt64 {
        switch limit {
        case .connect: connect ?? 0
        case .head: head ?? 0
        case .idle: idle ?? 0
        case .slow: minimumRate?.within ?? 0
        case .total: total ?? 0
        }
    }
}

/// Limits in one object, so that each of the runs with the same limits holds a reference instead of a copy.
package final class SharedLimits: Sendable {
    package let values: TransferLimits

    package init(_ values: TransferLimits) { self.values = values }
}
