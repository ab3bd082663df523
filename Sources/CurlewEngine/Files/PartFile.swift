// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Files: what is received and kept. Everything here waits for the disk on a thread of its own; callers are tasks.

internal import CurlewShims
internal import Glibc

/// A file that is being received, locked against others that would write it, too.
///
/// Its own calls block; `FileSink` and tasks make them on a disk thread.
package final class PartFile: Sendable {
    package let path: String
    let descriptor: OwnedDescriptor

    private init(_ path: String, _ descriptor: OwnedDescriptor) {
        self.path = path
        self.descriptor = descriptor
    }

    /// Opens a file, made if there is none, and locks it.
    ///
    /// - Throws: A failure with `EWOULDBLOCK` when another download writes it, with `EEXIST` for a file of another user.
    package static func open(_ path: String) throws(DiskFailure) -> PartFile {
        try DiskFile.checkPath(path)
        while true {
            var made = try create(path)
            if made == nil { made = try find(path) }
            // The file was removed meanwhile.
            guard let part = made else { continue }
            try part.lock()
            // Who had the lock until now may have given the file its final name.
            guard part.isStillThere else { continue }
            if try part.isOurs() { return part }
            // It has a second name: its final one, which it was given where a file cannot just be renamed.
            guard DiskFile.exists(path + ".json") else { throw DiskFailure(foreign: "no download has made", path) }
            guard unlink(path) == 0 || Glibc.errno == ENOENT else { throw part.failure("cannot remove") }
        }
    }

    /// Makes a file; nil when there is something of that name.
    private static func create(_ path: String) throws(DiskFailure) -> PartFile? {
        let number = Glibc.open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o666)
        if number < 0, Glibc.errno == EEXIST { return nil }
        guard number >= 0 else { throw DiskFailure("cannot make", path, Glibc.errno) }
        return PartFile(path, OwnedDescriptor(number))
    }

    /// Opens a file that is there, if it is this user's; nil when there is no such file.
    private static func find(_ path: String) throws(DiskFailure) -> PartFile? {
        let number = Glibc.open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        if number < 0, Glibc.errno == ENOENT { return nil }
        guard number >= 0 else { throw FileOwner.failure(path, Glibc.errno) }
        let part = PartFile(path, OwnedDescriptor(number))
        try FileOwner.check(number, path, isSole: false)
        return part
    }

    /// Opens a file to be read, which others may write.
    package static func reading(_ path: String) throws(DiskFailure) -> PartFile {
        try DiskFile.checkPath(path)
        let number = Glibc.open(path, O_RDONLY | O_CLOEXEC)
        guard number >= 0 else { throw DiskFailure("cannot open", path, Glibc.errno) }
        return PartFile(path, OwnedDescriptor(number))
    }

    private func lock() throws(DiskFailure) {
        if flock(descriptor.number, LOCK_EX | LOCK_NB) == 0 { return }
        // Some file systems know no locks.
        if [ENOLCK, EOPNOTSUPP, ENOSYS, EINVAL].contains(Glibc.errno) { return }
        throw failure("cannot lock")
    }

    /// Whether nobody knows it by another name.
    ///
    /// - Throws: A failure with `EEXIST` for what no download has made.
    private func isOurs() throws(DiskFailure) -> Bool {
        var status = stat()
        guard fstat(descriptor.number, &status) == 0 else { throw failure("cannot look at") }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw DiskFailure(foreign: "there is something else at", path)
        }
        return status.st_nlink == 1
    }

    /// Whether it has its name still.
    package var isStillThere: Bool {
        var (own, named) = (stat(), stat())
        return fstat(descriptor.number, &own) == 0 && lstat(path, &named) == 0 && own.st_ino == named.st_ino
            && own.st_dev == named.st_dev
    }

    /// How many bytes it has.
    package func size() throws(DiskFailure) -> Int64 {
        var status = stat()
        guard fstat(descriptor.number, &status) == 0 else { throw failure("cannot look at") }
        return Int64(status.st_size)
    }

    /// Cuts it off.
    package func truncate(to size: Int64) throws(DiskFailure) {
        guard ftruncate(descriptor.number, off_t(size)) == 0 else { throw failure("cannot cut") }
    }

    /// Sees to it that there is room for all that will come; its size stays.
    ///
    /// Where the file system knows no such thing it is left out.
    package func reserve(from offset: Int64, _ count: Int64) throws(DiskFailure) {
        guard count > 0 else { return }
        let code = curlew_reserve(descriptor.number, offset, count)
        if code == ENOSPC || code == EDQUOT || code == EFBIG {
            throw DiskFailure("there is no room for \(count) bytes more in", path, code)
        }
    }

    /// Writes bytes at a place.
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

    /// The bytes from a place on, as many as there are of `most`.
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

    /// Waits until what was written is on the disk.
    ///
    /// - Parameter isWhole: Whether also the time at which it was written, which is no part of what it takes to read it.
    package func sync(withTimes isWhole: Bool = false) throws(DiskFailure) {
        let code = isWhole ? fsync(descriptor.number) : fdatasync(descriptor.number)
        guard code == 0 else { throw failure("cannot sync") }
    }

    /// Gives it its final name.
    ///
    /// - Parameter replaces: Whether it takes the place of a file of that name.
    /// - Throws: A failure with `EEXIST` when there is one and it does not, or when a device, FIFO or socket has the name.
    package func move(to name: String, replacing replaces: Bool) throws(DiskFailure) {
        try DiskFile.checkPath(name)
        guard isStillThere else { throw DiskFailure("somebody has moved or removed", path, ENOENT) }
        if replaces { try DiskFile.checkReplaceable(name) }
        let code = replaces ? (rename(path, name) == 0 ? 0 : Glibc.errno) : curlew_rename_new(path, name)
        guard code == 0 else { throw DiskFailure("cannot make", name, code) }
    }

    /// Lets others write it; it can be read on.
    package func unlock() { flock(descriptor.number, LOCK_UN) }

    /// Takes its name away.
    package func remove() { if isStillThere { unlink(path) } }

    private func failure(_ what: String) -> DiskFailure { DiskFailure(what, path, Glibc.errno) }
}

/// Small files as a whole, and directories; to be called on a disk thread.
package enum DiskFile {
    /// Refuses a path with a NUL: C would read it up to there, and name another file.
    ///
    /// - Throws: A failure with `EINVAL`.
    package static func checkPath(_ path: String) throws(DiskFailure) {
        if hasNUL(path) { throw DiskFailure("there is a NUL in", path, EINVAL) }
    }

    package static func hasNUL(_ path: String) -> Bool { path.utf8.contains(0) }

    /// What a file of at most `most` bytes holds; nil when there is no such file.
    ///
    /// - Parameter isOwn: Whether it has to be a file that this user has made and others cannot write.
    package static func contents(
        of path: String, upTo most: Int, isOwn: Bool = false
    ) throws(DiskFailure) -> [UInt8]? {
        try checkPath(path)
        // A pipe of that name must not hold up everybody.
        let number = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        if number < 0, errno == ENOENT { return nil }
        guard number >= 0 else {
            throw isOwn ? FileOwner.failure(path, errno) : DiskFailure("cannot open", path, errno)
        }
        defer { close(number) }
        if isOwn { try FileOwner.check(number, path, isSole: true) }
        var status = stat()
        guard fstat(number, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw DiskFailure("there is something else at", path, EEXIST)
        }
        return try rest(of: number, path, upTo: most)
    }

    /// What an open file holds from where it stands, of at most `most` bytes.
    static func rest(of number: CInt, _ path: String, upTo most: Int) throws(DiskFailure) -> [UInt8] {
        var (bytes, piece) = ([UInt8](), [UInt8](repeating: 0, count: 64 << 10))
        while true {
            let count = Glibc.read(number, &piece, piece.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw DiskFailure("cannot read", path, errno) }
            if count == 0 { return bytes }
            bytes += piece[..<count]
            if bytes.count > most { throw DiskFailure("there is too much in", path, EFBIG) }
        }
    }

    /// Puts a file in place as a whole: at every moment there is the old one or the new one.
    ///
    /// - Parameter isSynced: Whether it waits until both bytes and name are on the disk.
    package static func replace(_ path: String, with bytes: [UInt8], isSynced: Bool) throws(DiskFailure) {
        try checkPath(path)
        try replace(path, in: AT_FDCWD, path, with: CollectionOfOne(bytes), isSynced: isSynced)
        if isSynced { try syncDirectory(of: path) }
    }

    /// Puts a file of an open directory in place as a whole.
    ///
    /// - Parameters:
    ///   - name: The file's name in the directory.
    ///   - path: What it is called when that fails.
    ///   - pieces: What the file is to hold; after a failure, no further ones are asked for.
    ///   - isSynced: Whether it waits until the bytes are on the disk; the directory the caller has to sync.
    static func replace(
        _ name: String, in directory: CInt, _ path: String, with pieces: some Sequence<[UInt8]>, isSynced: Bool
    ) throws(DiskFailure) {
        let made = name + ".new"
        // One that is there may be somebody else's to read.
        unlinkat(directory, made, 0)
        let number = openat(directory, made, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard number >= 0 else { throw DiskFailure("cannot make", path + ".new", errno) }
        defer { close(number) }
        do throws(DiskFailure) {
            for bytes in pieces {
                let written = bytes.withUnsafeBytes { buffer -> Result<Void, DiskFailure> in
                    do throws(DiskFailure) { return .success(try write(buffer, to: number, path + ".new")) } catch {
                        return .failure(error)
                    }
                }
                try written.get()
            }
            if isSynced, fdatasync(number) != 0 { throw DiskFailure("cannot sync", path + ".new", errno) }
            guard renameat(directory, made, directory, name) == 0 else { throw DiskFailure("cannot make", path, errno) }
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

    /// Waits until the names in a file's directory are on the disk.
    package static func syncDirectory(of path: String) throws(DiskFailure) {
        let directory = directory(of: path)
        try checkPath(directory)
        let number = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        // It may be one that this user cannot read.
        if number < 0, errno == EACCES || errno == EPERM { return }
        guard number >= 0 else { throw DiskFailure("cannot sync", directory, errno) }
        defer { close(number) }
        // Some file systems have nothing to wait for.
        guard fsync(number) == 0 || errno == EINVAL else {
            throw DiskFailure("cannot sync", directory, errno)
        }
    }

    /// The path of the directory that a file is in.
    package static func directory(of path: String) -> String {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// A path that means the same in every directory.
    package static func absolute(_ path: String) -> String {
        guard path.utf8.first != UInt8(ascii: "/"), let current = getcwd(nil, 0) else { return path }
        defer { free(current) }
        return String(cString: current) + "/" + path
    }

    /// Whether there is something of that name, be it a link that leads nowhere.
    package static func exists(_ path: String) -> Bool {
        var status = stat()
        return !hasNUL(path) && lstat(path, &status) == 0
    }

    /// Whether it is a directory, or a link to one.
    package static func isDirectory(_ path: String) -> Bool { isDirectory(itself: path + "/") }

    /// Whether it is a directory, and no link to one.
    package static func isDirectory(itself path: String) -> Bool {
        var status = stat()
        return !hasNUL(path) && lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    /// Makes a directory and those it is in, where they are missing.
    package static func makeDirectory(_ path: String) throws(DiskFailure) {
        try checkPath(path)
        if isDirectory(path) { return }
        let parent = directory(of: path)
        if parent != path, parent != ".", !isDirectory(parent) { try makeDirectory(parent) }
        guard mkdir(path, 0o777) == 0 || errno == EEXIST else { throw DiskFailure("cannot make", path, errno) }
    }

    /// Makes a directory that only this user can look into, and those it is in, where they are missing.
    package static func makePrivateDirectory(_ path: String) throws(DiskFailure) {
        try checkPath(path)
        if isDirectory(path) { return }
        try makeDirectory(directory(of: path))
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw DiskFailure("cannot make", path, errno) }
    }

    package static func remove(_ path: String) { if !hasNUL(path) { unlink(path) } }

    /// What names this start of the machine; "" where the kernel does not say.
    package static let bootID: String = {
        let bytes = try? contents(of: "/proc/sys/kernel/random/boot_id", upTo: 100)
        return String(decoding: (bytes ?? []).prefix { $0 > 0x20 }, as: UTF8.self)
    }()
}
