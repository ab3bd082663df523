// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Tells a file that a process of this user has made from one that another user has left in a shared directory.
package enum FileOwner {
    private static let writable: UInt32 = 0o022

    /// What speaks against a file; nil for a regular file of this user that others cannot write.
    ///
    /// - Parameters:
    ///   - mode: Kind and permissions, as `stat` has them.
    ///   - owner: The file's user.
    ///   - links: How many names it has.
    ///   - user: The user of this process.
    ///   - umask: Gives the process's umask; asked where others may write the file.
    package static func objection(
        mode: UInt32, owner: UInt32, links: UInt64 = 1, user: UInt32, umask: () -> UInt32
    ) -> String? {
        guard mode & S_IFMT == S_IFREG else { return "there is something else at" }
        guard owner == user else { return "there is a file of another user (uid \(owner)) at" }
        guard links <= 1 else { return "there is a file with further names at" }
        let open = mode & writable
        // A file that this process makes may be writable to others, too.
        guard open == 0 || open & umask() == 0 else { return "there is a file that other users may write at" }
        return nil
    }

    /// What speaks against a store in a directory; nil for a directory of this user that others cannot write.
    ///
    /// - Parameters:
    ///   - mode: Kind and permissions, as `stat` has them.
    ///   - owner: The directory's user.
    ///   - user: The user of this process.
    package static func objection(toDirectory mode: UInt32, owner: UInt32, user: UInt32) -> String? {
        guard mode & S_IFMT == S_IFDIR else { return "there is something else at" }
        guard owner == user else { return "there is a directory of another user (uid \(owner)) at" }
        return mode & writable == 0 ? nil : "there is a directory that other users may write at"
    }

    /// Refuses an open directory that another user has made, or may write.
    static func check(directory descriptor: CInt, _ path: String) throws(DiskFailure) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw DiskFailure("cannot look at", path, errno) }
        let objection = objection(toDirectory: status.st_mode, owner: status.st_uid, user: geteuid())
        if let objection { throw DiskFailure(foreignStore: objection, path) }
    }

    /// Refuses an open file of a store that another user has made, or may write.
    ///
    /// A store makes its files for this user alone, whatever the umask.
    static func check(ofStore descriptor: CInt, _ path: String) throws(DiskFailure) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw DiskFailure("cannot look at", path, errno) }
        let objection = objection(
            mode: status.st_mode, owner: status.st_uid, links: UInt64(status.st_nlink), user: geteuid(),
            umask: { writable })
        if let objection { throw DiskFailure(foreignStore: objection, path) }
    }

    /// Refuses an open file that another user has made, or may write.
    ///
    /// - Parameter isSole: Whether it must not have another name.
    static func check(_ descriptor: CInt, _ path: String, isSole: Bool) throws(DiskFailure) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw DiskFailure("cannot look at", path, errno) }
        let objection = objection(
            mode: status.st_mode, owner: status.st_uid, links: isSole ? UInt64(status.st_nlink) : 1, user: geteuid(),
            umask: umask)
        if let objection { throw DiskFailure(foreign: objection, path) }
    }

    /// What it means that a file cannot be opened which should be this user's own.
    static func failure(_ path: String, _ code: CInt) -> DiskFailure {
        var status = stat()
        let isThere = lstat(path, &status) == 0
        if isThere, [EISDIR, ELOOP, ENXIO].contains(code) {
            return DiskFailure(foreign: "there is something else at", path)
        }
        if isThere, code == EACCES || code == EPERM, status.st_uid != geteuid() {
            return DiskFailure(foreign: "there is a file of another user (uid \(status.st_uid)) at", path)
        }
        return DiskFailure("cannot open", path, code)
    }

    /// The permissions that new files do not get; the kernel tells them without a change for other threads.
    private static func umask() -> UInt32 {
        let status = String(
            decoding: (try? DiskFile.contents(of: "/proc/self/status", upTo: 1 << 20)) ?? [], as: UTF8.self)
        let line = status.split(separator: "\n").first { $0.hasPrefix("Umask:") }
        return line.flatMap { UInt32($0.dropFirst(6).drop { $0 == "\t" || $0 == " " }, radix: 8) } ?? writable
    }
}

extension DiskFile {
    /// The kind of what has a name and is neither a file, a directory nor a link: "device"; nil for those.
    package static func specialKind(of path: String) -> String? {
        var status = stat()
        guard !hasNUL(path), lstat(path, &status) == 0 else { return nil }
        switch status.st_mode & S_IFMT {
        case S_IFCHR, S_IFBLK: return "device"
        case S_IFIFO: return "FIFO"
        case S_IFSOCK: return "socket"
        default: return nil
        }
    }

    /// Refuses to put a file in the place of a device, a FIFO or a socket.
    package static func checkReplaceable(_ path: String) throws(DiskFailure) {
        if let kind = specialKind(of: path) { throw DiskFailure(special: "there is a \(kind) at", path) }
    }
}
