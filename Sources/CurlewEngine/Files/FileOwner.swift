// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Distinguishes files that this user's processes created from files that other users left in a shared directory.
package enum FileOwner {
    private static let writable: UInt32 = 0o022

    /// Returns the reason to reject a file; nil for a regular file of this user that other users cannot write.
    ///
    /// - Parameters:
    ///   - mode: The type and permissions, as in `stat`.
    ///   - owner: The owner of the file.
    ///   - links: The number of hard links.
    ///   - user: The user of this process.
    ///   - umask: Returns the process's umask; called only if other users may write the file.
    package static func rejectionReason(
        mode: UInt32, owner: UInt32, links: UInt64 = 1, user: UInt32, umask: () -> UInt32
    ) -> String? {
        guard mode & S_IFMT == S_IFREG else { return "there is something other than a file at" }
        guard owner == user else { return "there is a file of another user (uid \(owner)) at" }
        guard links <= 1 else { return "there is a file with several hard links at" }
        let open = mode & writable
        // Depending on the umask, files that this process creates are writable by other users too.
        guard open == 0 || open & umask() == 0 else { return "there is a file that other users may write at" }
        return nil
    }

    /// Returns the reason to reject a directory for a store; nil for a directory of this user that others cannot write.
    ///
    /// - Parameters:
    ///   - mode: The type and permissions, as in `stat`.
    ///   - owner: The owner of the directory.
    ///   - user: The user of this process.
    package static func rejectionReason(toDirectory mode: UInt32, owner: UInt32, user: UInt32) -> String? {
        guard mode & S_IFMT == S_IFDIR else { return "there is something other than a directory at" }
        guard owner == user else { return "there is a directory of another user (uid \(owner)) at" }
        return mode & writable == 0 ? nil : "there is a directory that other users may write at"
    }

    /// Throws for an open directory that another user owns or may write.
    static func check(directory descriptor: CInt, _ path: String) throws(DiskFailure) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw DiskFailure("cannot inspect", path, errno) }
        let rejectionReason = rejectionReason(toDirectory: status.st_mode, owner: status.st_uid, user: geteuid())
        if let rejectionReason { throw DiskFailure(foreignStore: rejectionReason, path) }
    }

    /// Throws for an open file of a store that another user owns or may write.
    ///
    /// A store creates its files with permissions for this user only, regardless of the umask.
    static func check(ofStore descriptor: CInt, _ path: String) throws(DiskFailure) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw DiskFailure("cannot inspect", path, errno) }
        try check(ofStore: status, path)
    }

    /// Throws for a file of a store that another user owns or may write.
    static func check(ofStore status: stat, _ path: String) throws(DiskFailure) {
        let rejectionReason = rejectionReason(
            mode: status.st_mode, owner: status.st_uid, links: UInt64(status.st_nlink), user: geteuid(),
            umask: { writable })
        if let rejectionReason { throw DiskFailure(foreignStore: rejectionReason, path) }
    }

    /// Throws for an open file that another user owns or may write.
    ///
    /// - Parameter requiresSingleLink: Whether the file must not have other hard links.
    static func check(_ descriptor: CInt, _ path: String, requiresSingleLink: Bool) throws(DiskFailure) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw DiskFailure("cannot inspect", path, errno) }
        let rejectionReason = rejectionReason(
            mode: status.st_mode, owner: status.st_uid, links: requiresSingleLink ? UInt64(status.st_nlink) : 1,
            user: geteuid(),
            umask: umask)
        if let rejectionReason { throw DiskFailure(foreign: rejectionReason, path) }
    }

    /// Returns the failure for a file that should be this user's own and cannot be opened.
    static func failure(_ path: String, _ code: CInt) -> DiskFailure {
        var status = stat()
        let isThere = lstat(path, &status) == 0
        if isThere, [EISDIR, ELOOP, ENXIO].contains(code) {
            return DiskFailure(foreign: "there is something other than a file at", path)
        }
        if isThere, code == EACCES || code == EPERM, status.st_uid != geteuid() {
            return DiskFailure(foreign: "there is a file of another user (uid \(status.st_uid)) at", path)
        }
        return DiskFailure("cannot open", path, code)
    }

    /// Returns the umask; /proc gives it without the temporary change that umask(2) makes for all threads.
    private static func umask() -> UInt32 {
        let status = String(
            decoding: (try? DiskFile.contents(of: "/proc/self/status", upTo: 1 << 20)) ?? [], as: UTF8.self)
        let line = status.split(separator: "\n").first { $0.hasPrefix("Umask:") }
        return line.flatMap { UInt32($0.dropFirst(6).drop { $0 == "\t" || $0 == " " }, radix: 8) } ?? writable
    }
}

extension DiskFile {
    /// Returns "device", "FIFO" or "socket" for a path of that kind; nil for anything else.
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

    /// Throws if the path is a device, a FIFO or a socket, which a file must not replace.
    package static func checkReplaceable(_ path: String) throws(DiskFailure) {
        if let kind = specialKind(of: path) { throw DiskFailure(special: "there is a \(kind) at", path) }
    }
}
