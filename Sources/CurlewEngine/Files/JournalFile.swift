// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import Glibc
internal import CurlewSupport

/// The identity of a file, independent of its name and of device numbers, which change when the machine restarts.
package struct FileIdentity: Sendable, Hashable {
    /// The inode number, which may be reused after the file is removed.
    package let inode: UInt64
    package let size: Int64
    /// The modification time in nanoseconds since 1970.
    package let writtenAt: Int64

    package init(inode: UInt64, size: Int64, writtenAt: Int64) {
        (self.inode, self.size, self.writtenAt) = (inode, size, writtenAt)
    }

    fileprivate init(_ status: stat) {
        (inode, size) = (UInt64(status.st_ino), Int64(status.st_size))
        writtenAt = Int64(status.st_mtim.tv_sec) &* 1_000_000_000 &+ Int64(status.st_mtim.tv_nsec)
    }
}

extension DiskFile {
    /// Returns the identity of the file at a path; nil when there is no file.
    package static func identity(of path: String) -> FileIdentity? {
        var status = stat()
        return !hasNUL(path) && lstat(path, &status) == 0 ? FileIdentity(status) : nil
    }
}

extension PartialFile {
    /// Returns the identity of the file.
    package func identity() throws(DiskFailure) -> FileIdentity {
        var status = stat()
        guard fstat(descriptor.number, &status) == 0 else { throw DiskFailure("cannot inspect", path, errno) }
        return FileIdentity(status)
    }
}

/// An append-only file; an append that fails leaves no partial data.
///
/// Call its methods on a disk thread.
package final class JournalFile: Sendable {
    private struct State {
        var descriptor: OwnedDescriptor
        var size: Int64
    }

    package let path: String
    private let name: String
    private let directory: PrivateDirectory
    private let state: Lock<State>

    /// Opens a file for appending, and creates it if it is missing.
    package init(_ name: String, in directory: PrivateDirectory) throws(DiskFailure) {
        path = directory.path(of: name)
        (self.name, self.directory) = (name, directory)
        let opened = try Self.open(name, directory)
        state = Lock(opened)
    }

    private static func open(_ name: String, _ directory: PrivateDirectory) throws(DiskFailure) -> State {
        let descriptor = try directory.file(name)
        var status = stat()
        guard fstat(descriptor.number, &status) == 0 else {
            throw DiskFailure("cannot inspect", directory.path(of: name), errno)
        }
        return State(descriptor: descriptor, size: Int64(status.st_size))
    }

    /// Returns the contents of the file; call it once, before the first append.
    ///
    /// - Throws: A failure with `EFBIG` when the file has more than `most` bytes.
    package func contents(upTo most: Int) throws(DiskFailure) -> [UInt8] {
        try DiskFile.rest(of: state.withLock { $0.descriptor }.number, path, upTo: most)
    }

    /// Appends bytes.
    ///
    /// - Parameter isSynced: Whether the method waits until the bytes are on the disk.
    package func append(_ bytes: [UInt8], isSynced: Bool) throws(DiskFailure) {
        let (descriptor, size) = state.withLock { ($0.descriptor, $0.size) }
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeBytes { buffer in
                pwrite(
                    descriptor.number, buffer.baseAddress.map { $0 + done }, bytes.count - done,
                    off_t(size + Int64(done)))
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else {
                let failure = DiskFailure("cannot write", path, errno)
                _ = ftruncate(descriptor.number, off_t(size))
                throw failure
            }
            done += count
        }
        state.withLock { $0.size = size + Int64(done) }
        if isSynced, fdatasync(descriptor.number) != 0 { throw DiskFailure("cannot sync", path, errno) }
    }

    /// Truncates the file to `size` bytes.
    package func truncate(to size: Int64) throws(DiskFailure) {
        let descriptor = state.withLock { $0.descriptor }
        guard ftruncate(descriptor.number, off_t(size)) == 0 else { throw DiskFailure("cannot truncate", path, errno) }
        state.withLock { $0.size = size }
    }

    /// Replaces the contents of the file atomically.
    ///
    /// - Parameter pieces: The new contents; after a failure, the sequence is not read further.
    package func replace(with pieces: some Sequence<[UInt8]>) throws(DiskFailure) {
        try directory.replace(name, with: pieces)
        let next = try Self.open(name, directory)
        state.withLock { $0 = next }
    }
}

/// A lock on a directory for one process at a time, held until deinitialization.
package final class DirectoryLock: Sendable {
    private let descriptor: OwnedDescriptor
    private let process = getpid()

    /// Locks a directory.
    ///
    /// - Throws: A failure with `EWOULDBLOCK` when the directory is already locked.
    package init(_ directory: PrivateDirectory) throws(DiskFailure) {
        descriptor = try directory.file(Self.name)
        let number = descriptor.number
        guard flock(number, LOCK_EX | LOCK_NB) == 0 else {
            throw DiskFailure("cannot lock", directory.path(of: Self.name), errno)
        }
        // The owner of the file was checked when it was opened.
        let owner = Array("\(getpid())\n".utf8)
        _ = ftruncate(number, 0)
        _ = owner.withUnsafeBytes { pwrite(number, $0.baseAddress, $0.count, 0) }
    }

    deinit { release() }

    /// Releases the lock; the object is useless afterwards.
    package func release() {
        // Unlock explicitly, since a process started in the meantime may have inherited the descriptor. A child of
        // fork() must not release the parent's lock.
        if getpid() == process { flock(descriptor.number, LOCK_UN) }
    }

    /// Returns the process ID in the lock file of a directory; nil when it cannot be read.
    package static func owner(of directory: String) -> Int32? {
        let bytes = try? DiskFile.contents(of: directory + "/" + name, upTo: 100)
        return Int32(String(decoding: (bytes ?? []).prefix { $0 > 0x20 }, as: UTF8.self))
    }

    private static let name = "lock"
}
