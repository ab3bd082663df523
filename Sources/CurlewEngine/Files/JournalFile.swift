// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import Glibc

/// Which file it is, whatever its name; the numbers of devices, which change with the start of a machine, are no part of it.
package struct FileIdentity: Sendable, Hashable {
    /// Its number, which may be given to another file when it is gone.
    package let inode: UInt64
    package let size: Int64
    /// When it was written last; nanoseconds since 1970.
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
    /// Which file has a name; nil when none has.
    package static func identity(of path: String) -> FileIdentity? {
        var status = stat()
        return !hasNUL(path) && lstat(path, &status) == 0 ? FileIdentity(status) : nil
    }
}

extension PartFile {
    /// Which file it is.
    package func identity() throws(DiskFailure) -> FileIdentity {
        var status = stat()
        guard fstat(descriptor.number, &status) == 0 else { throw DiskFailure("cannot look at", path, errno) }
        return FileIdentity(status)
    }
}

/// A file that grows at its end: what could not be added as a whole is not there at all.
///
/// To be called on a disk thread.
package final class JournalFile: Sendable {
    private struct State {
        var descriptor: OwnedDescriptor
        var size: Int64
    }

    package let path: String
    private let name: String
    private let directory: OwnDirectory
    private let state: Lock<State>

    /// Opens a file to be added to, made if there is none.
    package init(_ name: String, in directory: OwnDirectory) throws(DiskFailure) {
        path = directory.path(of: name)
        (self.name, self.directory) = (name, directory)
        let opened = try Self.open(name, directory)
        state = Lock(opened)
    }

    private static func open(_ name: String, _ directory: OwnDirectory) throws(DiskFailure) -> State {
        let descriptor = try directory.file(name)
        var status = stat()
        guard fstat(descriptor.number, &status) == 0 else {
            throw DiskFailure("cannot look at", directory.path(of: name), errno)
        }
        return State(descriptor: descriptor, size: Int64(status.st_size))
    }

    /// What the file holds, of at most `most` bytes; to be asked once, before anything is added.
    package func contents(upTo most: Int) throws(DiskFailure) -> [UInt8] {
        try DiskFile.rest(of: state.withLock { $0.descriptor }.number, path, upTo: most)
    }

    /// Adds bytes, and waits until they are on the disk.
    ///
    /// - Parameter isSynced: Whether it waits.
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

    /// Cuts it off after so many bytes.
    package func truncate(to size: Int64) throws(DiskFailure) {
        let descriptor = state.withLock { $0.descriptor }
        guard ftruncate(descriptor.number, off_t(size)) == 0 else { throw DiskFailure("cannot cut", path, errno) }
        state.withLock { $0.size = size }
    }

    /// Puts other bytes in its place, at once and as a whole.
    ///
    /// - Parameter pieces: What the file is to hold; after a failure, no further ones are asked for.
    package func replace(with pieces: some Sequence<[UInt8]>) throws(DiskFailure) {
        try directory.replace(name, with: pieces)
        let next = try Self.open(name, directory)
        state.withLock { $0 = next }
    }
}

/// A directory that belongs to one process at a time, as long as this lives.
package final class DirectoryLock: Sendable {
    private let descriptor: OwnedDescriptor
    private let process = getpid()

    /// Takes a directory.
    ///
    /// - Throws: A failure with `EWOULDBLOCK` when somebody else has it.
    package init(_ directory: OwnDirectory) throws(DiskFailure) {
        descriptor = try directory.file(Self.name)
        let number = descriptor.number
        guard flock(number, LOCK_EX | LOCK_NB) == 0 else {
            throw DiskFailure("cannot lock", directory.path(of: Self.name), errno)
        }
        // Whose file it is was found out before.
        let owner = Array("\(getpid())\n".utf8)
        _ = ftruncate(number, 0)
        _ = owner.withUnsafeBytes { pwrite(number, $0.baseAddress, $0.count, 0) }
    }

    deinit {
        // A process that was started meanwhile may have the descriptor, too; a child of fork() must not take it from us.
        if getpid() == process { flock(descriptor.number, LOCK_UN) }
    }

    /// The process that has a directory, as it says itself; nil when it does not.
    package static func owner(of directory: String) -> Int32? {
        let bytes = try? DiskFile.contents(of: directory + "/" + name, upTo: 100)
        return Int32(String(decoding: (bytes ?? []).prefix { $0 > 0x20 }, as: UTF8.self))
    }

    private static let name = "lock"
}
