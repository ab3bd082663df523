// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import FoundationEssentials

/// The part file of a download: what there is of the whole, the note beside it that says of what, and its digests.
///
/// For one task at a time.
struct DownloadPart {
    /// After how many bytes the part is on the disk for certain.
    private static let checkpoint: Int64 = 64 << 20
    /// The largest note that is read.
    private static let longestNote = 64 << 10
    private static let rereadPiece = 1 << 20
    /// How far what is there may be beyond what the note says, where the note has to say it.
    private static let farBeyond: Int64 = 8 << 20

    let file: PartFile
    let options: DownloadOptions
    private let progressed: @Sendable (Int64) -> Void
    private(set) var sink: FileSink
    private var digests: [Checksum.Algorithm: MessageDigest] = [:]
    private var nextCheckpoint = DownloadPart.checkpoint
    /// Whether it has its final name.
    var isPlaced = false
    /// How many bytes were taken.
    private(set) var stored: Int64
    /// What it is a part of; nil while that is not known, or when it cannot be gone on with.
    private(set) var note: ResumeToken?
    /// How many bytes the whole has; nil while nobody knows.
    private(set) var total: Int64?
    /// Whether there is something after what can be gone on with.
    private var hasRest: Bool
    /// Whether it is this download's: it was empty, or something of it was received or replaced.
    private(set) var isOurs: Bool
    /// Whether the disk has failed to keep something, so that what was not kept before is not to be trusted.
    var isUnsure = false

    /// What stands beside a part that cannot be gone on with, so that it is known to be one.
    private struct Mark: Codable { let url: String }

    /// Opens the part file and finds out how much of it can be gone on with.
    ///
    /// Nothing of it is changed before a response has come that takes its place.
    ///
    /// - Parameters:
    ///   - url: What the part is known by.
    ///   - expected: What it has to be a part of; nil for whatever its note says of this URL.
    /// - Throws: `DiskFailure`; `EWOULDBLOCK` when another download has it, `EEXIST` for a file that no download of this
    ///   user has made.
    init(
        at path: String, of url: String, expected: ResumeToken?, options: DownloadOptions,
        progressed: @escaping @Sendable (Int64) -> Void
    ) async throws(DiskFailure) {
        let (file, note, size) = try await DiskThread.saving.result(at: path) { () throws(DiskFailure) in
            if options.createsDirectories { try DiskFile.makeDirectory(DiskFile.directory(of: path)) }
            let file = try PartFile.open(path)
            let size = try file.size()
            return (file, size > 0 ? try Self.note(of: path) : nil, size)
        }
        self.file = file
        self.options = options
        self.progressed = progressed
        let isMeant =
            options.resumes && note?.url == url && expected.map { $0.validator == note?.validator } ?? true
        let usable = isMeant ? note?.usable(of: size) ?? 0 : 0
        let pieces = isMeant ? note?.usablePieces(of: size) : nil
        stored = usable
        if usable > 0 || pieces?.isEmpty == false { self.note = note }
        self.note?.pieces = pieces
        total = self.note?.total
        hasRest = size > usable && self.note?.pieces == nil
        isOurs = size == 0 || self.note != nil
        sink = FileSink(file, at: usable, progressed: progressed)
        if let note = self.note, let digest = note.digest, 0 < note.offset, note.offset <= usable {
            do throws(DiskFailure) {
                let isSame = try await keepDigest(digest.algorithm, expecting: digest, at: note.offset)
                // Somebody has changed the part.
                if !isSame { try await restart() }
            } catch {
                // Whoever was cancelled uses nothing of it, and may want to know what there is.
                guard error.errno == DiskFailure.cancelled else { throw error }
            }
        }
    }

    /// What is known of a part; nil when nothing of it can be gone on with.
    ///
    /// - Throws: A failure with `EEXIST` when no download has made it.
    private static func note(of path: String) throws(DiskFailure) -> ResumeToken? {
        guard let found = try DiskFile.contents(of: path + ".json", upTo: longestNote, isOwn: true) else {
            throw DiskFailure(foreign: "no download has made", path)
        }
        let bytes = Data(found)
        if let note = try? JSONDecoder().decode(ResumeToken.self, from: bytes) { return note.makesSense ? note : nil }
        if (try? JSONDecoder().decode(Mark.self, from: bytes)) != nil { return nil }
        // What a loss of power may leave of a note.
        if found.allSatisfy({ $0 == 0 }) { return nil }
        throw DiskFailure(foreign: "no download has made", path)
    }

    /// The URL that a part is of; nil for what no download has made.
    static func source(of path: String) -> String? {
        guard let found = try? DiskFile.contents(of: path + ".json", upTo: longestNote, isOwn: true) else { return nil }
        return (try? JSONDecoder().decode(Mark.self, from: Data(found)))?.url
    }

    // MARK: What it is of

    /// Begins with the first byte, of a state of the resource that may be told by a validator.
    ///
    /// - Parameters:
    ///   - note: What it is a part of; nil for what cannot be gone on with.
    ///   - url: What the part is known by.
    ///   - total: How many bytes will come, where that is known.
    mutating func begin(_ note: ResumeToken?, of url: String, total: Int64?) async throws(DiskFailure) {
        try await restart()
        self.note = note
        self.note?.bootID = DiskFile.bootID
        self.total = total
        if note == nil { try await write(Mark(url: url)) } else { try await writeNote() }
        guard let total else { return }
        let file = file
        try await DiskThread.saving.result(at: file.path) { () throws(DiskFailure) in try file.reserve(from: 0, total) }
    }

    /// Goes on with what is there.
    ///
    /// - Parameter total: How many bytes the whole has, as a server says now.
    mutating func goOn(of total: Int64?) async throws(DiskFailure) {
        if hasRest {
            let (file, stored) = (file, stored)
            try await DiskThread.saving.result(at: file.path) { () throws(DiskFailure) in
                try file.truncate(to: stored)
            }
            hasRest = false
        }
        let isNews = total != nil && self.total == nil
        if isNews {
            self.total = total
            note?.total = total
        }
        guard let note, isNews || note.bootID != DiskFile.bootID else { return }
        // From now on all that is there can be gone on with, as long as the machine runs.
        if note.offset != stored { self.note?.digest = nil }
        self.note?.offset = stored
        self.note?.bootID = DiskFile.bootID
        try await writeNote()
    }

    /// Forgets what there is.
    mutating func restart() async throws(DiskFailure) {
        // What is on its way would come after the cut.
        try? await sink.flush()
        let file = file
        try await DiskThread.saving.result(at: file.path) { () throws(DiskFailure) in
            // Bytes without a note would be nobody's; a note of more than there is says nothing.
            try file.truncate(to: 0)
            Self.removeNote(beside: file.path)
        }
        (stored, hasRest, isOurs) = (0, false, true)
        (note, total) = (nil, nil)
        nextCheckpoint = Self.checkpoint
        sink = FileSink(file, at: 0, progressed: progressed)
        for algorithm in digests.keys { digests[algorithm] = MessageDigest(algorithm.openSSL) }
    }

    /// Takes note of the digest that the whole should have, as whoever downloads it says now.
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

    /// Takes the note away, and what a process that ended while it wrote one has left.
    static func removeNote(beside path: String) {
        DiskFile.remove(path + ".json")
        DiskFile.remove(path + ".json.new")
    }

    // MARK: Digests

    /// Computes a digest from now on, and of what is there.
    ///
    /// - Parameters:
    ///   - known: The digest that the beginning should have; nil when nobody knows.
    ///   - end: Where that beginning ends.
    /// - Returns: Whether it has.
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

    /// The next bytes of what is there already.
    ///
    /// - Throws: A failure that says so when the task was cancelled: much is read only to be computed with.
    private func reread(from start: Int64, to end: Int64) async throws(DiskFailure) -> Chunk {
        let file = file
        if Task.isCancelled { throw DiskFailure("nobody waits any more for", file.path, DiskFailure.cancelled) }
        let most = Int(min(Int64(Self.rereadPiece), end - start))
        return try await DiskThread.saving.result(at: file.path) { () throws(DiskFailure) in
            try file.read(at: start, upTo: most)
        }
    }

    /// The digest of what is there; nil when it is not computed.
    func digest(_ algorithm: Checksum.Algorithm) -> Checksum? {
        digests[algorithm].map { Checksum(algorithm, digest: $0.current()) }
    }

    // MARK: Bytes

    /// Takes the next bytes.
    mutating func append(_ chunk: ByteChunk) async throws(DiskFailure) {
        for digest in digests.values { digest.update(chunk) }
        stored += Int64(chunk.count)
        try await sink.append(chunk.chunk)
        guard options.isSynced, note != nil, stored >= nextCheckpoint else { return }
        nextCheckpoint = stored + Self.checkpoint
        try await save()
    }

    func flush() async throws(DiskFailure) { try await sink.flush() }

    /// Sees to it that what is there survives the machine's end.
    private mutating func save() async throws(DiskFailure) {
        try await sink.flush()
        let file = file
        isUnsure = true
        try await DiskThread.syncing.result(at: file.path) { () throws(DiskFailure) in try file.sync() }
        isUnsure = false
        note?.synced = sink.written
        if let pieces = note?.pieces {
            note?.syncedPieces = pieces
            note?.offset = sink.written
            note?.digest = nil
        }
        try await writeNote()
    }

    // MARK: Pieces

    /// Whether the end of the process would lose much, since only the note says what is there.
    var isFarBeyondNote: Bool {
        note.map { $0.pieces != nil && sink.written - $0.offset >= Self.farBeyond } ?? false
    }

    /// Whether a response brings the whole of what there are pieces of.
    func isStill(_ response: IncomingResponse) -> Bool {
        guard let note, note.pieces?.isEmpty == false, stored == 0, response.attempt?.isDecoded != true else {
            return false
        }
        return response.body.isAsReceived && response.head.contentLength == total
            && EntityValidator(response.head) == note.validator
    }

    /// Takes note of what others have fetched behind what is there.
    mutating func takeDown(_ pieces: [Range<Int64>]) async throws(DiskFailure) {
        note?.pieces = pieces
        note?.offset = sink.written
        note?.digest = nil
        note?.bootID = DiskFile.bootID
        let there = pieces.reduce(stored) { $0 + Int64($1.count) }
        guard options.isSynced, note != nil, there >= nextCheckpoint else { return try await writeNote() }
        nextCheckpoint = there + Self.checkpoint
        try await save()
    }

    /// Goes on behind bytes that others have fetched.
    mutating func skip(to end: Int64) async throws(DiskFailure) {
        try await sink.flush()
        // Also where it fails: the digests are those of what is there.
        defer {
            sink = FileSink(file, at: stored, progressed: progressed)
            progressed(stored)
        }
        while stored < end, !digests.isEmpty {
            let chunk = try await reread(from: stored, to: end)
            if chunk.isEmpty { throw DiskFailure("there is nothing at \(stored) in", file.path, DiskFailure.taken) }
            for digest in digests.values { digest.update(chunk) }
            stored += Int64(chunk.count)
        }
        stored = end
    }

    // MARK: Ends

    /// What it takes to go on; nil when it makes no sense to.
    ///
    /// What was taken is written first, as far as it can be.
    mutating func token() async -> ResumeToken? {
        try? await sink.flush()
        let isAllThere = stored == sink.written
        stored = sink.written
        let file = file
        let isThere = await DiskThread.saving.value(at: file.path) { file.isStillThere } ?? false
        guard var note, stored > 0 || note.pieces?.isEmpty == false, !isPlaced, isThere else { return nil }
        let known = note.offset == stored ? note.digest : nil
        note.offset = stored
        // What comes after is no more to be trusted than before, as long as it is there.
        if !hasRest { note.bootID = isUnsure ? "" : DiskFile.bootID }
        note.digest =
            isAllThere && stored > 0
            ? digests.keys.sorted { $0.rawValue < $1.rawValue }.first.flatMap { digest($0) } ?? known : nil
        self.note = note
        try? await writeNote()
        file.unlock()
        return note
    }
}
