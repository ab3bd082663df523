// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// A directory of this user that others cannot write, held open.
///
/// What is in it is found by the descriptor, wherever the directory's path leads later. To be called on a disk thread.
package final class OwnDirectory: Sendable {
    package let path: String
    private let descriptor: OwnedDescriptor

    /// Opens a directory, made for this user alone if it is missing.
    ///
    /// - Throws: A failure of a foreign store for a link, and for a directory that another user has made or may write.
    package init(_ path: String) throws(DiskFailure) {
        try DiskFile.checkPath(path)
        let path = Self.trimmed(path)
        try DiskFile.makePrivateDirectory(path)
        let number = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard number >= 0 else { throw Self.failure(path, errno) }
        self.path = path
        descriptor = OwnedDescriptor(number)
        try FileOwner.check(directory: number, path)
    }

    /// Without the slashes and dots at its end, behind which a link would be followed.
    private static func trimmed(_ path: String) -> String {
        let (slash, dot) = (UInt8(ascii: "/"), UInt8(ascii: "."))
        var bytes = path.utf8[...]
        while bytes.count > 1, bytes.last == slash || bytes.last == dot && bytes.dropLast().last == slash {
            bytes.removeLast()
        }
        return String(Substring(bytes))
    }

    /// What it means that the directory cannot be opened.
    private static func failure(_ path: String, _ code: CInt) -> DiskFailure {
        var status = stat()
        let isThere = lstat(path, &status) == 0
        if isThere, status.st_mode & S_IFMT == S_IFLNK {
            return DiskFailure(foreignStore: "there is a link instead of a directory at", path)
        }
        if isThere, code == EACCES || code == EPERM, status.st_uid != geteuid() {
            return DiskFailure(foreignStore: "there is a directory of another user (uid \(status.st_uid)) at", path)
        }
        return DiskFailure("cannot open", path, code)
    }

    /// Opens a file of the directory to be read and written, made if there is none.
    ///
    /// - Throws: A failure of a foreign store for what is no file of this user alone; nothing of it was changed.
    func file(_ name: String) throws(DiskFailure) -> OwnedDescriptor {
        let path = path(of: name)
        // A pipe of that name must not hold up everybody.
        let flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY
        let number = openat(descriptor.number, name, flags, 0o600)
        guard number >= 0 else {
            let failure = FileOwner.failure(path, errno)
            throw failure.isForeign ? DiskFailure(foreignStore: failure.what, path) : failure
        }
        let file = OwnedDescriptor(number)
        try FileOwner.check(ofStore: number, path)
        return file
    }

    /// Puts a file in place as a whole, and waits until both bytes and name are on the disk.
    ///
    /// - Parameter pieces: What the file is to hold; after a failure, no further ones are asked for.
    package func replace(_ name: String, with pieces: some Sequence<[UInt8]>) throws(DiskFailure) {
        try DiskFile.replace(name, in: descriptor.number, path(of: name), with: pieces, isSynced: true)
        // Some file systems have nothing to wait for.
        guard fsync(descriptor.number) == 0 || errno == EINVAL else { throw DiskFailure("cannot sync", path, errno) }
    }

    /// What a file of the directory is called.
    func path(of name: String) -> String { path == "/" ? "/" + name : "\(path)/\(name)" }
}
