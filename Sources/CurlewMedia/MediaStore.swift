// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew
internal import CurlewEngine
internal import CurlewSupport
internal import FoundationEssentials

/// The directory of a cache: a record and a sparse file for each key, and a lock that one process holds.
///
/// A record is written after the bytes that it names are synced, and removed before them. So a record never names bytes
/// that are missing, whenever the process ends.
final class MediaStore: Sendable {
    let directory: PrivateDirectory
    private let lock: DirectoryLock
    private let limit: Int64
    private let state: Lock<State>
    /// Sent when a source was saved after its last use.
    private let finished = Signal()

    private struct State {
        var table = MediaTable()
        var records: [MediaKey: MediaRecord] = [:]
        var sources: [MediaKey: MediaSource] = [:]
        /// The keys whose records on the disk lack the time of the last use.
        var touched: Set<MediaKey> = []
        /// The number of jobs that change the directory.
        var jobs = 0
        var isClosed = false
        /// Whether another cache may use the directory, so that this one must not change it any more.
        var isUnlocked = false
    }

    /// Opens a directory, creates it if it is missing, locks it, and removes what cannot be used; call it on a disk
    /// thread.
    ///
    /// - Throws: A failure with `isForeignStore` for a directory of another user, with `isBusy` while another process
    ///   or cache uses it.
    init(_ path: String, limit: Int64) throws(DiskFailure) {
        directory = try PrivateDirectory(path)
        lock = try DirectoryLock(directory)
        self.limit = limit
        var state = State()
        let names = try directory.names()
        var kept: Set<String> = []
        for name in names where name.hasSuffix(MediaRecord.suffix) {
            guard let key = MediaKey(String(name.dropLast(MediaRecord.suffix.utf8.count))),
                let record = Self.record(key, in: directory)
            else { continue }
            kept.formUnion([name, record.name])
            state.records[key] = record
            state.table.set(Self.item(of: record), for: key)
        }
        for name in names where MediaRecord.isOwnName(name) && !kept.contains(name) { directory.remove(name) }
        for key in state.table.evict(above: limit) {
            directory.remove(key.text + MediaRecord.suffix)
            if let name = state.records.removeValue(forKey: key)?.name { directory.remove(name) }
        }
        self.state = Lock(state)
    }

    /// Reads a record; nil unless it is intact, and a file of this user has all bytes that it names.
    private static func record(_ key: MediaKey, in directory: PrivateDirectory) -> MediaRecord? {
        guard let bytes = directory.contents(of: key.text + MediaRecord.suffix, upTo: MediaRecord.maximumSize),
            let record = MediaRecord(bytes, of: key), let size = directory.size(of: record.name),
            record.intervals?.ranges.last.map({ $0.upperBound <= size }) ?? true
        else { return nil }
        return record
    }

    private static func item(of record: MediaRecord) -> MediaTable.Item {
        MediaTable.Item(
            bytes: record.intervals?.count ?? 0, usedAt: record.usedAt, length: record.facts.length,
            contentType: record.facts.contentType)
    }

    /// The path for the jobs of a file, so that they run one after the other.
    func jobPath(_ key: MediaKey) -> String { directory.path(of: key.text) + "/file" }

    // MARK: Uses

    /// Returns the source of a file, and counts a use of it; nil when the cache is closed.
    func acquire(_ key: MediaKey, make: () -> MediaSource) -> MediaSource? {
        let made = make()
        return state.withLock { state in
            if state.isClosed { return nil }
            state.table.acquire(key)
            if let known = state.sources[key] { return known }
            state.sources[key] = made
            return made
        }
    }

    /// Counts a further use of a source that is in use.
    func retain(_ key: MediaKey) { state.withLock { $0.table.acquire(key) } }

    /// Ends a use; after the last one, the source is saved and closed.
    func release(_ source: MediaSource) {
        let isLast = state.withLock { $0.table.release(source.key) }
        guard isLast else { return }
        source.lastUseEnded()
        Task { await finish(source) }
    }

    private func finish(_ source: MediaSource) async {
        await source.save()
        let isUnused = state.withLock { state in
            guard !state.table.isInUse(source.key), state.sources[source.key] === source else { return false }
            state.sources[source.key] = nil
            return true
        }
        if isUnused { source.close() }
        evict()
        finished.send()
    }

    /// Returns the record of a stored file.
    func record(_ key: MediaKey) -> MediaRecord? { state.withLock { $0.records[key] } }

    /// Returns the current time as the time of a use, in microseconds since 1970.
    func nextUse() -> Int64 {
        let now = Int64(Date().timeIntervalSince1970 * 1_000_000)
        return state.withLock { $0.table.nextUse(now: now) }
    }

    // MARK: Files

    /// Counts a job that changes the directory; returns false when another cache may use the directory.
    private func beginJob() -> Bool {
        state.withLock { state in
            if !state.isUnlocked { state.jobs += 1 }
            return !state.isUnlocked
        }
    }

    private func endJob() {
        state.withLock { $0.jobs -= 1 }
        finished.send()
    }

    /// Opens the bytes of a record; nil if they are not all there.
    ///
    /// Call it on a disk thread.
    func open(_ record: MediaRecord) -> PartialFile? {
        guard directory.size(of: record.name) != nil, let file = try? PartialFile.open(record.name, in: directory),
            let intervals = record.intervals, intervals.ranges.allSatisfy({ file.hasData(in: $0) })
        else { return nil }
        return file
    }

    /// Creates the file for the bytes of a key.
    func create(_ key: MediaKey) async throws(DiskFailure) -> (name: String, file: PartialFile) {
        let (directory, name) = (directory, MediaRecord.dataName(of: key))
        guard beginJob() else { throw DiskFailure.closed(directory.path) }
        defer { endJob() }
        return try await DiskThread.media.result(at: jobPath(key)) { () throws(DiskFailure) in
            (name, try PartialFile.open(name, in: directory))
        }
    }

    /// Writes a record after the bytes that it names; returns whether that succeeded.
    ///
    /// - Parameter isCurrent: Whether the record still describes the file; asked right before the record is written.
    func save(
        _ record: MediaRecord, of key: MediaKey, _ file: PartialFile, isCurrent: @escaping @Sendable () -> Bool
    ) async -> Bool {
        guard let bytes = record.encoded(), beginJob() else { return false }
        defer { endJob() }
        let synced = await DiskThread.syncing.value(at: jobPath(key)) { (try? file.sync()) != nil }
        guard synced == true else { return false }
        let written = await DiskThread.media.value(at: jobPath(key)) { [self] in
            guard isCurrent() else { return false }
            do throws(DiskFailure) {
                try directory.replace(key.text + MediaRecord.suffix, with: CollectionOfOne(bytes))
            } catch { return false }
            state.withLock { state in
                state.records[key] = record
                state.touched.remove(key)
                state.table.set(Self.item(of: record), for: key)
            }
            return true
        }
        return written == true
    }

    /// Removes files with bytes of a key, and before them its record if that names one of them.
    func discard(_ key: MediaKey, _ names: [String]) {
        state.withLock { state in
            if let record = state.records[key], !names.contains(record.name) { return }
            state.table.remove(key)
            state.records[key] = nil
        }
        removeLater(key, names)
    }

    private func removeLater(_ key: MediaKey, _ names: [String]) {
        guard beginJob() else { return }
        let job = { @Sendable [self] in
            removeFiles(key, names)
            endJob()
        }
        if !DiskThread.media.run(at: jobPath(key), job) { job() }
    }

    /// Removes files of a key, and its record first unless there is a newer one.
    private func removeFiles(_ key: MediaKey, _ names: [String]) {
        if record(key) == nil { directory.remove(key.text + MediaRecord.suffix) }
        for name in names { directory.remove(name) }
    }

    /// Notes the time of a use, which ``saveTouched()`` writes.
    func touch(_ key: MediaKey, at time: Int64) {
        state.withLock { state in
            guard state.records[key] != nil else { return }
            state.records[key]?.usedAt = time
            state.table.touch(key, at: time)
            state.touched.insert(key)
        }
    }

    /// Writes the records that lack only the time of the last use.
    func saveTouched() async {
        for key in state.withLock({ $0.touched }) {
            guard beginJob() else { return }
            _ = await DiskThread.media.value(at: jobPath(key)) { [self] in
                let record = state.withLock { state in
                    state.touched.remove(key) == nil ? nil : state.records[key]
                }
                guard let bytes = record?.encoded() else { return }
                try? directory.replace(key.text + MediaRecord.suffix, with: CollectionOfOne(bytes))
            }
            endJob()
        }
    }

    /// Counts the stored bytes of a file that is in use, and removes others if the cache is too large now.
    func grew(_ key: MediaKey, to bytes: Int64, _ facts: MediaFacts?) {
        state.withLock {
            $0.table.grow(key, to: bytes, length: facts?.length, contentType: facts?.contentType)
        }
        evict()
    }

    // MARK: Removal

    /// Removes least recently used files above the limit, or until `space` more bytes are free.
    ///
    /// - Returns: Whether it removed any.
    @discardableResult
    func evict(for space: Int64 = 0) -> Bool {
        let removed = state.withLock { state -> [(MediaKey, String?)] in
            let target = space > 0 ? max(state.table.bytes - space, 0) : limit
            let sources = state.sources
            return state.table.evict(above: target) { sources[$0] != nil }
                .map { ($0, state.records.removeValue(forKey: $0)?.name) }
        }
        for (key, name) in removed { removeLater(key, name.map { [$0] } ?? []) }
        return !removed.isEmpty
    }

    /// Removes a file; returns false when it is missing or in use.
    func remove(_ key: MediaKey) async -> Bool {
        while true {
            let count = finished.count
            let found = state.withLock { state -> (isBusy: Bool, name: String?) in
                if state.table.isInUse(key) { return (false, nil) }
                if state.sources[key] != nil { return (true, nil) }
                state.table.remove(key)
                return (false, state.records.removeValue(forKey: key)?.name)
            }
            if found.isBusy {
                await finished.waitUncancelled(after: count)
                continue
            }
            guard let name = found.name, beginJob() else { return false }
            defer { endJob() }
            _ = await DiskThread.media.value(at: jobPath(key)) { self.removeFiles(key, [name]) }
            return true
        }
    }

    /// Waits until no job changes the directory, such as the removal of files.
    func waitForJobs() async {
        while true {
            let count = finished.count
            if state.withLock({ $0.jobs == 0 }) { return }
            await finished.waitUncancelled(after: count)
        }
    }

    /// Waits until no source is being saved that is not in use, and no files are being removed.
    func waitForSaves() async {
        while true {
            let count = finished.count
            let isSaving = state.withLock { state in
                state.jobs > 0 || state.sources.keys.contains { !state.table.isInUse($0) }
            }
            if !isSaving { return }
            await finished.waitUncancelled(after: count)
        }
    }

    var table: MediaTable { state.withLock { $0.table } }

    /// The sources that are in use, or are being saved.
    var sources: [MediaSource] { state.withLock { Array($0.sources.values) } }

    /// Refuses further uses.
    func markClosed() { state.withLock { $0.isClosed = true } }

    /// Waits for jobs on the disk, and releases the lock of the directory.
    func unlock() async {
        while true {
            let count = finished.count
            let isUnlocked = state.withLock { state in
                if state.jobs == 0 { state.isUnlocked = true }
                return state.isUnlocked
            }
            if isUnlocked { return lock.release() }
            await finished.waitUncancelled(after: count)
        }
    }
}

extension DiskFailure {
    /// The failure to write to the directory of a cache that is closed.
    fileprivate static func closed(_ path: String) -> DiskFailure {
        DiskFailure("the media cache is closed, so it does not write to", path, DiskFailure.cancelled)
    }
}
