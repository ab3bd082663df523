// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew
internal import CurlewEngine

/// The open index of a store, which is made again when it is damaged or was replaced by another process.
// Safe because only jobs with the path `jobPath` use the index and `inode`, and jobs of one directory run one after the
// other.
final class IndexHolder: @unchecked Sendable {
    private let root: PrivateDirectory
    private let bodies: PrivateDirectory
    private var index: CacheIndex?
    private var inode: UInt64?
    /// The number of changes of the index; nil if processes cannot share it.
    let changes: ChangeCounter?
    /// The path whose directory is the key of all jobs that use the index.
    let jobPath: String

    init(_ root: PrivateDirectory, _ bodies: PrivateDirectory) {
        self.root = root
        self.bodies = bodies
        jobPath = root.path + "/index"
        changes = ChangeCounter(root)
    }

    /// Opens the index, and removes the files that no entry names.
    ///
    /// - Returns: The failure if the index can be neither opened nor made again.
    func open() -> StoreFailure? { perform { index throws(Database.Failure) in try self.sweep(index) }.failure }

    /// Runs a body with the index; a damaged index is made again, and the body runs a second time.
    func perform<Output>(_ body: (CacheIndex) throws(Database.Failure) -> Output) -> Result<Output, StoreFailure> {
        let first = attempt(body)
        guard case .failure(.index(let failure)) = first, failure.isCorrupt else { return first }
        if let failure = repair() { return .failure(failure) }
        return attempt(body)
    }

    private func attempt<Output>(
        _ body: (CacheIndex) throws(Database.Failure) -> Output
    ) -> Result<Output, StoreFailure> {
        do throws(StoreFailure) {
            let index = try current()
            do throws(Database.Failure) { return .success(try body(index)) } catch { throw .index(error) }
        } catch {
            return .failure(error)
        }
    }

    /// Returns the index that the directory has now; opens or makes it if necessary.
    private func current() throws(StoreFailure) -> CacheIndex {
        if let index, let inode, root.inode(of: CacheIndex.fileName) == inode { return index }
        let lock = try locked()
        defer { withExtendedLifetime(lock) {} }
        return try opened()
    }

    /// Returns the lock that a process holds while it opens or replaces the index.
    ///
    /// SQLite does not wait for other processes that create the same database, and closing any other descriptor of a
    /// database would release the locks that this process has on it.
    private func locked() throws(StoreFailure) -> OwnedDescriptor {
        do throws(DiskFailure) {
            let lock = try root.file("lock")
            try lock.waitForLock(root.path(of: "lock"))
            return lock
        } catch {
            throw .file(error)
        }
    }

    /// Opens the index under the lock; a new index gets the entries of the files.
    private func opened() throws(StoreFailure) -> CacheIndex {
        index = nil
        do throws(DiskFailure) {
            // SQLite would create the file with the permissions of the umask.
            if try !root.create(CacheIndex.fileName) { try root.check(CacheIndex.fileName) }
        } catch {
            throw .file(error)
        }
        inode = root.inode(of: CacheIndex.fileName)
        do throws(Database.Failure) {
            let made = try CacheIndex(root) { index throws(Database.Failure) in try adoptFiles(into: index) }
            index = made
            return made
        } catch {
            throw .index(error)
        }
    }

    // MARK: Repair

    /// Replaces a damaged index by one made from the files of bodies.
    ///
    /// - Returns: The failure if that is not possible.
    private func repair() -> StoreFailure? {
        do throws(StoreFailure) {
            let lock = try locked()
            defer { withExtendedLifetime(lock) {} }
            // Another process may have replaced it in the meantime. The open index keeps its inode from being reused.
            guard let inode, root.inode(of: CacheIndex.fileName) == inode else { return nil }
            for end in ["", "-wal", "-shm"] { root.remove(CacheIndex.fileName + end) }
            index = nil
            _ = try opened()
            changes?.increment()
            return nil
        } catch {
            return error
        }
    }

    /// Adds an entry for each readable file of a body to a new index.
    private func adoptFiles(into index: CacheIndex) throws(Database.Failure) {
        for name in (try? bodies.names()) ?? [] {
            guard let id = Int64(name, radix: 16), let file = StoredFile(bodies.path(of: name)),
                Int64(exactly: file.id) == id, let entry = file.entry
            else { continue }
            try index.adopt(entry, file.data, size: file.fileSize, used: DiskCacheStore.now)
        }
    }

    /// Removes the files that no process writes and no entry names.
    private func sweep(_ index: CacheIndex) throws(Database.Failure) {
        try index.withIDs { ids throws(Database.Failure) in
            for name in (try? bodies.names()) ?? [] {
                if name.hasSuffix(DiskCacheStore.temporary) {
                    PartialFile.removeAbandoned(bodies.path(of: name))
                } else if let id = Int64(name, radix: 16), !ids.contains(id) {
                    bodies.remove(name)
                }
            }
        }
    }
}

extension Result {
    fileprivate var failure: Failure? { if case .failure(let failure) = self { failure } else { nil } }
}
