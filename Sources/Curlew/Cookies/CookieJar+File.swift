// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport
internal import FoundationEssentials

extension CookieJar {
    /// The file of a jar, and the changes that are not in it yet.
    struct FileState {
        /// The change of one cookie: its new state, or nil if it was removed.
        struct Pending: Sendable {
            var cookie: Cookie?
            let at: Date
            let number: UInt64
        }

        let file: SharedFile
        let format: FileFormat
        var skipped: [SkippedLine] = []
        private(set) var pending: [Cookie.Key: Pending] = [:]
        /// The sets of cookies that the program removed; other processes may have added further members to the file.
        private(set) var removals: [(selection: Selection, at: Date, number: UInt64)] = []
        private(set) var lastNumber: UInt64 = 0
        /// The maximum number of changes that wait for the file; beyond it, removals are forgotten.
        private static let maximumPending = 10_000
        /// Whether a task will write the file soon.
        var isSaveScheduled = false

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

        mutating func note(_ key: Cookie.Key, _ cookie: Cookie?, at now: Date) {
            lastNumber += 1
            pending[key] = Pending(cookie: cookie, at: now, number: lastNumber)
            // While the file cannot be written, a server must not fill the memory with cookies that are evicted again.
            if pending.count > Self.maximumPending { pending = pending.filter { $0.value.cookie != nil } }
        }

        mutating func note(_ selection: Selection, at now: Date) {
            if case .cookie(let key) = selection { return note(key, nil, at: now) }
            lastNumber += 1
            removals.removeAll { $0.selection == selection }
            removals.append((selection, now, lastNumber))
            for (key, change) in pending where change.cookie.map(selection.contains) == true {
                pending[key] = Pending(cookie: nil, at: now, number: lastNumber)
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

    /// The time from a change to the writing of the file, unless it is written before.
    private static let saveDelay = Duration.seconds(1)

    // MARK: Opening

    /// Creates a jar whose cookies are in a file, which is read now and created when there are cookies to save.
    ///
    /// The file is read and written on a disk thread. Changes are written a second later, by ``save()``, and by the
    /// shutdown of a session with this jar. Several processes may use the same file: a save adds the changes of this
    /// jar to the cookies in the file. If two processes change the same cookie, the later change wins in a JSON file,
    /// and the later save in a Netscape file. A process that saves an older change after another one has removed the
    /// cookie adds it again. The file is replaced atomically, with permissions for this user only. Session cookies are
    /// saved, too, as curl does; call ``removeSessionCookies()`` if a new run of the program is a new session.
    ///
    /// - Parameters:
    ///   - path: The path of the file.
    ///   - format: The format of the file; the Netscape format of curl and wget unless given.
    /// - Throws: `NetworkError` of kind `.destinationFailed` in phase `saving`: the file cannot be read, has no
    ///   directory, is a link, belongs to another user or can be written by one, or has contents that are not cookies.
    ///   A damaged line is not an error; ``skippedLines`` has it.
    public convenience init(file path: String, format: FileFormat = .netscape) async throws(NetworkError) {
        let file = SharedFile(DiskFile.absolute(path))
        self.init(file: FileState(file, format))
        do throws(FileFailure) { try await synchronise(writes: false) } catch { throw error.networkError(file.path) }
    }

    /// The path of the jar's file; nil for a jar in memory.
    public var file: String? { state.withLock { $0.file?.file.path } }

    /// The lines of the file that were skipped when it was last read; empty for a jar in memory.
    public var skippedLines: [SkippedLine] { state.withLock { $0.file?.skipped ?? [] } }

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

    /// Saves the changes after `saveDelay`.
    func saveLater() {
        Task(priority: .utility) {
            try? await ContinuousClock().wait(for: Self.saveDelay)
            state.withLock { $0.file?.isSaveScheduled = false }
            try? await saveAndReport()
        }
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
                NetworkError(
                    .destinationFailed, phase: .saving, "The cookie file \(path) cannot be used: \(failure).",
                    hint:
                        "Check the directory, the owner and the permissions of the file, and the free space on the disk.",
                    cause: DownloadDestination.Failure(failure))
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
        var skipped: [SkippedLine] = []
        var isForeign = false
        /// Returns the merged contents.
        func merge(_ bytes: [UInt8]) -> [UInt8]? {
            do throws(CookieFile.NotACookieFile) {
                let found = try CookieFile(bytes, own.format, now: time)
                skipped = found.skipped
                // The file cannot have all cookies; the others stay as they are.
                table = known.replaced(
                    by: own.merged(with: found.records), keeping: { !own.format.canExpress($0) }, at: time)
                let records = table.all.map { CookieFile.Record(cookie: $0.cookie, changed: $0.changed) }
                return CookieFile(records).bytes(own.format)
            } catch {
                isForeign = true
                return nil
            }
        }
        do throws(DiskFailure) {
            if writes, own.hasChanges {
                try own.file.update(merge)
            } else {
                _ = merge(try own.file.contents() ?? [])
            }
        } catch {
            throw .disk(error)
        }
        if isForeign { throw .foreign }
        adopt(table, skipped, upTo: writes && own.hasChanges ? own.lastNumber : 0)
    }

    /// Replaces the cookies by those of the file, except for changes that were made in the meantime.
    private func adopt(_ table: CookieTable, _ skipped: [SkippedLine], upTo number: UInt64) {
        var table = table
        change { state in
            state.file?.skipped = skipped
            state.file?.forget(upTo: number)
            table.copy(Array(state.file?.pending.keys ?? [:].keys), from: state.table)
            for removal in state.file?.removals ?? [] {
                let later = state.file?.pending ?? [:]
                _ = table.removeAll { removal.selection.contains($0) && later[$0.key] == nil }
            }
            defer { state.table = table }
            return state.table.differences(to: table)
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

extension CookieJar.State {
    /// Marks a save as scheduled if one is due; returns whether the caller must start it.
    mutating func markSaveScheduled() -> Bool {
        guard let own = file, own.hasChanges, !own.isSaveScheduled else { return false }
        file?.isSaveScheduled = true
        return true
    }
}
