// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import FoundationEssentials

/// What a store knows, in memory and in a file that outlives the process.
///
/// The file begins with the line `curlew-transfers 1`. Each further line is sixteen hexadecimal digits, the first of the
/// SHA-256 of what follows, a blank, and a JSON object: `{"put": …}` is the whole record of a download, `{"drop": "…"}` the
/// id of one that is forgotten. Lines are added, never changed. A line that was not written to its end, which can only be
/// the last one, counts for nothing. Now and then the file is replaced by one without what has become void.
final class TransferJournal: Sendable {
    fileprivate struct Entry: Codable {
        var put: StoredDownload?
        var drop: String?
    }

    /// Who waits for a line to be written has its number.
    struct Ticket: Sendable { fileprivate let number: UInt64 }

    fileprivate struct State {
        var records: RecordTable
        /// What the file held when there were lines in it that make no sense, until it is kept elsewhere.
        var damaged: [UInt8]?
        /// The lines that are not written yet.
        var pending: [UInt8] = []
        var pendingLines = 0
        var isSyncWanted = false
        var last: UInt64 = 0
        var written: UInt64 = 0
        /// Up to where it is on the disk for certain.
        var synced: UInt64 = 0
        var failure: (upTo: UInt64, DiskFailure)?
        /// How many lines the file has.
        var lines: Int
        /// Whether the file lacks something that is known here.
        var isBehind: Bool
    }

    static let header = "curlew-transfers 1"
    private static let most = 256 << 20
    /// How many void lines a file may have in any case.
    private static let slack = 1000

    /// How many records are made lines of in one go.
    private static let batch = 16

    private let home: OwnDirectory
    private let file: JournalFile
    private let lock: Lock<DirectoryLock?>
    private let state: Lock<State>

    /// Opens the journal of a directory, which is made if it is missing.
    ///
    /// On a full disk what is known can be read, and the first change that finds room writes it anew.
    ///
    /// For a disk thread.
    ///
    /// - Throws: A failure with `EWOULDBLOCK` when another process has it, with `EPROTO` when it is of another kind, of a
    ///   foreign store when another user has made, or may write, the directory or a file in it.
    init(in directory: String) throws(DiskFailure) {
        home = try OwnDirectory(directory)
        let owner = try DirectoryLock(home)
        lock = Lock(owner)
        file = try JournalFile("journal", in: home)
        let bytes = try file.contents(upTo: Self.most)
        let replayed = try Replay(bytes, file.path)
        state = Lock(
            State(
                records: RecordTable(replayed.records), damaged: replayed.isDamaged ? bytes : nil, lines: 0,
                isBehind: true))
        do throws(DiskFailure) { try rewrite() } catch {
            // What is known can be read, and the file stays as it is until there is room.
            guard error.isFull else { throw error }
        }
    }

    /// All that is known, in the order in which it came.
    var records: [StoredDownload] { state.withLock { $0.records.all() } }

    var count: Int { state.withLock { $0.records.count } }

    subscript(id: String) -> StoredDownload? { state.withLock { $0.records.find(id) } }

    /// The oldest record that is over and is none of these.
    func firstOver(except ids: Set<String>) -> StoredDownload? { state.withLock { $0.records.firstOver(except: ids) } }

    /// How many records were looked at so far.
    var visits: Int { state.withLock { $0.records.visits } }

    /// Lets another process have it; nothing can be written any more.
    ///
    /// Behind what is being written.
    func close() async {
        let isOver: Void? = await DiskThread.syncing.value(at: file.path) { self.lock.withLock { $0 = nil } }
        // Without a thread nothing is being written.
        if isOver == nil { lock.withLock { $0 = nil } }
    }

    var isClosed: Bool { lock.withLock { $0 == nil } }

    // MARK: Changes

    /// Takes down a record, new or changed; it is on the disk when the ticket was settled.
    func put(_ record: StoredDownload) -> Ticket {
        state.withLock { state in
            state.records.put(record)
            return state.add(Entry(put: record))
        }
    }

    /// Changes a record, if there is one.
    func change(_ id: String, _ change: (inout StoredDownload) -> Void) -> Ticket? {
        state.withLock { state -> Ticket? in
            guard var record = state.records.find(id) else { return nil }
            change(&record)
            state.records.put(record)
            return state.add(Entry(put: record))
        }
    }

    /// Forgets a record.
    func drop(_ id: String) -> Ticket {
        state.withLock { state in
            state.records.remove(id)
            return state.add(Entry(drop: id))
        }
    }

    /// Waits until what was taken down is in the file.
    ///
    /// What several tasks wait for at once is written, and waited for, in one go.
    ///
    /// - Parameter isSynced: Whether it has to be on the disk for certain.
    /// - Throws: Why it is not; the journal is written anew as a whole with the next change.
    func settle(_ ticket: Ticket, isSynced: Bool = true) async throws(DiskFailure) {
        let isDone = state.withLock { state in
            if ticket.number <= (isSynced ? state.synced : state.written) { return true }
            if isSynced { state.isSyncWanted = true }
            return false
        }
        if isDone { return }
        try await DiskThread.syncing.result(at: file.path) { () throws(DiskFailure) in try self.write(for: ticket) }
    }

    /// Waits until all that was taken down so far is on the disk.
    func settle() async throws(DiskFailure) { try await settle(Ticket(number: state.withLock { $0.last })) }

    private func write(for ticket: Ticket) throws(DiskFailure) {
        if isClosed { throw DiskFailure("nothing is written any more to", file.path, ebadf) }
        let (bytes, isSynced, number, isBehind) = state.withLock { state in
            defer {
                (state.pending, state.isSyncWanted) = ([], false)
                state.lines += state.pendingLines
                state.pendingLines = 0
            }
            let isBehind = state.isBehind || state.lines > 2 * state.records.count + Self.slack
            return (state.pending, state.isSyncWanted, state.last, isBehind)
        }
        if !bytes.isEmpty || isSynced || isBehind {
            do throws(DiskFailure) {
                if isBehind { try rewrite() } else { try file.append(bytes, isSynced: isSynced) }
            } catch {
                state.withLock { state in
                    state.failure = (number, error)
                    state.isBehind = true
                }
                throw error
            }
            state.withLock { state in
                state.written = max(state.written, number)
                if isSynced { state.synced = max(state.synced, number) }
            }
        }
        // Somebody else's turn had it, and failed.
        let failure = state.withLock { state in
            state.written < ticket.number ? state.failure?.1 : nil
        }
        if let failure { throw failure }
    }

    private func rewrite() throws(DiskFailure) {
        let (records, number) = state.withLock { state in
            // What waits to be written is in it.
            (state.pending, state.pendingLines) = ([], 0)
            return (state.records, state.last)
        }
        if let bytes = state.withLock({ $0.damaged }) {
            try home.replace("journal.damaged", with: CollectionOfOne(bytes))
            state.withLock { $0.damaged = nil }
        }
        // Piece by piece: on a full disk it ends with the first.
        let pieces = stride(from: -Self.batch, to: records.slotCount, by: Self.batch).lazy.map { start -> [UInt8] in
            if start < 0 { return Array((Self.header + "\n").utf8) }
            return records.slots(from: start, atMost: Self.batch).flatMap { Entry(put: $0).line }
        }
        try file.replace(with: pieces)
        state.withLock { state in
            state.lines = records.count
            (state.written, state.synced) = (max(state.written, number), max(state.synced, number))
            state.isBehind = false
        }
    }
}

extension TransferJournal.State {
    fileprivate mutating func add(_ entry: TransferJournal.Entry) -> TransferJournal.Ticket {
        pending += entry.line
        pendingLines += 1
        last += 1
        return TransferJournal.Ticket(number: last)
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
    /// What a journal's bytes say.
    struct Replay {
        private(set) var records: [StoredDownload] = []
        /// Whether there are lines that make no sense, beside a last one that was not written to its end.
        private(set) var isDamaged = false

        /// - Throws: A failure with `EPROTO` for a file that is no journal, or one of a later version.
        init(_ bytes: [UInt8], _ path: String) throws(DiskFailure) {
            var lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)[...]
            // After the last line end nothing is to come; what does was cut off.
            let rest = lines.popLast()
            guard let header = lines.popFirst() else {
                // It is new, or its header was not written to its end.
                guard header(startsWith: rest ?? []) else { throw DiskFailure("there is no journal in", path, eproto) }
                return
            }
            guard header.elementsEqual(TransferJournal.header.utf8) else {
                throw DiskFailure("there is no journal of this version in", path, eproto)
            }
            var places: [String: Int] = [:]
            var found: [StoredDownload?] = []
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

        /// Sixteen digits that tell whether a line is as it was written.
        fileprivate static func sum(of bytes: some Sequence<UInt8>) -> String {
            (MessageDigest.digest(.sha256, of: bytes) ?? []).prefix(8).hexadecimal
        }
    }
}

/// What a file says that is of another kind (EPROTO).
private let eproto: Int32 = 71
/// What a file says that is closed (EBADF).
private let ebadf: Int32 = 9
