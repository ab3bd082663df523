// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CSQLite
internal import CurlewEngine
internal import Glibc

/// The number of changes of an index by all processes, in memory that they share through a file.
///
/// A store compares it with the number at which it read entries, and so knows without SQLite whether they are current.
// Safe because the memory is mapped once and unmapped at the end, and any thread or process may use the atomic
// functions on it.
final class ChangeCounter: @unchecked Sendable {
    private let number: UnsafeMutablePointer<UInt64>
    private let file: OwnedDescriptor

    /// Maps the file of a directory; nil when that is not possible, for example on a file system without memory maps.
    init?(_ directory: PrivateDirectory) {
        guard let file = try? directory.file("changes"), file.resize(to: MemoryLayout<UInt64>.size),
            let memory = file.map(MemoryLayout<UInt64>.size)
        else { return nil }
        self.file = file
        number = memory.bindMemory(to: UInt64.self, capacity: 1)
    }

    deinit { munmap(number, MemoryLayout<UInt64>.size) }

    /// The number of changes; nil if the file was truncated or removed, so that processes do not share it any more.
    var value: UInt64? { file.hasName(MemoryLayout<UInt64>.size) ? curlew_shared_load(number) : nil }

    func increment() { if value != nil { curlew_shared_increment(number) } }
}
