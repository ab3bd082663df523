// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// The position of an attempt in its transfer.
struct AttemptPosition {
    /// The transfer.
    let id: UInt64
    /// The number of the attempt, from 1.
    let ordinal: Int
    /// Nanoseconds since the transfer was started.
    let offset: UInt64
    /// Whether the attempt belongs to a held transfer, so that it may start although the session is closing.
    let continues: Bool
    /// The shared state about the transfer's end; nil when the attempt's end is the transfer's end.
    var course: TransferCourse?
    /// Whether the response is saved to a file.
    var isSaved = false
}
