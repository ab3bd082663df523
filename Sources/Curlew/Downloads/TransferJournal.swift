// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import FoundationEssentials
internal import CurlewSupport

/// The records of a store, in memory and in a journal file that outlives the process.
///
/// The file begins with the line `curlew-transfers 1`. Each further line has sixteen hexadecimal digits, a space and a
/// JSON object; the digits are the first ones of the SHA-256 of the JSON text. The object `{"put": …}` has the whole
/// record of a download, and `{"drop": "…"}` has the id of a removed record. Lines are appended, never changed. An
/// incomplete line, which can only be the last one, is ignored. From time to time the store replaces the file by one
/// without obsolete lines.
final class TransferJournal: Sendable {
    fileprivate struct Entry: Codable {
        var put: TransferStore.Download?
        var drop: String?
    }

    /// The number of a line, for waiting until that line is written.
    struct LineNumber: Sendable { fileprivate let number: UInt64 }

    fileprivate struct State {
        var records: RecordTable
        /// The content of a file that had invalid lines, until it is saved in `journal.damaged`.
        var damaged: [UInt8]?
        /// The lines that are yet to be written.
        var pending: [UInt8] = []
        var pendingLines = 0
        var isSyncWanted = false
        var last: UInt64 = 0
        var written: UInt64 = 0
        /// The number of the last line that is synced to the disk.
        var synced: UInt64 = 0
        var failure: (upTo: UInt64, DiskFailure)?
        /// The number of lines in the file.
        var lines: Int
        /// Whether the file lacks changes that are in memory, so that it must be rewritten.
        var needsRewrite: Bool
    }

    static let header = "curlew-transfers 1"
    private static let maximumSize = 256 << 20
    /// The number of obsolete lines that a file may always have.
    private static let minimumObsoleteLines = 1000

    /// How many records a rewrite encodes at once.
    private static let batch = 16

    private let home: PrivateDirectory
    private let file: JournalFile
    private let lock: Lock<DirectoryLock?>
    private let state: Lock<State>

    /// Opens the journal of a directory, which is created if it is missing.
    ///
    /// On a full disk the records can be read, and the first change that finds free space rewrites the journal.
    ///
    /// The initializer blocks: call it on a disk thread.
    ///
    /// - Throws: A failure with `EWOULDBLOCK` when another process uses the directory, with `EPROTO` when the file has
    ///   another format, and a foreign-store failure when another user has created, or may write to, the directory or a
    ///   file in it.
    init(in directory: String) throws(DiskFailure) {
        home = try PrivateDirectory(directory)
        let owner = try DirectoryLock(home)
        lock = Lock(owner)
        file = try JournalFile("journal", in: home)
        let bytes = try file.contents(upTo: Self.maximumSize)
        let replayed = try Replay(bytes, file.path)
        state = Lock(
            State(
                records: RecordTable(replayed.records), damaged: replayed.isDamaged ? bytes : nil, lines: 0,
                needsRewrite: true))
        do throws(DiskFailure) { try rewrite() } catch {
            // On a full disk the records stay readable, and the file stays as it is until there is free space.
            guard error.isFull else { throw error }
        }
    }

    /// All records, in the order in which they were added.
    var records: [TransferStore.Download] { state.withLock { $0.records.all() } }

    var count: Int { state.withLock { $0.records.count } }

    subscript(id: String) -> TransferStore.Download? { state.withLock { $0.records.find(id) } }

    /// Returns the oldest record that is over, leaving out those with the given ids.
    func firstOver(except ids: Set<String>) -> TransferStore.Download? {
        state.withLock { $0.records.firstOver(except: ids) }
    }

    /// How many records were visited so far; tests use it.
    var visits: Int { state.withLock { $0.records.visits } }

    /// Releases the lock, so that another process can open the journal; later writes fail.
    ///
    /// The lock is released after the writes that are already queued.
    func close() async {
        let isOver: Void? = await DiskThread.syncing.value(at: file.path) { self.lock.withLock { $0 = nil } }
        // Without a disk thread there are no queued writes.
        if isOver == nil { lock.withLock { $0 = nil } }
    }

    var isClosed: Bool { lock.withLock { $0 == nil } }

    // MARK: Changes

    /// Adds or replaces a record; the record is on the disk after its line was written.
    func put(_ record: TransferStore.Download) -> LineNumber {
        state.withLock { state in
            state.records.put(record)
            return state.add(Entry(put: record))
        }
    }

    /// Changes a record, if there is one.
    func change(_ id: String, _ change: (inout TransferStore.Download) -> Void) -> LineNumber? {
        state.withLock { state -> LineNumber? in
            guard var record = state.records.find(id) else { return nil }
            change(&record)
            state.records.put(record)
            return state.add(Entry(put: record))
        }
    }

    /// Removes a record.
    func drop(_ id: String) -> LineNumber {
        state.withLock { state in
            state.records.remove(id)
            return state.add(Entry(drop: id))
        }
    }

    /// Waits until a line is in the file.
    ///
    /// The lines that several tasks wait for at once are written and synced together.
    ///
    /// - Parameter isSynced: Whether the line must also be synced to the disk.
    /// - Throws: The failure of the write; the next change then rewrites the whole journal.
    func waitUntilWritten(_ lineNumber: LineNumber, isSynced: Bool = true) async throws(DiskFailure) {
        let isDone = state.withLock { state in
            if lineNumber.number <= (isSynced ? state.synced : state.written) { return true }
            if isSynced { state.isSyncWanted = true }
            return false
        }
        if isDone { return }
        try await DiskThread.syncing.result(at: file.path) { () throws(DiskFailure) in try self.write(for: lineNumber) }
    }

    /// Waits until all lines so far are on the disk.
    func waitUntilWritten() async throws(DiskFailure) {
        try await waitUntilWritten(LineNumber(number: state.withLock { $0.last }))
    }

    private func write(for lineNumber: LineNumber) throws(DiskFailure) {
        if isClosed { throw DiskFailure("the store was closed, cannot write", file.path, closedNumber) }
        let (bytes, isSynced, number, needsRewrite) = state.withLock { state in
            defer {
                (state.pending, state.isSyncWanted) = ([], false)
                state.lines += state.pendingLines
                state.pendingLines = 0
            }
            let needsRewrite = state.needsRewrite || state.lines > 2 * state.records.count + Self.minimumObsoleteLines
            return (state.pending, state.isSyncWanted, state.last, needsRewrite)
        }
        if !bytes.isEmpty || isSynced || needsRewrite {
            do throws(DiskFailure) {
                if needsRewrite { try rewrite() } else { try file.append(bytes, isSynced: isSynced) }
            } catch {
                state.withLock { state in
                    state.failure = (number, error)
                    state.needsRewrite = true
                }
                throw error
            }
            state.withLock { state in
                state.written = max(state.written, number)
                if isSynced { state.synced = max(state.synced, number) }
            }
        }
        // A write for another line had this line too, and failed.
        let failure = state.withLock { state in
            state.written < lineNumber.number ? state.failure?.1 : nil
        }
        if let failure { throw failure }
    }

    private func rewrite() throws(DiskFailure) {
        let (records, number) = state.withLock { state in
            // The records include the changes of the pending lines.
            (state.pending, state.pendingLines) = ([], 0)
            return (state.records, state.last)
        }
        if let bytes = state.withLock({ $0.damaged }) {
            try home.replace("journal.damaged", with: CollectionOfOne(bytes))
            state.withLock { $0.damaged = nil }
        }
        // Write in batches, so that a rewrite on a full disk fails at the first batch.
        let pieces = stride(from: -Self.batch, to: records.slotCount, by: Self.batch).lazy.map { start -> [UInt8] in
            if start < 0 { return Array((Self.header + "\n").utf8) }
            return records.slots(from: start, atMost: Self.batch).flatMap { Entry(put: $0).line }
        }
        try file.replace(with: pieces)
        state.withLock { state in
            state.lines = records.count
            (state.written, state.synced) = (max(state.written, number), max(state.synced, number))
            state.needsRewrite = false
        }
    }
}

extension TransferJournal.State {
    fileprivate mutating func add(_ entry: TransferJournal.Entry) -> TransferJournal.LineNumber {
        pending += entry.line
        pendingLines += 1
        last += 1
        return TransferJournal.LineNumber(number: last)
    }
}

extension TransferJournal.Entry {
    /// The entry as a line of the file.
    fileprivate var line: [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let json = (try? encoder.encode(self)).map { [UInt8]($0) } ?? []
        return Array((TransferJournal.Replay.sum(of: json) + " ").utf8) + json + [UInt8(ascii: "\n")]
    }
}

extension TransferJournal {
    /// The records that result from the lines of a journal file.
    struct Replay {
        private(set) var records: [TransferStore.Download] = []
        /// Whether the file has invalid lines, other than an incomplete last one.
        private(set) var isDamaged = false

        /// Reads the lines of a journal file.
        ///
        /// - Throws: A failure with `EPROTO` for a file that is not a journal, or is a journal of a later version.
        init(_ bytes: [UInt8], _ path: String) throws(DiskFailure) {
            var lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)[...]
            // The text after the last line feed is empty, or an incomplete line.
            let rest = lines.popLast()
            guard let header = lines.popFirst() else {
                // The file is new, or its header is incomplete.
                guard header(startsWith: rest ?? []) else {
                    throw DiskFailure("there is no journal in", path, wrongFormatNumber)
                }
                return
            }
            guard header.elementsEqual(TransferJournal.header.utf8) else {
                throw DiskFailure("there is no journal of this version in", path, wrongFormatNumber)
            }
            var places: [String: Int] = [:]
            var found: [TransferStore.Download?] = []
            for (index, line) in lines.enumerated() {
                guard let entry = Self.entry(line) else {
                    isDamaged = isDamaged || index < lines.count - 1
                    continue
                }
                if let record = entry.put?.bounded {
                    if let place = places[record.id] {
                        found[place] = record
                    } else {
                        places[record.id] = found.count
                        found.append(record)
                    }
                } else if let id = entry.drop, let place = places.removeValue(forKey: id) {
                    found[place] = nil
                }
            }
            records = found.compactMap(\.self)
        }

        private func header(startsWith bytes: some Collection<UInt8>) -> Bool {
            TransferJournal.header.utf8.starts(with: bytes)
        }

        private static func entry(_ line: ArraySlice<UInt8>) -> Entry? {
            guard line.count > 17, line[line.startIndex + 16] == UInt8(ascii: " ") else { return nil }
            let json = line.dropFirst(17)
            guard line.prefix(16).elementsEqual(sum(of: json).utf8) else { return nil }
            return try? JSONDecoder().decode(Entry.self, from: Data(json))
        }

        /// Returns the sixteen digits of a line's checksum.
        fileprivate static func sum(of bytes: some Sequence<UInt8>) -> String {
            (MessageDigest.digest(.sha256, of: bytes) ?? []).prefix(8).hexadecimal
        }
    }
}

/// The error number for a file with another format (EPROTO).
private let wrongFormatNumber: Int32 = 71
/// The error number for a closed file (EBADF).
private let closedNumber: Int32 = 9
