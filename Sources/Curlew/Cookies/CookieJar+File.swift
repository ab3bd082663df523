// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport
public import FoundationEssentials

extension CookieJar {
    /// The file of a jar, and the changes that are not in it yet.
    struct FileState {
        /// The change of one cookie: its new state, or nil if it was removed.
        struct Pending: Sendable {
            var cookie: Cookie?
            let at: Date
            let number: UInt64
            /// Whether the program removed the cookie.
            var isRequested = false
        }

        let file: SharedFile
        let format: FileFormat
        private(set) var pending: [Cookie.Key: Pending] = [:]
        /// The removals of several cookies at once; the next save also applies them to cookies that other processes
        /// have added to the file.
        private(set) var removals: [(selection: Selection, at: Date, number: UInt64)] = []
        private(set) var lastNumber: UInt64 = 0
        /// The maximum number of changes that wait for the file; beyond it, removals by servers are forgotten.
        private static let maximumPending = 10_000
        /// The number of changes at which removals by servers are forgotten next.
        private var trimsAt = Self.maximumPending

        init(_ file: SharedFile, _ format: FileFormat) { (self.file, self.format) = (file, format) }

        var hasChanges: Bool { !pending.isEmpty || !removals.isEmpty }

        mutating func note(_ effects: [CookieTable.Effect], at now: Date) {
            for effect in effects {
                switch effect {
                case .stored(let cookie, _): note(cookie.key, cookie, at: now)
                case .removed(let cookie, _): note(cookie.key, nil, at: now)
                }
            }
        }

        mutating func note(_ key: Cookie.Key, _ cookie: Cookie?, at now: Date, isRequested: Bool = false) {
            lastNumber += 1
            pending[key] = Pending(cookie: cookie, at: now, number: lastNumber, isRequested: isRequested)
            // While the file cannot be written, a server must not fill the memory with cookies that are evicted again.
            guard pending.count > trimsAt else { return }
            pending = pending.filter { $0.value.cookie != nil || $0.value.isRequested }
            trimsAt = max(Self.maximumPending, 2 * pending.count)
        }

        mutating func note(_ selection: Selection, at now: Date) {
            if case .cookie(let key) = selection { return note(key, nil, at: now, isRequested: true) }
            lastNumber += 1
            removals.removeAll { $0.selection == selection }
            removals.append((selection, now, lastNumber))
            for (key, change) in pending where change.cookie.map(selection.contains) == true {
                // In the file, the cookie may be another one that is no session cookie.
                let end = Pending(cookie: nil, at: now, number: lastNumber, isRequested: change.isRequested)
                pending[key] = selection == .session ? end : nil
            }
        }

        /// Forgets the changes up to a number, which the file has now.
        mutating func forget(upTo number: UInt64) {
            pending = pending.filter { $0.value.number > number }
            removals.removeAll { $0.number <= number }
        }

        /// Returns the cookies of the file, merged with the changes of this jar; the later change of a cookie wins.
        ///
        /// A record without a time of its change loses to every change.
        func merged(with records: [CookieFile.Record]) -> [CookieFile.Record] {
            var changes = pending
            var result: [CookieFile.Record] = []
            for record in records {
                let key = record.cookie.key
                let changed = record.changed ?? .distantPast
                if let change = changes.removeValue(forKey: key), change.at >= changed {
                    guard let cookie = change.cookie else { continue }
                    // A replaced cookie keeps its creation time, also that of another process.
                    let created = record.changed == nil ? cookie.created : min(cookie.created, record.cookie.created)
                    result.append(CookieFile.Record(cookie: cookie.with(created: created), changed: change.at))
                } else if !removals.contains(where: { $0.at >= changed && $0.selection.contains(record.cookie) }) {
                    result.append(record)
                }
            }
            let added = changes.values.compactMap { change in
                change.cookie.map { CookieFile.Record(cookie: $0, changed: change.at) }
            }
            return result + added.sorted { ($0.cookie.created, $0.cookie.name) < ($1.cookie.created, $1.cookie.name) }
        }
    }

    // MARK: Opening

    /// Creates a jar whose cookies are in a file; a missing file is created when there are cookies to save.
    ///
    /// The file is read now, on a disk thread. The jar saves its changes after a second, in ``save()``, and when a
    /// session with this jar shuts down. A failed automatic save is repeated a minute later. Session cookies are saved,
    /// too; see ``removeSessionCookies()``.
    ///
    /// Several processes may share the file, because a save merges the changes of this jar into it. If two of them
    /// change the same cookie, the later change wins in a JSON file, and the later save in a Netscape file. The file
    /// does not record removals: if one process removes a cookie, and another one then saves an older change of that
    /// cookie, the cookie returns. A save replaces the file atomically with mode 0600, and leaves out damaged lines and
    /// comments. If another program has removed or emptied the file, the next save writes all cookies again.
    ///
    /// - Parameters:
    ///   - path: The path of the file.
    ///   - format: The format of the file; the Netscape format of curl and wget unless given.
    /// - Throws: `NetworkError` of kind `.destinationFailed` in phase `saving`: the file cannot be read, has no
    ///   directory, is larger than 64 MiB, is a symbolic or hard link, belongs to another user or can be written by
    ///   one, or is not a cookie file. A damaged line is not an error; ``skippedLines`` has it.
    public convenience init(file path: String, format: FileFormat = .netscape) async throws(NetworkError) {
        let file = SharedFile(DiskFile.absolute(path))
        self.init(file: FileState(file, format))
        do throws(FileFailure) { try await synchronise(writes: false) } catch { throw error.networkError(file.path) }
    }

    /// The path of the jar's file; nil for a jar in memory.
    public var file: String? { state.withLock { $0.file?.file.path } }

    /// The lines that were skipped when the file or the contents were last read, at most 1000; each save updates them.
    public var skippedLines: [SkippedLine] { state.withLock { $0.skipped } }

    // MARK: Contents

    /// Creates a jar in memory with the cookies of a file's contents, such as a secret or a value of a database.
    ///
    /// ``skippedLines`` has the damaged lines.
    ///
    /// - Parameters:
    ///   - contents: The bytes of a cookie file.
    ///   - format: The format of the contents; the Netscape format of curl and wget unless given.
    /// - Throws: `NetworkError` of kind `.decodingFailed` in phase `decoding` for contents that are not empty and not
    ///   those of a cookie file.
    public convenience init(
        contents: some Sequence<UInt8>, format: FileFormat = .netscape
    ) throws(NetworkError) {
        self.init()
        do throws(CookieFile.NotACookieFile) {
            var found = try CookieFile(Array(contents), format, suffixes: suffixes(), now: time)
            let (table, evicted) = state.withLock(\.table).replaced(
                by: found.records, keeping: { _ in false }, at: time)
            found.skipEvicted(evicted)
            adopt(table, evicted, found.skipped, upTo: 0)
        } catch {
            throw NetworkError(
                .decodingFailed, phase: .decoding, "The contents are not those of a cookie file.",
                hint: "Check the format: it is \(format.rawValue).")
        }
    }

    /// Returns all cookies as the contents of a file, which `init(contents:format:)` and other programs read.
    ///
    /// - Parameter format: The format; the Netscape format, which has no cookies with tabs, unless given.
    public func contents(format: FileFormat = .netscape) -> Data {
        let now = time
        let records = state.withLock { $0.table }.records.filter { !$0.cookie.isExpired(at: now) }
        return Data(CookieFile(records).bytes(format))
    }

    // MARK: Saving

    /// Writes the changes to the jar's file, and reads the changes of other processes; a jar in memory does nothing.
    ///
    /// Returns when the file is on the disk. Cancellation does not interrupt it.
    /// - Throws: `NetworkError` of kind `.destinationFailed` in phase `saving`: the disk is full, the file became
    ///   unusable, or another process held its lock for more than ten seconds. The changes are kept for the next call.
    public func save() async throws(NetworkError) {
        guard let path = file else { return }
        do throws(FileFailure) { try await synchronise(writes: true) } catch { throw error.networkError(path) }
    }

    /// Saves the changes; observers get a report of a failure, too.
    func saveAndReport() async throws(NetworkError) {
        guard let path = file else { return }
        do throws(FileFailure) { try await synchronise(writes: true) } catch {
            notify(.fileFailed(path: path, reason: error.reason))
            throw error.networkError(path)
        }
    }

    private enum FileFailure: Error {
        case disk(DiskFailure)
        case foreign

        var reason: String {
            switch self {
            case .disk(let failure): failure.description
            case .foreign: "it is not a cookie file"
            }
        }

        func networkError(_ path: String) -> NetworkError {
            switch self {
            case .disk(let failure):
                NetworkError(unusable: "cookie file", path, failure)
            case .foreign:
                NetworkError(
                    .destinationFailed, phase: .saving, "The file \(path) is not a cookie file.",
                    hint: "Check the path and the format; Curlew does not overwrite other files.")
            }
        }
    }

    private func synchronise(writes: Bool) async throws(FileFailure) {
        guard let path = file else { return }
        let result = await DiskThread.sharing.value(at: path) { () -> Result<Void, FileFailure> in
            do throws(FileFailure) { return .success(try self.synchroniseNow(writes: writes)) } catch {
                return .failure(error)
            }
        }
        guard let result else { throw .disk(.noThread) }
        try result.get()
    }

    /// Reads the file and merges the changes, and writes the result if `writes` is true and there are changes; called
    /// on a disk thread.
    private func synchroniseNow(writes: Bool) throws(FileFailure) {
        let (file, known) = state.withLock { ($0.file, $0.table) }
        guard let own = file else { return }
        var table = known
        var evicted: [Cookie] = []
        var skipped: [SkippedLine] = []
        var isForeign = false
        /// Returns the merged contents.
        func merge(_ bytes: [UInt8]) -> [UInt8]? {
            do throws(CookieFile.NotACookieFile) {
                // A file that another program has emptied or removed is no reason to forget the cookies.
                var found =
                    SharedFile.isBlank(bytes)
                    ? CookieFile(known.records)
                    : try CookieFile(bytes, own.format, suffixes: suffixes(), now: time)
                // A Netscape file cannot have cookies with tabs, which stay in memory.
                (table, evicted) = known.replaced(
                    by: own.merged(with: found.records), keeping: { !own.format.canExpress($0) }, at: time)
                found.skipEvicted(evicted)
                skipped = found.skipped
                return CookieFile(table.records).bytes(own.format)
            } catch {
                isForeign = true
                return nil
            }
        }
        do throws(DiskFailure) {
            if writes, own.hasChanges {
                try own.file.update(merge)
            } else {
                let bytes = try own.file.contents() ?? []
                if writes, SharedFile.isBlank(bytes), known.count > 0 {
                    try own.file.update(merge)
                } else {
                    _ = merge(bytes)
                }
            }
        } catch {
            throw .disk(error)
        }
        if isForeign { throw .foreign }
        adopt(table, evicted, skipped, upTo: writes && own.hasChanges ? own.lastNumber : 0)
    }

    /// Replaces the cookies by those of a file, except for changes that were made in the meantime.
    private func adopt(_ table: CookieTable, _ evicted: [Cookie], _ skipped: [SkippedLine], upTo number: UInt64) {
        var table = table
        let now = time
        change { state in
            state.skipped = skipped
            state.file?.forget(upTo: number)
            let later = state.file?.pending ?? [:]
            table.copy(later.keys, from: state.table)
            if let removals = state.file?.removals, !removals.isEmpty {
                _ = table.removeAll { cookie in
                    later[cookie.key] == nil && removals.contains { $0.selection.contains(cookie) }
                }
            }
            defer { state.table = table }
            return state.table.differences(to: table, evicted: evicted, at: now)
        }
    }
}

extension CookieFile.Record {
    /// Returns the cookie with what the Netscape format does not have, from the cookie of the jar.
    func completed(by known: Cookie) -> Cookie? {
        guard changed == nil else { return nil }
        let isSame =
            known.value == cookie.value && known.expires == cookie.expires && known.isSecure == cookie.isSecure
            && known.isHTTPOnly == cookie.isHTTPOnly
        return isSame ? known : cookie.with(created: known.created)
    }
}
