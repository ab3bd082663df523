// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// A small file of this user that several processes read and replace, without losing each other's changes.
///
/// Call its methods on a disk thread.
package struct SharedFile: Sendable {
    package let path: String
    /// The maximum size in bytes.
    package let limit: Int
    /// The maximum time in milliseconds to wait for other processes.
    private let patience: Int
    /// Called between the opening and the locking of the file, for tests.
    private let opened: @Sendable () -> Void

    package init(
        _ path: String, limit: Int = 64 << 20, patience: Int = 10_000, opened: @escaping @Sendable () -> Void = {}
    ) {
        self.path = path
        self.limit = limit
        self.patience = patience
        self.opened = opened
    }

    /// Returns the contents of the file; nil when there is no file.
    ///
    /// - Throws: A failure with `isForeign` for a link and for a file that another user owns or may write, with `EFBIG`
    ///   for a file that is too large, and with `ENOENT` when there is no directory for the file.
    package func contents() throws(DiskFailure) -> [UInt8]? {
        if let bytes = try DiskFile.contents(of: path, upTo: limit, isOwn: true) { return bytes }
        let directory = DiskFile.directory(of: path)
        guard DiskFile.isDirectory(directory) else { throw DiskFailure("there is no directory", directory, ENOENT) }
        return nil
    }

    /// Whether contents have only white space, as if another program had emptied the file.
    package static func isBlank(_ bytes: [UInt8]) -> Bool { bytes.allSatisfy { $0 == 0x20 || 0x09...0x0D ~= $0 } }

    /// Replaces the contents atomically while no other process does so; creates the file with permissions for this user
    /// only.
    ///
    /// - Parameter change: Receives the present contents and returns the new ones, or nil to leave the file unchanged.
    /// - Throws: The failures of ``contents()``, `EFBIG` for new contents that are too large, and `EWOULDBLOCK` when
    ///   another process holds the lock for too long.
    package func update(_ change: ([UInt8]) -> [UInt8]?) throws(DiskFailure) {
        let lock = try locked()
        defer { flock(lock.number, LOCK_UN) }
        let old = try DiskFile.rest(of: lock.number, path, upTo: limit)
        guard let new = change(old) else { return }
        guard new.count <= limit else { throw DiskFailure("cannot write so many bytes to", path, EFBIG) }
        try DiskFile.replace(path, with: new, isSynced: true, via: temporaryPath)
    }

    /// The path of the temporary file, whose name no other program uses: an existing file of that name is deleted.
    private var temporaryPath: String {
        let directory = DiskFile.directory(of: path)
        let name = path.utf8.lastIndex(of: UInt8(ascii: "/")).map { path[path.utf8.index(after: $0)...] } ?? path[...]
        return "\(directory)/.\(name).curlew-new"
    }

    /// Opens and locks the file that has the path.
    private func locked() throws(DiskFailure) -> OwnedDescriptor {
        try DiskFile.checkPath(path)
        var waited = 0
        while true {
            // O_NONBLOCK: opening a FIFO must not block the disk thread.
            let number = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0o600)
            guard number >= 0 else { throw FileOwner.failure(path, errno) }
            let file = OwnedDescriptor(number)
            try FileOwner.check(number, path, requiresSingleLink: true)
            opened()
            if flock(number, LOCK_EX | LOCK_NB) == 0 {
                // Another process may have replaced the file between the opening and the locking.
                if isAtPath(number) { return file }
            } else {
                guard errno == EWOULDBLOCK || errno == EINTR else { throw DiskFailure("cannot lock", path, errno) }
                _ = poll(nil, 0, 5)
            }
            waited += 5
            guard waited < patience else { throw DiskFailure("cannot lock", path, EWOULDBLOCK) }
        }
    }

    private func isAtPath(_ number: CInt) -> Bool {
        var (open, named) = (stat(), stat())
        return fstat(number, &open) == 0 && lstat(path, &named) == 0 && open.st_ino == named.st_ino
            && open.st_dev == named.st_dev
    }
}
