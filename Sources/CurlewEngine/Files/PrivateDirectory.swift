// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// An open directory of this user that other users cannot write.
///
/// Files of the directory are opened relative to the descriptor, even if the path later names another directory. Call
/// the methods on a disk thread.
package final class PrivateDirectory: Sendable {
    package let path: String
    private let descriptor: OwnedDescriptor

    /// Opens a directory, and creates it with permissions for this user only if it is missing.
    ///
    /// - Throws: A failure with `isForeignStore` for a link, and for a directory that another user owns or may write.
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

    /// Returns the path without trailing slashes and dots, which would make the kernel follow a link.
    private static func trimmed(_ path: String) -> String {
        let (slash, dot) = (UInt8(ascii: "/"), UInt8(ascii: "."))
        var bytes = path.utf8[...]
        while bytes.count > 1, bytes.last == slash || bytes.last == dot && bytes.dropLast().last == slash {
            bytes.removeLast()
        }
        return String(Substring(bytes))
    }

    /// Returns the failure for a directory that cannot be opened.
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

    /// Opens a file of the directory for reading and writing, and creates it if it is missing.
    ///
    /// - Throws: A failure with `isForeignStore` if it is not a regular file of this user only; the file is not
    ///   changed.
    package func file(_ name: String) throws(DiskFailure) -> OwnedDescriptor {
        let path = path(of: name)
        // O_NONBLOCK: opening a FIFO must not block the disk thread.
        let flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY
        let number = openat(descriptor.number, name, flags, 0o600)
        guard number >= 0 else {
            let failure = FileOwner.failure(path, errno)
            throw failure.isForeign ? DiskFailure(foreignStore: failure.operation, path) : failure
        }
        let file = OwnedDescriptor(number)
        try FileOwner.check(ofStore: number, path)
        return file
    }

    /// Creates an empty file with permissions for this user only; returns false if the name exists.
    package func create(_ name: String) throws(DiskFailure) -> Bool {
        let number = openat(descriptor.number, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        if number < 0, errno == EEXIST { return false }
        guard number >= 0 else { throw DiskFailure("cannot create", path(of: name), errno) }
        close(number)
        return true
    }

    /// Throws for a file that is not a regular file of this user only, without opening it.
    package func check(_ name: String) throws(DiskFailure) {
        var status = stat()
        guard fstatat(descriptor.number, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else {
            throw DiskFailure("cannot inspect", path(of: name), errno)
        }
        try FileOwner.check(ofStore: status, path(of: name))
    }

    /// Returns the names in the directory, in any order, except "." and "..".
    package func names() throws(DiskFailure) -> [String] {
        // The stream closes its descriptor.
        let copy = openat(descriptor.number, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard copy >= 0, let stream = fdopendir(copy) else { throw DiskFailure("cannot read", path, errno) }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != "." && name != ".." { names.append(name) }
        }
        return names
    }

    /// Returns the size of a file in bytes; nil unless it is a regular file of this user only.
    package func size(of name: String) -> Int64? {
        var status = stat()
        guard fstatat(descriptor.number, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { return nil }
        do throws(DiskFailure) { try FileOwner.check(ofStore: status, path(of: name)) } catch { return nil }
        return Int64(status.st_size)
    }

    /// Returns the contents of a file; nil unless it is a regular file of this user only with at most `most` bytes.
    package func contents(of name: String, upTo most: Int) -> [UInt8]? {
        guard size(of: name) != nil, let file = try? file(name) else { return nil }
        return try? DiskFile.rest(of: file.number, path(of: name), upTo: most)
    }

    /// Removes a file of the directory; returns false if there is no such file.
    @discardableResult
    package func remove(_ name: String) -> Bool { unlinkat(descriptor.number, name, 0) == 0 }

    /// Renames a file of the directory; an existing file of the new name is replaced.
    package func rename(_ name: String, to new: String) throws(DiskFailure) {
        guard renameat(descriptor.number, name, descriptor.number, new) == 0 else {
            throw DiskFailure("cannot rename", path(of: name), errno)
        }
    }

    /// Returns the number of the inode of a file of the directory; nil if there is no such file.
    package func inode(of name: String) -> UInt64? {
        var status = stat()
        return fstatat(descriptor.number, name, &status, AT_SYMLINK_NOFOLLOW) == 0 ? UInt64(status.st_ino) : nil
    }

    /// Replaces a file atomically, and waits until its bytes and its name are on the disk.
    ///
    /// - Parameter pieces: The new contents; after a failure, the sequence is not read further.
    package func replace(_ name: String, with pieces: some Sequence<[UInt8]>) throws(DiskFailure) {
        try DiskFile.replace(name, in: descriptor.number, path(of: name), with: pieces, isSynced: true)
        // Some file systems do not support fsync for directories (EINVAL).
        guard fsync(descriptor.number) == 0 || errno == EINVAL else { throw DiskFailure("cannot sync", path, errno) }
    }

    /// Returns the path of a file of the directory.
    package func path(of name: String) -> String { path == "/" ? "/" + name : "\(path)/\(name)" }
}

extension OwnedDescriptor {
    /// Waits up to ten seconds for the exclusive lock of the file, which ends with the descriptor.
    ///
    /// - Throws: A failure with `EWOULDBLOCK` when another process holds the lock for too long.
    package func waitForLock(_ path: String) throws(DiskFailure) {
        for _ in 0..<2000 {
            if flock(number, LOCK_EX | LOCK_NB) == 0 { return }
            guard errno == EWOULDBLOCK || errno == EINTR else { throw DiskFailure("cannot lock", path, errno) }
            _ = poll(nil, 0, 5)
        }
        throw DiskFailure("cannot lock", path, EWOULDBLOCK)
    }
}

extension OwnedDescriptor {
    /// Makes a smaller file `count` bytes long; returns false when there is no space.
    package func resize(to count: Int) -> Bool {
        var status = stat()
        guard fstat(number, &status) == 0 else { return false }
        // Memory without space behind it would end the process at the first access.
        return Int(status.st_size) >= count || posix_fallocate(number, 0, off_t(count)) == 0
    }

    /// Whether the file still has a name, and at least `count` bytes.
    package func hasName(_ count: Int) -> Bool {
        var status = stat()
        return fstat(number, &status) == 0 && status.st_nlink > 0 && Int(status.st_size) >= count
    }

    /// Maps the first bytes of the file into memory that processes share; nil when that is not possible.
    package func map(_ count: Int) -> UnsafeMutableRawPointer? {
        let memory = mmap(nil, count, PROT_READ | PROT_WRITE, MAP_SHARED, number, 0)
        return memory == MAP_FAILED ? nil : memory
    }
}
