// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import FoundationEssentials

/// The part file of a download with the bytes stored so far, the note that describes it, and its digests.
///
/// One task at a time may use it.
struct PartialDownload {
    /// The number of bytes after which the part file is synced to the disk.
    private static let checkpoint: Int64 = 64 << 20
    /// The maximum size of a note in bytes; larger ones are not read.
    private static let longestNote = 64 << 10
    private static let rereadPiece = 1 << 20
    /// How many bytes may be stored beyond the note's offset before a download in chunks updates the note.
    private static let farBeyond: Int64 = 8 << 20

    let file: PartialFile
    let options: DownloadOptions
    private let didWrite: @Sendable (Int64) -> Void
    private(set) var sink: FileSink
    private var digests: [Checksum.Algorithm: MessageDigest] = [:]
    private var nextCheckpoint = PartialDownload.checkpoint
    /// Whether the file was renamed to its final name.
    var isPlaced = false
    /// The number of bytes from the start of the file that were accepted so far.
    private(set) var stored: Int64
    /// The description of the resource; nil while it is unknown, or when the download cannot be resumed.
    private(set) var note: ResumeToken?
    /// The size of the whole file in bytes; nil while it is unknown.
    private(set) var total: Int64?
    /// Whether the file has bytes after those that can be reused.
    private var hasUnusableTail: Bool
    /// Whether the file belongs to this download: it was empty, or this download has reused or replaced its bytes.
    private(set) var belongsToDownload: Bool
    /// Whether a sync is pending or has failed, so that bytes that were not synced before may be lost.
    var hasUnsyncedRisk = false

    /// The content of the note of a part file that cannot be resumed, which marks the file as one of a download.
    private struct UnresumableNote: Codable { let url: String }

    /// Opens or creates the part file, and determines how many of its bytes can be reused.
    ///
    /// An existing file stays unchanged until a response arrives that replaces its content.
    ///
    /// - Parameters:
    ///   - url: The URL that the note must have.
    ///   - expected: The token whose validator the note must have; nil accepts every note with this URL.
    /// - Throws: `DiskFailure`; `EWOULDBLOCK` when another download uses the file, `EEXIST` for a file that no download
    ///   of this user has created.
    init(
        at path: String, of url: String, expected: ResumeToken?, options: DownloadOptions,
        didWrite: @escaping @Sendable (Int64) -> Void
    ) async throws(DiskFailure) {
        let (file, note, size) = try await DiskThread.saving.result(at: path) { () throws(DiskFailure) in
            if options.createsDirectories { try DiskFile.makeDirectory(DiskFile.directory(of: path)) }
            let file = try PartialFile.open(path)
            let size = try file.size()
            return (file, size > 0 ? try Self.note(of: path) : nil, size)
        }
        self.file = file
        self.options = options
        self.didWrite = didWrite
        let isMeant =
            options.resumes && note?.url == url && expected.map { $0.validator == note?.validator } ?? true
        let usable = isMeant ? note?.usable(of: size) ?? 0 : 0
        let pieces = isMeant ? note?.usablePieces(of: size) : nil
        stored = usable
        if usable > 0 || pieces?.isEmpty == false { self.note = note }
        self.note?.pieces = pieces
        total = self.note?.total
        hasUnusableTail = size > usable && self.note?.pieces == nil
        belongsToDownload = size == 0 || self.note != nil
        sink = FileSink(file, at: usable, progressed: didWrite)
        if let note = self.note, let digest = note.digest, 0 < note.offset, note.offset <= usable {
            do throws(DiskFailure) {
                let isSame = try await keepDigest(digest.algorithm, expecting: digest, at: note.offset)
                // The part file was changed after the note was written.
                if !isSame { try await restart() }
            } catch {
                // A cancelled download does not use the bytes, so they need no check; it may still need the token.
                guard error.errno == DiskFailure.cancelled else { throw error }
            }
        }
    }

    /// Reads the note of a part file; nil when no bytes can be reused.
    ///
    /// - Throws: A failure with `EEXIST` when no download has created the file.
    private static func note(of path: String) throws(DiskFailure) -> ResumeToken? {
        guard let found = try DiskFile.contents(of: path + ".json", upTo: longestNote, isOwn: true) else {
            throw DiskFailure(foreign: "no download has made", path)
        }
        let bytes = Data(found)
        if let note = try? JSONDecoder().decode(ResumeToken.self, from: bytes) { return note.makesSense ? note : nil }
        if (try? JSONDecoder().decode(UnresumableNote.self, from: bytes)) != nil { return nil }
        // A power failure may leave a note that consists of zeros.
        if found.allSatisfy({ $0 == 0 }) { return nil }
        throw DiskFailure(foreign: "no download has made", path)
    }

    /// Returns the URL in the note of a part file; nil for a file that no download has created.
    static func source(of path: String) -> String? {
        guard let found = try? DiskFile.contents(of: path + ".json", upTo: longestNote, isOwn: true) else { return nil }
        return (try? JSONDecoder().decode(UnresumableNote.self, from: Data(found)))?.url
    }

    // MARK: The note

    /// Empties the file, and writes the note for a download that starts at the first byte.
    ///
    /// - Parameters:
    ///   - note: The note; nil when the download cannot be resumed.
    ///   - url: The URL for the mark that replaces a missing note.
    ///   - total: The size of the whole file in bytes, if known; the disk space is reserved then.
    mutating func begin(_ note: ResumeToken?, of url: String, total: Int64?) async throws(DiskFailure) {
        try await restart()
        self.note = note
        self.note?.bootID = DiskFile.bootID
        self.total = total
        if note == nil { try await write(UnresumableNote(url: url)) } else { try await writeNote() }
        guard let total else { return }
        let file = file
        try await DiskThread.saving.result(at: file.path) { () throws(DiskFailure) in try file.reserve(from: 0, total) }
    }

    /// Prepares the file for appending to the reused bytes, and updates the note.
    ///
    /// - Parameter total: The size of the whole file in bytes, as the server states it now.
    mutating func resume(of total: Int64?) async throws(DiskFailure) {
        if hasUnusableTail {
            let (file, stored) = (file, stored)
            try await DiskThread.saving.result(at: file.path) { () throws(DiskFailure) in
                try file.truncate(to: stored)
            }
            hasUnusableTail = false
        }
        let isNews = total != nil && self.total == nil
        if isNews {
            self.total = total
            note?.total = total
        }
        guard let note, isNews || note.bootID != DiskFile.bootID else { return }
        // From now on all stored bytes can be reused until the next boot of the machine.
        if note.offset != stored { self.note?.digest = nil }
        self.note?.offset = stored
        self.note?.bootID = DiskFile.bootID
        try await writeNote()
    }

    /// Discards all bytes and the note.
    mutating func restart() async throws(DiskFailure) {
        // Pending writes would otherwise follow the truncation.
        try? await sink.flush()
        let file = file
        try await DiskThread.saving.result(at: file.path) { () throws(DiskFailure) in
            // Truncate first: bytes without a note belong to no download, but a note about more bytes is harmless.
            try file.truncate(to: 0)
            Self.removeNote(beside: file.path)
        }
        (stored, hasUnusableTail, belongsToDownload) = (0, false, true)
        (note, total) = (nil, nil)
        nextCheckpoint = Self.checkpoint
        sink = FileSink(file, at: 0, progressed: didWrite)
        for algorithm in digests.keys { digests[algorithm] = MessageDigest(algorithm.openSSL) }
    }

    /// Sets the expected digest in the note to that of the current download.
    mutating func expect(_ checksum: Checksum?) { note?.checksum = checksum }

    private func writeNote() async throws(DiskFailure) {
        if let note { try await write(note) }
    }

    private func write(_ value: some Encodable) async throws(DiskFailure) {
        guard let bytes = try? JSONEncoder().encode(value) else { return }
        let (path, isSynced) = (file.path + ".json", options.isSynced)
        let thread = isSynced ? DiskThread.syncing : DiskThread.saving
        try await thread.result(at: path) { () throws(DiskFailure) in
            try DiskFile.replace(path, with: [UInt8](bytes), isSynced: isSynced)
        }
    }

    /// Deletes the note, and a half-written one that an interrupted process may have left.
    static func removeNote(beside path: String) {
        DiskFile.remove(path + ".json")
        DiskFile.remove(path + ".json.new")
    }

    // MARK: Digests

    /// Starts computing a digest, beginning with the bytes that are already stored.
    ///
    /// - Parameters:
    ///   - known: The expected digest of the bytes up to `end`; nil when it is unknown.
    ///   - end: The end of the bytes that `known` covers.
    /// - Returns: Whether these bytes have the expected digest.
    @discardableResult
    mutating func keepDigest(
        _ algorithm: Checksum.Algorithm, expecting known: Checksum? = nil, at end: Int64 = 0
    ) async throws(DiskFailure) -> Bool {
        guard digests[algorithm] == nil, let digest = MessageDigest(algorithm.openSSL) else { return true }
        if stored > 0 { try await sink.flush() }
        var (position, isSame): (Int64, Bool) = (0, known == nil)
        while position < stored {
            let chunk = try await reread(from: position, to: position < end ? end : stored)
            if chunk.isEmpty { break }
            digest.update(chunk)
            position += Int64(chunk.count)
            if let known, position == end { isSame = Checksum(algorithm, digest: digest.current()) == known }
        }
        digests[algorithm] = digest
        return isSame
    }

    /// Reads the next chunk of the stored bytes, to compute digests.
    ///
    /// - Throws: A failure with `ECANCELED` when the task was cancelled, since reading a large file takes long.
    private func reread(from start: Int64, to end: Int64) async throws(DiskFailure) -> Chunk {
        let file = file
        if Task.isCancelled { throw DiskFailure("the download stopped reading", file.path, DiskFailure.cancelled) }
        let most = Int(min(Int64(Self.rereadPiece), end - start))
        return try await DiskThread.saving.result(at: file.path) { () throws(DiskFailure) in
            try file.read(at: start, upTo: most)
        }
    }

    /// Returns the digest of the stored bytes; nil when it is not being computed.
    func digest(_ algorithm: Checksum.Algorithm) -> Checksum? {
        digests[algorithm].map { Checksum(algorithm, digest: $0.current()) }
    }

    // MARK: Bytes

    /// Appends the next bytes.
    mutating func append(_ chunk: ByteChunk) async throws(DiskFailure) {
        for digest in digests.values { digest.update(chunk) }
        stored += Int64(chunk.count)
        try await sink.append(chunk.chunk)
        guard options.isSynced, note != nil, stored >= nextCheckpoint else { return }
        nextCheckpoint = stored + Self.checkpoint
        try await save()
    }

    func flush() async throws(DiskFailure) { try await sink.flush() }

    /// Syncs the stored bytes and the note to the disk.
    private mutating func save() async throws(DiskFailure) {
        try await sink.flush()
        let file = file
        hasUnsyncedRisk = true
        try await DiskThread.syncing.result(at: file.path) { () throws(DiskFailure) in try file.sync() }
        hasUnsyncedRisk = false
        note?.synced = sink.written
        if let pieces = note?.pieces {
            note?.syncedPieces = pieces
            note?.offset = sink.written
            note?.digest = nil
        }
        try await writeNote()
    }

    // MARK: Chunks

    /// Whether the note of a download in chunks is so far behind that a crash would lose much.
    var isNoteOutdated: Bool {
        note.map { $0.pieces != nil && sink.written - $0.offset >= Self.farBeyond } ?? false
    }

    /// Returns whether a response has the whole resource in the state of which chunks are stored.
    func matchesStoredChunks(_ response: IncomingResponse) -> Bool {
        guard let note, note.pieces?.isEmpty == false, stored == 0, response.attempt?.isDecoded != true else {
            return false
        }
        return response.body.isAsReceived && response.head.contentLength == total
            && ResumeToken.Validator(response.head) == note.validator
    }

    /// Writes the chunks that other connections have fetched, and the current offset, to the note.
    mutating func recordChunks(_ pieces: [Range<Int64>]) async throws(DiskFailure) {
        note?.pieces = pieces
        note?.offset = sink.written
        note?.digest = nil
        note?.bootID = DiskFile.bootID
        let there = pieces.reduce(stored) { $0 + Int64($1.count) }
        guard options.isSynced, note != nil, there >= nextCheckpoint else { return try await writeNote() }
        nextCheckpoint = there + Self.checkpoint
        try await save()
    }

    /// Moves the end of the stored bytes past a chunk that other connections have fetched.
    mutating func skip(to end: Int64) async throws(DiskFailure) {
        try await sink.flush()
        // Reset the sink even after a failure: the digests cover the bytes up to `stored`.
        defer {
            sink = FileSink(file, at: stored, progressed: didWrite)
            didWrite(stored)
        }
        while stored < end, !digests.isEmpty {
            let chunk = try await reread(from: stored, to: end)
            if chunk.isEmpty {
                throw DiskFailure("there is nothing at \(stored) in", file.path, DiskFailure.existsNumber)
            }
            for digest in digests.values { digest.update(chunk) }
            stored += Int64(chunk.count)
        }
        stored = end
    }

    // MARK: Ending

    /// Writes the final note and returns it as the token for resuming; nil when the download cannot be resumed.
    ///
    /// The method first writes the accepted bytes, as far as the disk allows.
    mutating func token() async -> ResumeToken? {
        try? await sink.flush()
        let isAllThere = stored == sink.written
        stored = sink.written
        let file = file
        let isThere = await DiskThread.saving.value(at: file.path) { file.stillHasName } ?? false
        guard var note, stored > 0 || note.pieces?.isEmpty == false, !isPlaced, isThere else { return nil }
        let known = note.offset == stored ? note.digest : nil
        note.offset = stored
        // The bytes after the reused ones are still in the file, so the note must keep its old boot id.
        if !hasUnusableTail { note.bootID = hasUnsyncedRisk ? "" : DiskFile.bootID }
        note.digest =
            isAllThere && stored > 0
            ? digests.keys.sorted { $0.rawValue < $1.rawValue }.first.flatMap { digest($0) } ?? known : nil
        self.note = note
        try? await writeNote()
        file.unlock()
        return note
    }
}
