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
    func open() -> StoreFailure? {
        let result = perform { index throws(Database.Failure) in try self.sweep(index) }
        if case .failure(let failure) = result { return failure }
        return nil
    }

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

    /// Returns the index that the directory has now.
    private func current() throws(StoreFailure) -> CacheIndex {
        let found = root.inode(of: CacheIndex.fileName)
        if let index, found == inode, found != nil { return index }
        index = nil
        // SQLite would create the file with the permissions of the umask.
        do throws(DiskFailure) { _ = try root.file(CacheIndex.fileName) } catch { throw .file(error) }
        inode = root.inode(of: CacheIndex.fileName)
        do throws(Database.Failure) {
            let made = try CacheIndex(root)
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
        index = nil
        do throws(DiskFailure) {
            let lock = try root.file("lock")
            defer { withExtendedLifetime(lock) {} }
            try lock.waitForLock(root.path(of: "lock"))
            // Another process may have replaced it in the meantime.
            guard root.inode(of: CacheIndex.fileName) == inode else { return nil }
            for end in ["", "-wal", "-shm"] { root.remove(CacheIndex.fileName + end) }
        } catch {
            return .file(error)
        }
        let result = attempt { index throws(Database.Failure) in try self.sweep(index) }
        changes?.increment()
        if case .failure(let failure) = result { return failure }
        return nil
    }

    /// Removes the files without an entry; without any entry, makes the entries from the files.
    private func sweep(_ index: CacheIndex) throws(Database.Failure) {
        try index.withIDs { ids throws(Database.Failure) in
            for name in (try? bodies.names()) ?? [] {
                let path = bodies.path(of: name)
                guard !name.hasSuffix(DiskCacheStore.temporary) else {
                    PartialFile.removeAbandoned(path)
                    continue
                }
                guard let id = Int64(name, radix: 16), !ids.contains(id) else { continue }
                guard ids.isEmpty, let file = StoredFile(path), Int64(exactly: file.id) == id,
                    let entry = file.entry
                else {
                    bodies.remove(name)
                    continue
                }
                try index.adopt(entry, file.data, size: file.fileSize, used: DiskCacheStore.now)
            }
        }
    }
}
