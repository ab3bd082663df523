// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims

/// The inode, size and modification time of a file, which are compared to detect a change.
package struct FileStamp: Equatable, Sendable {
    private let inode: UInt64
    private let size, seconds, nanoseconds: Int64

    /// Reads the stamp of a file; nil when there is no such file.
    package init?(_ path: String) {
        var stamp = curlew_stamp()
        guard !DiskFile.hasNUL(path), curlew_file_stamp(path, &stamp) else { return nil }
        (inode, size, seconds, nanoseconds) = (stamp.inode, stamp.size, stamp.seconds, stamp.nanoseconds)
    }
}
