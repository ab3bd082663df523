// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// The position of an attempt in its transfer.
struct AttemptPosition {
    /// The id of the transfer.
    let id: UInt64
    /// The number of the attempt, from 1.
    var ordinal = 1
    /// Nanoseconds since the transfer was started.
    var offset: UInt64 = 0
    /// Whether the chain sends the attempt while its transfer holds the loop, so that a closing loop accepts it.
    var continues = false
    /// Whether the response is saved to a file.
    var isSaved = false
    /// The heads and failures of the attempt that the chain must see; empty when the chain already runs.
    var interest = SharedInterest.none
}
