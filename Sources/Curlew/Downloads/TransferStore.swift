// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// Remembers downloads beyond the end of the process: after a crash, a `kill -9` or a lost machine they go on where they were.
///
/// ```swift
/// let store = try await TransferStore(at: "/var/lib/mirror/transfers")
/// for earlier in await store.reattach(session) { print("going on with", earlier.record) }
/// try await store.download("https://example.com/big.iso", on: session, to: .directory("/srv/iso"))
/// for await report in store.reports {
///     switch report {
///     case .finished(let record): print(record.path ?? "", record.userInfo)
///     case .failed(let record): print(record)
///     case .drained: return
///     }
/// }
/// ```
///
/// A store is a directory of one process at a time. Its file `journal` has a line for each change, with a checksum, and what
/// matters is on the disk before it happens: a download before it begins, a finished part before it gets its name, a
/// finished file before it is told. So nothing is fetched twice, and nothing half done ever has its final name.
///
/// A download that is cancelled, or ends with its session, stays in the store and goes on when it is next reattached; one
/// whose part is discarded (``Transfer/cancel(producingResumeToken:)`` with false) is forgotten; any other failure is
/// reported once, as every finished file is.
public actor TransferStore {
    /// The store's directory.
    public nonisolated let directory: String
    /// What lets so many of the store's downloads run at once.
    public nonisolated let queue: DownloadQueue
    nonisolated let journal: TransferJournal
    /// What runs, or is about to.
    var live: [String: Transfer<DownloadedFile>] = [:]
    /// What was cancelled here and is to be gone on with some day.
    var resting: Set<String> = []
    /// What a reader of reports has, and has not acknowledged.
    var delivered: Set<String> = []
    /// What is taken down now, and begins then.
    private var beginning: Set<String> = []
    /// What is being forgotten.
    private var leaving: Set<String> = []
    private var isClosing = false
    nonisolated let bell = Bell()

    /// Opens a store; its directory is made if it is missing, readable by this user alone.
    ///
    /// Files that had their names when an earlier process ended, or were whole and about to get them, are finished now,
    /// without asking a server. Nothing else begins before ``reattach(_:adapting:)``. A directory that another user has
    /// made or may write is refused before anything in it is read or changed.
    ///
    /// A store on a full disk can be opened and read: ``downloads`` and ``reports`` return what it knows, and a report
    /// that could not be marked as delivered is repeated by the next process. Operations that write fail with
    /// `.destinationFailed` until space is free.
    ///
    /// - Parameters:
    ///   - directory: The store's directory.
    ///   - queue: Lets so many of its downloads run at once; three, the oldest first, unless given.
    /// - Throws: `NetworkError` of kind `.destinationFailed` in phase `saving`: another process has the store (the cause's
    ///   reason is `.busy`), the directory or a file in it is not this user's alone (`.foreignStore`), the directory cannot
    ///   be written to, or holds something else.
    public init(at directory: String, queue: DownloadQueue = DownloadQueue()) async throws(NetworkError) {
        let directory = DiskFile.absolute(directory)
        self.directory = directory
        self.queue = queue
        do throws(DiskFailure) {
            let journal = try await DiskThread.syncing.result(at: directory + "/") { () throws(DiskFailure) in
                try TransferJournal(in: directory)
            }
            self.journal = journal
            for record in journal.records {
                guard let placing = record.placing else { continue }
                let name = try await DiskThread.saving.result(at: placing.part) { () throws(DiskFailure) in
                    try record.finishPlacing()
                }
                let ticket = journal.change(record.id) { record in
                    record.placing = nil
                    if let name { record.finish(at: name) }
                }
                // Where there is no room, the next process finds out by itself.
                do throws(DiskFailure) { if let ticket { try await journal.settle(ticket) } } catch {
                    guard error.isFull else { throw error }
                }
            }
        } catch {
            throw Self.failure(error, directory)
        }
    }

    private static func failure(_ failure: DiskFailure, _ directory: String) -> NetworkError {
        if failure.isBusy {
            let owner = DirectoryLock.owner(of: directory).map { "process \($0)" } ?? "another process"
            return NetworkError(
                .destinationFailed, phase: .saving, "The store \(directory) is in use by \(owner).",
                hint: "A store belongs to one process at a time; end the other one, or choose another directory.",
                cause: DestinationFailure(.busy, directory, "in use by \(owner)"))
        }
        return NetworkError(failure, request: nil)
    }

    // MARK: What there is

    /// Everything the store knows: what waits, runs, and is over but was not reported yet; the oldest first.
    public nonisolated var downloads: [StoredDownload] { journal.records }

    /// Cancels what runs, which goes on when it is next reattached, and lets another process have the store.
    ///
    /// Reports end. A store that nobody holds any more, nor a transfer of it, is closed by itself.
    public func close() async {
        isClosing = true
        for transfer in live.values { transfer.cancel() }
        // Also where this task is cancelled: another process must find nobody who writes.
        await Task { await self.end() }.value
    }

    private func end() async {
        while !beginning.isEmpty || !leaving.isEmpty { _ = await bell.wait(after: bell.rings) }
        while let (id, transfer) = live.first {
            await transfer.cancel(producingResumeToken: true)
            isOver(id, transfer.id)
        }
        await journal.close()
        bell.ring()
    }

    // MARK: Beginning

    /// Takes a download down, and begins it.
    ///
    /// When this returns it is on the disk that there is such a download, and it goes on whatever becomes of this process.
    ///
    /// - Parameters:
    ///   - request: A request by GET, or a URL as a string literal. Its URL, fields and options are written down; interceptors
    ///     and fields with credentials are used now and have to be given again (see ``reattach(_:adapting:)``).
    ///   - session: Runs it.
    ///   - destination: A file or a directory.
    ///   - overwrite: What becomes of a file of the same name; the download fails unless given.
    ///   - checksum: The digest that the file has to have; nil checks only what the server states (RFC 9530).
    ///   - options: How it is done otherwise; the queue is always the store's.
    ///   - userInfo: Whatever the program wants to remember with it.
    ///   - withheld: Fields that are not written either, beside those that are known to carry credentials
    ///     (``HeaderName/isSensitive``).
    /// - Returns: The record, and the transfer, which was started.
    /// - Throws: `NetworkError`: `.invalidRequest` for what cannot be stored, such as trust of the request's own, and by a
    ///   closed store, `.destinationFailed` when the journal cannot be written; then nothing has begun.
    @discardableResult
    public func download(
        _ request: Request, on session: Session = .shared, to destination: DownloadDestination,
        overwrite: DownloadOverwrite = .fail, expecting checksum: Checksum? = nil,
        saving options: DownloadOptions = DownloadOptions(), userInfo: [String: String] = [:],
        withholding withheld: Set<HeaderName> = []
    ) async throws(NetworkError) -> StoredTransfer {
        let record = try StoredDownload(
            request, to: destination, overwrite: overwrite, expecting: checksum, saving: options, userInfo: userInfo,
            withholding: withheld)
        let closed = NetworkError(invalid: .usage, "The store is closed.", request: request)
        if isClosing { throw closed }
        beginning.insert(record.id)
        defer { hasBegun(record.id) }
        do throws(DiskFailure) {
            try await journal.settle(journal.put(record))
        } catch {
            await forget(record.id)
            throw NetworkError(error, request: request)
        }
        if isClosing {
            await forget(record.id)
            throw closed
        }
        guard isKnown(record.id) else { throw .cancelled(.preparing, request) }
        return begin(record, by: request, on: session)
    }

    /// Begins everything again that is not over, where it was.
    ///
    /// What runs already goes on and is returned, too; a closed store returns nothing.
    ///
    /// - Parameters:
    ///   - session: Runs them.
    ///   - adapt: Completes a request: with the fields of ``StoredDownload/withheldFields``, interceptors, a fresh URL.
    /// - Returns: The records and their transfers, which were started, the oldest first.
    @discardableResult
    public func reattach(
        _ session: Session = .shared, adapting adapt: @Sendable (StoredDownload, inout Request) -> Void = { _, _ in }
    ) -> [StoredTransfer] {
        var transfers: [StoredTransfer] = []
        if isClosing { return [] }
        for id in journal.records.map(\.id) where !beginning.contains(id) {
            let running = live[id]
            let isRunning = running.map { $0.state != .finished } ?? false
            // As it is now: it may have ended while the others were begun.
            guard isKnown(id), let record = journal[id], !record.isOver else { continue }
            if let running, isRunning {
                transfers.append(StoredTransfer(record: record, transfer: running))
                continue
            }
            var request = record.request
            adapt(record, &request)
            transfers.append(begin(record, by: request, on: session))
        }
        return transfers
    }

    /// Begins a download again that has failed, and goes on with its part.
    ///
    /// What has failed is known until the report after its own is asked for: in the body of a loop over ``reports`` it is.
    ///
    /// - Parameters:
    ///   - id: The record's id.
    ///   - session: Runs it.
    ///   - adapt: Completes the request, as in ``reattach(_:adapting:)``.
    /// - Returns: The record and its transfer, which was started; nil when the store knows no such failure, or is closed.
    /// - Throws: `NetworkError` of kind `.destinationFailed` when the journal cannot be written.
    @discardableResult
    public func retry(
        _ id: StoredDownload.ID, on session: Session = .shared,
        adapting adapt: @Sendable (StoredDownload, inout Request) -> Void = { _, _ in }
    ) async throws(NetworkError) -> StoredTransfer? {
        guard !isClosing, let failed = journal[id], failed.state == .failed, beginning.insert(id).inserted else {
            return nil
        }
        defer { hasBegun(id) }
        let ticket = journal.change(id) { record in
            (record.state, record.failure) = (.waiting, nil)
            record.countRetry()
        }
        do throws(DiskFailure) { if let ticket { try await journal.settle(ticket) } } catch {
            // Nothing has become of it.
            _ = journal.change(id) { $0 = failed }
            throw NetworkError(error, request: nil)
        }
        delivered.remove(id)
        guard !isClosing, isKnown(id), let record = journal[id], !record.isOver else { return nil }
        var request = record.request
        adapt(record, &request)
        return begin(record, by: request, on: session)
    }

    /// Forgets a download, and ends it if it runs; its part is removed, a finished file stays.
    ///
    /// - Parameter id: The record's id; one that the store does not know is no mistake.
    /// - Throws: `NetworkError` of kind `.destinationFailed` when the journal cannot be written.
    public func remove(_ id: StoredDownload.ID) async throws(NetworkError) {
        guard let record = journal[id] else { return }
        // Meanwhile nobody begins it again.
        let isFirst = leaving.insert(id).inserted
        defer {
            if isFirst { leaving.remove(id) }
            bell.ring()
        }
        if let transfer = live[id], transfer.state != .finished {
            await transfer.cancel(producingResumeToken: false)
        }
        if record.state != .finished, let part = record.place.part(of: record.url) {
            await DownloadPart.remove(part, of: record.url)
        }
        let ticket = journal.drop(id)
        delivered.remove(id)
        resting.remove(id)
        do throws(DiskFailure) { try await journal.settle(ticket) } catch { throw NetworkError(error, request: nil) }
    }

    /// Whether it is known, and will be.
    private func isKnown(_ id: String) -> Bool { journal[id] != nil && !leaving.contains(id) }

    private func hasBegun(_ id: String) {
        beginning.remove(id)
        bell.ring()
    }

    private func forget(_ id: String) async {
        // Where it cannot be written, the journal is written anew without it, with the next change.
        try? await journal.settle(journal.drop(id))
    }

    private func begin(_ record: StoredDownload, by request: Request, on session: Session) -> StoredTransfer {
        let plan = DownloadPlan(
            destination: record.place, overwrite: record.overwrite, checksum: record.checksum,
            options: record.options(in: queue), source: record.url,
            witness: StoreWitness(store: self, id: record.id))
        let transfer = session.download(request, plan)
        live[record.id] = transfer
        resting.remove(record.id)
        transfer.start()
        // However it ends, also where it never began.
        Task {
            _ = try? await transfer.value
            self.isOver(record.id, transfer.id)
        }
        return StoredTransfer(record: record, transfer: transfer)
    }

    private func isOver(_ id: String, _ transfer: UInt64) {
        // It may have been begun again.
        guard live[id]?.id == transfer else { return }
        live[id] = nil
        if let record = journal[id], !record.isOver { resting.insert(id) }
        bell.ring()
    }
}

/// A download of a store: what is remembered of it, and the transfer that runs.
public struct StoredTransfer: Sendable, Identifiable {
    /// What the store remembers, as it was when the transfer was begun.
    public let record: StoredDownload
    /// The transfer.
    public let transfer: Transfer<DownloadedFile>
    /// The record's id.
    public var id: StoredDownload.ID { record.id }
}

extension StoredDownload {
    mutating func finish(at name: String, bytes: Int64? = nil) {
        state = .finished
        self.bytes = bytes ?? self.bytes
        path = name
    }
}

/// Takes down for a store what becomes of one of its downloads.
private struct StoreWitness: DownloadWitness {
    let store: TransferStore
    let id: String

    func begins() async {
        let ticket = store.journal.change(id) { record in
            record.state = .running
            record.countAttempt()
            record.failure = nil
        }
        // Nothing depends on it, so nothing waits for it.
        if let ticket { try? await store.journal.settle(ticket, isSynced: false) }
    }

    func places(_ part: FileIdentity, from partPath: String, at path: String) async throws(DiskFailure) {
        let ticket = store.journal.change(id) { record in
            record.placing = StoredDownload.Placing(
                part: DiskFile.absolute(partPath), path: DiskFile.absolute(path), inode: part.inode,
                writtenAt: part.writtenAt, bytes: part.size, bootID: DiskFile.bootID)
            record.bytes = part.size
        }
        if let ticket { try await store.journal.settle(ticket) }
    }

    func ended(_ result: Result<DownloadedFile, NetworkError>, isDiscarded: Bool) async {
        let ticket: TransferJournal.Ticket?
        switch result {
        case .success(let file):
            ticket = store.journal.change(id) { record in
                record.placing = nil
                record.finish(at: file.path, bytes: file.bytes)
            }
        case .failure where isDiscarded:
            ticket = store.journal.drop(id)
        case .failure(let error):
            let isToGoOn = error.kind == .cancelled || error.kind == .sessionClosed
            ticket = store.journal.change(id) { record in
                record.placing = nil
                record.state = isToGoOn ? .waiting : .failed
                if !isToGoOn { record.failure = "\(error.code): \(error.message)" }
            }
        }
        // If it cannot be written, the next process finds out by itself.
        if let ticket { try? await store.journal.settle(ticket) }
        store.bell.ring()
    }
}
