// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Files: storage of received data. All operations run on disk threads; their callers are tasks.

internal import CurlewShims
internal import Glibc

/// A file that is being received, locked against other writers.
///
/// The methods block; `FileSink` and tasks call them on a disk thread.
package final class PartialFile: Sendable {
    package let path: String
    let descriptor: OwnedDescriptor

    init(_ path: String, _ descriptor: OwnedDescriptor) {
        self.path = path
        self.descriptor = descriptor
    }

    /// Opens a file, creates it if it is missing, and locks it.
    ///
    /// - Throws: A failure with `EWOULDBLOCK` when another download writes the file, with `EEXIST` for a file of
    ///   another user and for a file that no download has made.
    package static func open(_ path: String) throws(DiskFailure) -> PartialFile {
        try DiskFile.checkPath(path)
        while true {
            var file = try create(path)
            if file == nil { file = try openExisting(path) }
            // The file was removed in the meantime.
            guard let part = file else { continue }
            try part.lock()
            // The previous holder of the lock may have moved the file to its final name.
            guard part.stillHasName else { continue }
            if try part.hasSingleLink() { return part }
            // The file has a second hard link: its final name, on a file system without an exclusive rename.
            guard DiskFile.exists(path + ".json") else { throw DiskFailure(foreign: "no download has made", path) }
            guard unlink(path) == 0 || Glibc.errno == ENOENT else { throw part.failure("cannot remove") }
        }
    }

    /// Creates and locks a file with permissions for this user only.
    ///
    /// - Throws: A failure with `EEXIST` when the path already exists.
    package static func createPrivate(_ path: String) throws(DiskFailure) -> PartialFile {
        try DiskFile.checkPath(path)
        while true {
            let number = Glibc.open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
            guard number >= 0 else { throw DiskFailure("cannot create", path, Glibc.errno) }
            let file = PartialFile(path, OwnedDescriptor(number))
            // Another process may take the file for an abandoned one before it is locked.
            _ = flock(number, LOCK_EX)
            if file.stillHasName { return file }
        }
    }

    /// Removes a file that ``createPrivate(_:)`` has created, unless a process still holds its lock.
    package static func removeAbandoned(_ path: String) {
        let number = Glibc.open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard number >= 0 else { return }
        let file = PartialFile(path, OwnedDescriptor(number))
        if flock(number, LOCK_EX | LOCK_NB) == 0 { file.remove() }
    }

    /// Creates a file; returns nil when the path already exists.
    private static func create(_ path: String) throws(DiskFailure) -> PartialFile? {
        let number = Glibc.open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o666)
        if number < 0, Glibc.errno == EEXIST { return nil }
        guard number >= 0 else { throw DiskFailure("cannot create", path, Glibc.errno) }
        return PartialFile(path, OwnedDescriptor(number))
    }

    /// Opens an existing file of this user; returns nil when there is no such file.
    private static func openExisting(_ path: String) throws(DiskFailure) -> PartialFile? {
        let number = Glibc.open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        if number < 0, Glibc.errno == ENOENT { return nil }
        guard number >= 0 else { throw FileOwner.failure(path, Glibc.errno) }
        let part = PartialFile(path, OwnedDescriptor(number))
        try FileOwner.check(number, path, requiresSingleLink: false)
        return part
    }

    /// Opens a file for reading, without a lock and without a check of its owner.
    package static func reading(_ path: String) throws(DiskFailure) -> PartialFile {
        try DiskFile.checkPath(path)
        let number = Glibc.open(path, O_RDONLY | O_CLOEXEC)
        guard number >= 0 else { throw DiskFailure("cannot open", path, Glibc.errno) }
        return PartialFile(path, OwnedDescriptor(number))
    }

    private func lock() throws(DiskFailure) {
        if flock(descriptor.number, LOCK_EX | LOCK_NB) == 0 { return }
        // Some file systems do not support locks.
        if [ENOLCK, EOPNOTSUPP, ENOSYS, EINVAL].contains(Glibc.errno) { return }
        throw failure("cannot lock")
    }

    /// Returns whether the file has no other hard link.
    ///
    /// - Throws: A failure with `EEXIST` if it is not a regular file.
    private func hasSingleLink() throws(DiskFailure) -> Bool {
        var status = stat()
        guard fstat(descriptor.number, &status) == 0 else { throw failure("cannot inspect") }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw DiskFailure(foreign: "there is something other than a file at", path)
        }
        return status.st_nlink == 1
    }

    /// Whether the path still names this file.
    package var stillHasName: Bool {
        var (own, named) = (stat(), stat())
        return fstat(descriptor.number, &own) == 0 && lstat(path, &named) == 0 && own.st_ino == named.st_ino
            && own.st_dev == named.st_dev
    }

    /// Returns the size of the file in bytes.
    package func size() throws(DiskFailure) -> Int64 {
        var status = stat()
        guard fstat(descriptor.number, &status) == 0 else { throw failure("cannot inspect") }
        return Int64(status.st_size)
    }

    /// Truncates the file to `size` bytes.
    package func truncate(to size: Int64) throws(DiskFailure) {
        guard ftruncate(descriptor.number, off_t(size)) == 0 else { throw failure("cannot truncate") }
    }

    /// Reserves disk space for `count` more bytes without changing the size of the file.
    ///
    /// The method does nothing on a file system without support for reservations.
    /// - Throws: A failure when there is not enough space.
    package func reserve(from offset: Int64, _ count: Int64) throws(DiskFailure) {
        guard count > 0 else { return }
        let code = curlew_reserve(descriptor.number, offset, count)
        if code == ENOSPC || code == EDQUOT || code == EFBIG {
            throw DiskFailure("there is no space for \(count) more bytes in", path, code)
        }
    }

    /// Writes bytes at an offset.
    package func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(DiskFailure) {
        var (rest, position) = (bytes, offset)
        while !rest.isEmpty {
            let count = pwrite(descriptor.number, rest.baseAddress, rest.count, off_t(position))
            if count < 0, Glibc.errno == EINTR { continue }
            guard count > 0 else { throw failure("cannot write") }
            rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            position += Int64(count)
        }
    }

    /// Reads up to `most` bytes at an offset; fewer only if the file ends before.
    package func read(at offset: Int64, upTo most: Int) throws(DiskFailure) -> Chunk {
        var count = 0
        var failed: DiskFailure?
        let bytes = [UInt8](unsafeUninitializedCapacity: most) { buffer, initialized in
            repeat {
                count = pread(descriptor.number, buffer.baseAddress, most, off_t(offset))
            } while count < 0
                && Glibc.errno == EINTR
            if count < 0 { failed = failure("cannot read") }
            initialized = max(count, 0)
        }
        if let failed { throw failed }
        return Chunk(bytes)
    }

    /// Fills memory with the bytes at an offset.
    ///
    /// - Throws: A failure with `EIO` when the file ends before.
    package func read(at offset: Int64, into memory: UnsafeMutableRawBufferPointer) throws(DiskFailure) {
        var done = 0
        while done < memory.count {
            let count = pread(
                descriptor.number, memory.baseAddress.map { $0 + done }, memory.count - done,
                off_t(offset) + off_t(done))
            if count < 0, Glibc.errno == EINTR { continue }
            guard count >= 0 else { throw failure("cannot read") }
            guard count > 0 else { throw DiskFailure("there are too few bytes in", path, EIO) }
            done += count
        }
    }

    /// Waits until the written bytes are on the disk.
    ///
    /// - Parameter isWhole: Whether the modification time is synced too, which is not needed to read the bytes back.
    package func sync(withTimes isWhole: Bool = false) throws(DiskFailure) {
        let code = isWhole ? fsync(descriptor.number) : fdatasync(descriptor.number)
        guard code == 0 else { throw failure("cannot sync") }
    }

    /// Moves the file to its final name.
    ///
    /// - Parameter replaces: Whether it replaces an existing file of that name.
    /// - Throws: A failure with `EEXIST` when a file exists and `replaces` is false, and for a device, FIFO or socket.
    package func move(to name: String, replacing replaces: Bool) throws(DiskFailure) {
        try DiskFile.checkPath(name)
        guard stillHasName else { throw DiskFailure("another process moved or removed", path, ENOENT) }
        if replaces { try DiskFile.checkReplaceable(name) }
        let code = replaces ? (rename(path, name) == 0 ? 0 : Glibc.errno) : curlew_rename_new(path, name)
        guard code == 0 else { throw DiskFailure("cannot create", name, code) }
    }

    /// Releases the lock, so that others may write the file; it can still be read.
    package func unlock() { flock(descriptor.number, LOCK_UN) }

    /// Removes the file if the path still names it.
    package func remove() { if stillHasName { unlink(path) } }

    private func failure(_ operation: String) -> DiskFailure { DiskFailure(operation, path, Glibc.errno) }
}

/// Operations on whole small files and on directories; call them on a disk thread.
package enum DiskFile {
    /// Throws for a path with a NUL, where the C string would end and name another file.
    ///
    /// - Throws: A failure with `EINVAL`.
    package static func checkPath(_ path: String) throws(DiskFailure) {
        if hasNUL(path) { throw DiskFailure("there is a NUL in", path, EINVAL) }
    }

    package static func hasNUL(_ path: String) -> Bool { path.utf8.contains(0) }

    /// Returns the contents of a file; nil when there is no such file.
    ///
    /// - Parameters:
    ///   - path: The path of the file.
    ///   - most: The maximum size in bytes; a larger file causes a failure with `EFBIG`.
    ///   - isOwn: Whether the file must be owned by this user and not writable by other users.
    package static func contents(
        of path: String, upTo most: Int, isOwn: Bool = false
    ) throws(DiskFailure) -> [UInt8]? {
        try checkPath(path)
        // O_NONBLOCK: opening a FIFO must not block the disk thread.
        let number = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        if number < 0, errno == ENOENT { return nil }
        guard number >= 0 else {
            throw isOwn ? FileOwner.failure(path, errno) : DiskFailure("cannot open", path, errno)
        }
        defer { close(number) }
        if isOwn { try FileOwner.check(number, path, requiresSingleLink: true) }
        var status = stat()
        guard fstat(number, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw DiskFailure("there is something other than a file at", path, EEXIST)
        }
        return try rest(of: number, path, upTo: most)
    }

    /// Reads an open file from its current position to its end; more than `most` bytes are a failure with `EFBIG`.
    package static func rest(of number: CInt, _ path: String, upTo most: Int) throws(DiskFailure) -> [UInt8] {
        var (bytes, piece) = ([UInt8](), [UInt8](repeating: 0, count: 64 << 10))
        while true {
            let count = Glibc.read(number, &piece, piece.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw DiskFailure("cannot read", path, errno) }
            if count == 0 { return bytes }
            bytes += piece[..<count]
            if bytes.count > most { throw DiskFailure("there are too many bytes in", path, EFBIG) }
        }
    }

    /// Replaces a file atomically: at any time the path has either the old or the new contents.
    ///
    /// - Parameters:
    ///   - isSynced: Whether the method waits until the bytes and the name are on the disk.
    ///   - temporary: The path of the temporary file, `path` with ".new" unless given; an existing file of that name is
    ///     deleted.
    package static func replace(
        _ path: String, with bytes: [UInt8], isSynced: Bool, via temporary: String? = nil
    ) throws(DiskFailure) {
        try checkPath(path)
        try replace(path, in: AT_FDCWD, path, with: CollectionOfOne(bytes), isSynced: isSynced, via: temporary)
        if isSynced { try syncDirectory(of: path) }
    }

    /// Replaces a file of an open directory atomically.
    ///
    /// - Parameters:
    ///   - name: The file's name in the directory.
    ///   - path: The path of the file for error messages.
    ///   - pieces: The new contents; after a failure, the sequence is not read further.
    ///   - isSynced: Whether the method waits until the bytes are on the disk; the caller must sync the directory.
    ///   - temporary: The name of the temporary file; `name` with ".new" unless given.
    static func replace(
        _ name: String, in directory: CInt, _ path: String, with pieces: some Sequence<[UInt8]>, isSynced: Bool,
        via temporary: String? = nil
    ) throws(DiskFailure) {
        let made = temporary ?? name + ".new"
        let shown = temporary ?? path + ".new"
        // Remove an existing file instead of reusing it: other users may be able to read it.
        unlinkat(directory, made, 0)
        let number = openat(directory, made, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard number >= 0 else { throw DiskFailure("cannot create", shown, errno) }
        defer { close(number) }
        do throws(DiskFailure) {
            for bytes in pieces {
                let written = bytes.withUnsafeBytes { buffer -> Result<Void, DiskFailure> in
                    do throws(DiskFailure) { return .success(try write(buffer, to: number, shown)) } catch {
                        return .failure(error)
                    }
                }
                try written.get()
            }
            if isSynced, fdatasync(number) != 0 { throw DiskFailure("cannot sync", shown, errno) }
            guard renameat(directory, made, directory, name) == 0 else {
                throw DiskFailure("cannot create", path, errno)
            }
        } catch {
            unlinkat(directory, made, 0)
            throw error
        }
    }

    private static func write(
        _ bytes: UnsafeRawBufferPointer, to file: CInt, _ path: String
    ) throws(DiskFailure) {
        var rest = bytes
        while !rest.isEmpty {
            let count = Glibc.write(file, rest.baseAddress, rest.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw DiskFailure("cannot write", path, errno) }
            rest = UnsafeRawBufferPointer(rebasing: rest[count...])
        }
    }

    /// Waits until the names in the directory of a file are on the disk.
    package static func syncDirectory(of path: String) throws(DiskFailure) {
        let directory = directory(of: path)
        try checkPath(directory)
        let number = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        // The directory may not be readable by this user.
        if number < 0, errno == EACCES || errno == EPERM { return }
        guard number >= 0 else { throw DiskFailure("cannot sync", directory, errno) }
        defer { close(number) }
        // Some file systems do not support fsync for directories (EINVAL).
        guard fsync(number) == 0 || errno == EINVAL else {
            throw DiskFailure("cannot sync", directory, errno)
        }
    }

    /// Returns the path of the directory of a file.
    package static func directory(of path: String) -> String {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// Returns an absolute path, based on the current directory.
    package static func absolute(_ path: String) -> String {
        guard path.utf8.first != UInt8(ascii: "/"), let current = getcwd(nil, 0) else { return path }
        defer { free(current) }
        return String(cString: current) + "/" + path
    }

    /// Returns whether a path exists; a broken link exists too.
    package static func exists(_ path: String) -> Bool {
        var status = stat()
        return !hasNUL(path) && lstat(path, &status) == 0
    }

    /// Returns whether a path is a directory or a link to a directory.
    package static func isDirectory(_ path: String) -> Bool { isDirectory(itself: path + "/") }

    /// Returns whether a path is a directory and not a link to one.
    package static func isDirectory(itself path: String) -> Bool {
        var status = stat()
        return !hasNUL(path) && lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    /// Creates a directory and its missing parents.
    package static func makeDirectory(_ path: String) throws(DiskFailure) {
        try checkPath(path)
        if isDirectory(path) { return }
        let parent = directory(of: path)
        if parent != path, parent != ".", !isDirectory(parent) { try makeDirectory(parent) }
        guard mkdir(path, 0o777) == 0 || errno == EEXIST else { throw DiskFailure("cannot create", path, errno) }
    }

    /// Creates a directory with permissions for this user only, and its missing parents with default permissions.
    package static func makePrivateDirectory(_ path: String) throws(DiskFailure) {
        try checkPath(path)
        if isDirectory(path) { return }
        try makeDirectory(directory(of: path))
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw DiskFailure("cannot create", path, errno) }
    }

    package static func remove(_ path: String) { if !hasNUL(path) { unlink(path) } }

    /// The kernel's boot ID of this start of the machine; an empty string when it is not available.
    package static let bootID: String = {
        let bytes = try? contents(of: "/proc/sys/kernel/random/boot_id", upTo: 100)
        return String(decoding: (bytes ?? []).prefix { $0 > 0x20 }, as: UTF8.self)
    }()
}
