// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// The position of an attempt in its transfer.
struct AttemptPlace {
    /// The transfer.
    let id: UInt64
    /// From 1.
    let ordinal: Int
    /// Nanoseconds since the transfer was started.
    let offset: UInt64
    /// Whether it is a step of a transfer that is held, and so may come although the session closes.
    let continues: Bool
    /// The shared state about the transfer's end; nil when the attempt's end is the transfer's end.
    var course: TransferCourse?
    /// Whether its response goes into a file.
    var isSaved = false
}
