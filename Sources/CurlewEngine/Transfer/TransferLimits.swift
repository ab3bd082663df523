// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The time limits of a transfer in nanoseconds; nil means no limit.
package struct TransferLimits: Sendable {
    package var connect: UInt64?
    /// From the last byte of the request to the end of the response's head.
    package var head: UInt64?
    package var idle: UInt64?
    /// The fewest bytes that must move in each span.
    package var minimumRate: (bytes: Int64, within: UInt64)?
    package var queue: UInt64?
    /// From the start of the transfer, or of its current attempt.
    package var total: UInt64?

    package init() {}

    /// A limit that a transfer can exceed, except for the one of the queue.
    package enum Kind: Sendable {
        case connect, head, idle, total
        /// The minimum number of bytes that must be transferred.
        case slow(bytes: Int64)
    }

    /// Returns the length of a limit; 0 without a limit.
    ///
    /// - Parameter offset: The time between the start of the transfer and that of its current attempt.
    func length(of limit: Kind, offset: UInt64) -> UInt64 {
        switch limit {
        case .connect: connect ?? 0
        case .head: head ?? 0
        case .idle: idle ?? 0
        case .slow: minimumRate?.within ?? 0
        case .total: total.map { $0 &+ offset } ?? 0
        }
    }
}
