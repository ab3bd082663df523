// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import Curlew
internal import CurlewEngine
internal import CurlewSupport
internal import FoundationEssentials
internal import Glibc

/// A store of responses in a directory, which several processes may use at the same time.
///
/// The index is a SQLite database, the bodies are files with digests. A process that is killed at any moment leaves no
/// torn response: an entry becomes visible in one step, bytes are checked before they are used, and a damaged index is
/// made again from the files. When the store is full, the least recently used responses are removed. The directory and
/// its files are accessible to this user only.
///
/// ```swift
/// let store = try await DiskCacheStore("/var/cache/myservice/http", limit: .mebibytes(500))
/// let session = Session(cache: HTTPCache(store: store))
/// ```
///
/// Work on the disk runs on Curlew's disk threads, never on that of the caller.
public final class DiskCacheStore: CacheStore {
    /// The directory of the store.
    public let directory: String
    /// The maximum size of all files of bodies, and of the entries in the index.
    public let limit: ByteCount
    private let bodies: PrivateDirectory
    private let index: IndexHolder
    private let uses = Lock<[Int64: Int64]>([:])
    private let known = Lock(KnownEntries())

    /// Opens a store, and creates its directory if it is missing.
    ///
    /// - Parameters:
    ///   - directory: The path of the directory; `$XDG_CACHE_HOME` or `~/.cache`, with the name of the program and
    ///     "http", unless given.
    ///   - limit: The maximum size of all stored responses; 150 MiB unless given.
    /// - Throws: `NetworkError` of kind `.cacheFailed`, for example when another user owns the directory.
    public init(_ directory: String? = nil, limit: ByteCount = .mebibytes(150)) async throws(NetworkError) {
        guard let directory = directory ?? Self.defaultDirectory else {
            throw NetworkError(
                .cacheFailed, phase: .preparing, "The cache has no directory, because HOME is unset.",
                hint: "Pass a directory, or set HOME or XDG_CACHE_HOME.")
        }
        let path = DiskFile.absolute(directory)
        let opened = await DiskThread.caching.value(at: path + "/index") { () -> Result<Parts, StoreFailure> in
            do throws(DiskFailure) {
                try DiskFile.makeDirectory(DiskFile.directory(of: path))
                let root = try PrivateDirectory(path)
                let bodies = try PrivateDirectory(root.path(of: "bodies"))
                let index = IndexHolder(root, bodies)
                if let failure = index.open() { return .failure(failure) }
                return .success(Parts(root: root, bodies: bodies, index: index))
            } catch {
                return .failure(.file(error))
            }
        }
        switch opened ?? .failure(.file(.noThread)) {
        case .success(let parts):
            self.directory = parts.root.path
            self.limit = limit
            bodies = parts.bodies
            index = parts.index
        case .failure(let failure):
            throw NetworkError(
                .cacheFailed, phase: .preparing, "The cache in \(path) cannot be used: \(failure).",
                hint: "Check the owner and the permissions of the directory, and the free space on the disk.",
                cause: failure)
        }
    }

    private struct Parts: Sendable {
        let root: PrivateDirectory
        let bodies: PrivateDirectory
        let index: IndexHolder
    }

    /// The directory of this program below `$XDG_CACHE_HOME` (XDG Base Directory Specification), which counts only if
    /// it is absolute.
    private static var defaultDirectory: String? {
        func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
        let base =
            variable("XDG_CACHE_HOME").flatMap { $0.hasPrefix("/") ? $0 : nil }
            ?? variable("HOME").flatMap { $0.hasPrefix("/") ? $0 + "/.cache" : nil }
        guard let base else { return nil }
        let program = CommandLine.arguments.first?.split(separator: "/").last.map(String.init) ?? "curlew"
        return "\(base)/\(program)/http"
    }

    deinit {
        let (index, uses) = (index, uses.withLock { $0 })
        if uses.isEmpty { return }
        _ = DiskThread.caching.run(at: index.jobPath) {
            _ = index.perform { index throws(Database.Failure) in try index.flush(uses) }
        }
    }

    /// A quarter of the limit.
    public var maximumBodySize: Int64 { limit.bytes / 4 }

    // MARK: Reading

    /// Returns the entries of a selection.
    /// - Throws: An error when the index cannot be read.
    public func entries(_ selection: HTTPCache.Selection) async throws -> [HTTPCache.Entry] {
        guard case .key(let key) = selection, let changes = index.changes?.value else {
            return try await perform { index throws(Database.Failure) in try index.entries(selection) }
        }
        if let entries = known.withLock({ $0.entries(key, at: changes) }) { return entries }
        let entries = try await perform { index throws(Database.Failure) in try index.entries(selection) }
        known.withLock { $0.keep(entries, for: key, at: changes) }
        return entries
    }

    /// Returns a part of the body of an entry; nil if it was removed or is damaged.
    ///
    /// A body of up to 1 MiB is checked as a whole before it is returned, a larger one block by block.
    /// - Throws: An error when the index cannot be written.
    public func body(of entry: HTTPCache.Entry, _ range: Range<Int64>) async throws -> HTTPCache.StoredBody? {
        let (id, path) = (Int64(entry.id), bodies.path(of: Self.name(of: Int64(entry.id))))
        // Several files are read at the same time.
        let jobPath = "\(directory)/\(id & 3)/body"
        let isSmall = entry.size <= Self.smallBody
        let read = await DiskThread.caching.value(at: jobPath) { () -> (StoredFile, Data?)? in
            guard let file = StoredFile(path), file.id == entry.id, file.size == entry.size else { return nil }
            if !isSmall { return (file, nil) }
            return file.whole().map { (file, $0) }
        }
        guard let (file, data) = read ?? nil else { return nil }
        // The body can be read even if its use cannot be written.
        try? await use(id)
        guard let data else { return .chunks(StoredChunks(file: file, range: range, jobPath: jobPath)) }
        return .data(range.count == data.count ? data : Data(data[Int(range.lowerBound)..<Int(range.upperBound)]))
    }

    /// The maximum size of a body that is read at once.
    private static let smallBody: Int64 = 1 << 20
    /// The number of uses that are collected before they are written.
    private static let maximumUses = 64

    private func use(_ id: Int64) async throws {
        let now = Self.now
        let due = uses.withLock { uses -> [Int64: Int64] in
            uses[id] = now
            if uses.count < Self.maximumUses { return [:] }
            defer { uses = [:] }
            return uses
        }
        if !due.isEmpty { try await perform { index throws(Database.Failure) in try index.flush(due) } }
    }

    private func takeUses() -> [Int64: Int64] {
        uses.withLock { uses in
            defer { uses = [:] }
            return uses
        }
    }

    /// Returns the number of entries and their size.
    /// - Throws: An error when the index cannot be read.
    public func usage() async throws -> HTTPCache.Usage {
        let totals = try await perform { index throws(Database.Failure) in try index.totals() }
        return HTTPCache.Usage(count: Int(totals.count), bytes: totals.bytes, limit: limit.bytes)
    }

    // MARK: Writing

    /// Returns a writer, which writes the body to a file.
    /// - Throws: An error when the file cannot be created.
    public func writer(
        for entry: HTTPCache.Entry, expecting expectedSize: Int64?
    ) async throws -> any HTTPCache.BodyWriter {
        let path = bodies.path(of: Self.name(of: Int64(entry.id)) + Self.temporary)
        let file = await DiskThread.caching.value(at: "\(directory)/new/body") {
            Result { () throws(DiskFailure) in
                let file = try PartialFile.createPrivate(path)
                do throws(DiskFailure) { if let expectedSize { try file.reserve(from: 0, expectedSize) } } catch {
                    file.remove()
                    throw error
                }
                return file
            }
        }
        switch file ?? .failure(.noThread) {
        case .success(let file): return try DiskWriter(file, self, reserved: expectedSize ?? 0)
        case .failure(let failure): throw StoreFailure.file(failure)
        }
    }

    /// Replaces an entry in the index.
    /// - Throws: An error when the index cannot be written.
    public func update(_ entry: HTTPCache.Entry) async throws {
        try await change { index throws(Database.Failure) in try index.update(entry) }
    }

    /// Removes entries and their files.
    /// - Throws: An error when the index cannot be written.
    public func remove(_ ids: [HTTPCache.Entry.ID]) async throws -> Int {
        let ids = ids.compactMap { Int64(exactly: $0) }
        let bodies = bodies
        return try await change { index throws(Database.Failure) in
            let removed = try index.remove(ids)
            for id in removed { bodies.remove(Self.name(of: id)) }
            return removed.count
        }
    }

    /// Makes a written file visible.
    fileprivate func add(
        _ entry: HTTPCache.Entry, _ data: [UInt8], fileSize: Int64, replacing replaced: [HTTPCache.Entry.ID]
    ) async throws {
        let (bodies, limit, uses) = (bodies, limit.bytes, takeUses())
        let name = Self.name(of: Int64(entry.id))
        let replaced = replaced.compactMap { Int64(exactly: $0) }
        try await change { index throws(Database.Failure) in
            do throws(Database.Failure) {
                let removed = try index.add(
                    entry, data, size: fileSize, replacing: replaced, limit: limit, uses: uses, now: Self.now
                ) { () throws(Database.Failure) in
                    do throws(DiskFailure) { try bodies.rename(name + Self.temporary, to: name) } catch {
                        throw Database.Failure(code: 0, message: error.description)
                    }
                }
                for id in removed { bodies.remove(Self.name(of: id)) }
            } catch {
                // The file may have its final name already; a second try needs the other one.
                try? bodies.rename(name, to: name + Self.temporary)
                throw error
            }
        }
    }

    /// Runs a body that changes the index.
    private func change<Output: Sendable>(
        _ body: @escaping @Sendable (CacheIndex) throws(Database.Failure) -> Output
    ) async throws -> Output {
        let changes = index.changes
        return try await perform { index throws(Database.Failure) in
            // Once before, in case the process is killed after the change.
            changes?.increment()
            defer { changes?.increment() }
            return try body(index)
        }
    }

    private func perform<Output: Sendable>(
        _ body: @escaping @Sendable (CacheIndex) throws(Database.Failure) -> Output
    ) async throws -> Output {
        let index = index
        let result = await DiskThread.caching.value(at: index.jobPath) { index.perform(body) }
        return try (result ?? .failure(.file(.noThread))).get()
    }

    // MARK: Names

    /// The end of the name of a file that is being written.
    static let temporary = ".new"

    /// Returns the name of the file of an entry.
    static func name(of id: Int64) -> String {
        let digits = String(UInt64(bitPattern: id), radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }

    /// The current time in microseconds since 1970, for the order of use.
    static var now: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
    }
}

/// Writes the file of one body.
private final class DiskWriter: HTTPCache.BodyWriter {
    private struct State {
        let digests: BlockDigests
        var size: Int64 = 0
    }

    private let file: PartialFile
    private let reserved: Int64
    private let sink: FileSink
    private let store: DiskCacheStore
    // Safe as only code inside the lock uses the digests.
    private let state: Lock<State>

    /// - Parameter reserved: The space that is reserved for the file, in bytes.
    init(_ file: PartialFile, _ store: DiskCacheStore, reserved: Int64) throws {
        self.file = file
        self.store = store
        self.reserved = reserved
        sink = FileSink(file, at: 0)
        guard let digests = BlockDigests() else {
            file.remove()
            throw StoreFailure.noDigest
        }
        state = Lock(State(digests: digests))
    }

    deinit {
        let file = file
        if !DiskThread.saving.run(at: file.path, { file.remove() }) { file.remove() }
    }

    func write(_ chunk: ByteChunk) async throws {
        state.withLock { state in
            state.digests.update(chunk)
            state.size += Int64(chunk.count)
        }
        do throws(DiskFailure) { try await sink.append(chunk.chunk) } catch { throw StoreFailure.file(error) }
    }

    func finish(_ entry: HTTPCache.Entry, replacing replaced: [HTTPCache.Entry.ID]) async throws {
        let (size, digests) = state.withLock { ($0.size, $0.digests.finish()) }
        let data = CacheIndex.encode(entry)
        guard size == entry.size, !data.isEmpty,
            let trailer = BodyFile.trailer(id: entry.id, data, bodySize: size, digests: digests)
        else { throw StoreFailure.damaged }
        do throws(DiskFailure) {
            try await sink.append(ByteChunk(trailer).chunk)
            try await sink.flush()
        } catch {
            throw StoreFailure.file(error)
        }
        let (file, fileSize) = (file, size + Int64(trailer.count))
        if reserved > size {
            // The rest of the space is released.
            _ = await DiskThread.saving.value(at: file.path) { try? file.truncate(to: fileSize) }
        }
        try await store.add(entry, data, fileSize: fileSize, replacing: replaced)
    }

    func discard() async {
        let file = file
        _ = await DiskThread.saving.value(at: file.path) { file.remove() }
    }
}
