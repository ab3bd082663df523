// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

/// A store of downloads that survives the process: after a crash, a `kill -9` or a power failure they can be resumed.
///
/// ```swift
/// let store = try await TransferStore(at: "/var/lib/mirror/transfers")
/// for earlier in await store.reattach(session) { print("resuming", earlier.record) }
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
/// A store is a directory that one process uses at a time. Its file `journal` has a line with a checksum for each
/// change. The store syncs the important records to the disk ahead of the action: a download before it starts, a
/// complete part file before it is renamed, a finished file before it is reported. Therefore no file is fetched twice,
/// and no incomplete file ever has its final name.
///
/// A download that is cancelled, or that ends because its session closes, stays in the store and resumes when it is
/// next reattached. A download whose part is discarded (``Transfer/cancel(producingResumeToken:)`` with false) is
/// removed from the store. Every other failure and every finished file is reported once.
public actor TransferStore {
    /// The store's directory.
    public nonisolated let directory: String
    /// The queue that limits how many of the store's downloads run at once.
    public nonisolated let queue: DownloadOptions.Queue
    nonisolated let journal: TransferJournal
    /// The transfers that were started and have not ended, by record id.
    var transfers: [String: Transfer<DownloadedFile>] = [:]
    /// The ids of downloads that ended in this process without being over, for example because they were cancelled.
    var resumable: Set<String> = []
    /// The ids of records that a reader of reports has received and not acknowledged yet.
    var delivered: Set<String> = []
    /// The ids of downloads whose record is being written before they start.
    private var starting: Set<String> = []
    /// The ids of downloads that are being removed.
    private var removing: Set<String> = []
    private var isClosing = false
    nonisolated let signal = Signal()

    /// Opens a store; a missing directory is created with permissions for this user only.
    ///
    /// Files that were complete when an earlier process ended, renamed or not, are finished now without a request to a
    /// server. No other download starts before ``reattach(_:adapting:)``. A directory that another user has created or
    /// may write to is rejected before the store reads or changes anything in it.
    ///
    /// A store on a full disk can be opened and read: ``downloads`` and ``reports`` return what it knows, and a report
    /// that could not be marked as delivered is repeated by the next process. Operations that write fail with
    /// `.destinationFailed` until space is free.
    ///
    /// - Parameters:
    ///   - directory: The store's directory.
    ///   - queue: Limits how many downloads run at once; by default three run, and the oldest starts first.
    /// - Throws: `NetworkError` of kind `.destinationFailed` in phase `saving`: another process uses the store (the
    ///   cause's reason is `.busy`), the directory or a file in it is not owned by this user alone (`.foreignStore`),
    ///   the directory is not writable, or its journal has another format.
    public init(at directory: String, queue: DownloadOptions.Queue = DownloadOptions.Queue()) async throws(NetworkError)
    {
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
                    try record.finishRename()
                }
                let lineNumber = journal.change(record.id) { record in
                    record.placing = nil
                    if let name { record.finish(at: name) }
                }
                // On a full disk the change stays in memory, and the next process detects the file again.
                do throws(DiskFailure) { if let lineNumber { try await journal.waitUntilWritten(lineNumber) } } catch {
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
                cause: DownloadDestination.Failure(.busy, directory, "in use by \(owner)"))
        }
        return NetworkError(failure, request: nil)
    }

    // MARK: Contents

    /// The records of all waiting and running downloads and of those that are over but not reported yet, the oldest
    /// first.
    public nonisolated var downloads: [TransferStore.Download] { journal.records }

    /// Cancels the running downloads, which resume when they are next reattached, and releases the store's lock.
    ///
    /// The sequences of reports end. A store closes itself when the last reference to it and its transfers is released.
    public func close() async {
        isClosing = true
        for transfer in transfers.values { transfer.cancel() }
        // Close in a separate task, so that closing completes even if the caller is cancelled: after the lock is
        // released, this process must not write any more.
        await Task { await self.end() }.value
    }

    private func end() async {
        while !starting.isEmpty || !removing.isEmpty { _ = await signal.wait(after: signal.count) }
        while let (id, transfer) = transfers.first {
            await transfer.cancel(producingResumeToken: true)
            transferEnded(id, transfer.id)
        }
        await journal.close()
        signal.send()
    }

    // MARK: Starting

    /// Adds a download to the store and starts it.
    ///
    /// When this method returns, the record is on the disk, so the download can be resumed after the process has ended.
    ///
    /// - Parameters:
    ///   - request: A GET request, or a URL as a string literal. The store writes its URL, fields and options;
    ///     interceptors and fields with credentials are used now and must be supplied again later (see
    ///     ``reattach(_:adapting:)``).
    ///   - session: The session that runs the download.
    ///   - destination: A file or a directory.
    ///   - overwrite: The policy for an existing file of the same name; by default the download fails.
    ///   - checksum: The expected digest of the file; nil checks only the digests that the server states (RFC 9530).
    ///   - options: The options of the download; the queue is always that of the store.
    ///   - userInfo: Values to store with the record.
    ///   - withheld: Names of further fields that must not be written, beside those that are known to carry credentials
    ///     (``HeaderName/isSensitive``).
    /// - Returns: The record, and the transfer, which was started.
    /// - Throws: `NetworkError`: `.invalidRequest` for a download that cannot be stored, such as a request with its own
    ///   trust evaluator, and when the store is closed; `.destinationFailed` when the journal cannot be written. The
    ///   download has not started then.
    @discardableResult
    public func download(
        _ request: Request, on session: Session = .shared, to destination: DownloadDestination,
        overwrite: DownloadDestination.Overwrite = .fail, expecting checksum: Checksum? = nil,
        options: DownloadOptions = DownloadOptions(), userInfo: [String: String] = [:],
        withholding withheld: Set<HeaderName> = []
    ) async throws(NetworkError) -> TransferStore.StoredTransfer {
        let record = try TransferStore.Download(
            request, to: destination, overwrite: overwrite, expecting: checksum, options: options, userInfo: userInfo,
            withholding: withheld)
        let closed = NetworkError(invalid: .usage, "The store is closed.", request: request)
        if isClosing { throw closed }
        starting.insert(record.id)
        defer { recordWritten(record.id) }
        do throws(DiskFailure) {
            try await journal.waitUntilWritten(journal.put(record))
        } catch {
            await discardRecord(record.id)
            throw NetworkError(error, request: request)
        }
        if isClosing {
            await discardRecord(record.id)
            throw closed
        }
        guard isKnown(record.id) else { throw .cancelled(.preparing, request) }
        return begin(record, by: request, on: session)
    }

    /// Resumes all downloads that are not over.
    ///
    /// Downloads that run already continue and are returned as well; a closed store returns an empty array.
    ///
    /// - Parameters:
    ///   - session: The session that runs the downloads.
    ///   - adapt: Completes a request: with the fields of ``Download/withheldFields``, interceptors, a fresh URL.
    /// - Returns: The records and their transfers, which were started, the oldest first.
    @discardableResult
    public func reattach(
        _ session: Session = .shared,
        adapting adapt: @Sendable (TransferStore.Download, inout Request) -> Void = { _, _ in }
    ) -> [TransferStore.StoredTransfer] {
        var started: [TransferStore.StoredTransfer] = []
        if isClosing { return [] }
        for id in journal.records.map(\.id) where !starting.contains(id) {
            let running = transfers[id]
            let isRunning = running.map { $0.state != .finished } ?? false
            // Read the record again: the download may have ended while others were started.
            guard isKnown(id), let record = journal[id], !record.isOver else { continue }
            if let running, isRunning {
                started.append(TransferStore.StoredTransfer(record: record, transfer: running))
                continue
            }
            var request = record.request
            adapt(record, &request)
            started.append(begin(record, by: request, on: session))
        }
        return started
    }

    /// Retries a failed download, and resumes from its part file.
    ///
    /// The store keeps the record of a failed download until its reader requests the next report. Therefore this method
    /// can be called in the body of a loop over ``reports``.
    ///
    /// - Parameters:
    ///   - id: The record's id.
    ///   - session: The session that runs the download.
    ///   - adapt: Completes the request, as in ``reattach(_:adapting:)``.
    /// - Returns: The record and its transfer, which was started; nil when the store has no failed download with this
    ///   id, or is closed.
    /// - Throws: `NetworkError` of kind `.destinationFailed` when the journal cannot be written.
    @discardableResult
    public func retry(
        _ id: TransferStore.Download.ID, on session: Session = .shared,
        adapting adapt: @Sendable (TransferStore.Download, inout Request) -> Void = { _, _ in }
    ) async throws(NetworkError) -> TransferStore.StoredTransfer? {
        guard !isClosing, let failed = journal[id], failed.state == .failed, starting.insert(id).inserted else {
            return nil
        }
        defer { recordWritten(id) }
        let lineNumber = journal.change(id) { record in
            (record.state, record.failure) = (.waiting, nil)
            record.incrementRetries()
        }
        do throws(DiskFailure) { if let lineNumber { try await journal.waitUntilWritten(lineNumber) } } catch {
            // The retry could not be recorded: restore the failed record.
            _ = journal.change(id) { $0 = failed }
            throw NetworkError(error, request: nil)
        }
        delivered.remove(id)
        guard !isClosing, isKnown(id), let record = journal[id], !record.isOver else { return nil }
        var request = record.request
        adapt(record, &request)
        return begin(record, by: request, on: session)
    }

    /// Removes a download from the store, cancels it if it runs, and deletes its part file; a finished file stays.
    ///
    /// - Parameter id: The record's id; an unknown id is ignored.
    /// - Throws: `NetworkError` of kind `.destinationFailed` when the journal cannot be written.
    public func remove(_ id: TransferStore.Download.ID) async throws(NetworkError) {
        guard let record = journal[id] else { return }
        // `isKnown` is false from now on, so the download cannot be started again while this method waits.
        let isFirst = removing.insert(id).inserted
        defer {
            if isFirst { removing.remove(id) }
            signal.send()
        }
        if let transfer = transfers[id], transfer.state != .finished {
            await transfer.cancel(producingResumeToken: false)
        }
        if record.state != .finished, let part = record.place.part(of: record.url) {
            await PartialDownload.remove(part, of: record.url)
        }
        let lineNumber = journal.drop(id)
        delivered.remove(id)
        resumable.remove(id)
        do throws(DiskFailure) { try await journal.waitUntilWritten(lineNumber) } catch {
            throw NetworkError(error, request: nil)
        }
    }

    /// Returns whether the store has the record and is not removing it.
    private func isKnown(_ id: String) -> Bool { journal[id] != nil && !removing.contains(id) }

    private func recordWritten(_ id: String) {
        starting.remove(id)
        signal.send()
    }

    private func discardRecord(_ id: String) async {
        // If this write fails, the next change rewrites the journal without the record.
        try? await journal.waitUntilWritten(journal.drop(id))
    }

    private func begin(_ record: TransferStore.Download, by request: Request, on session: Session)
        -> TransferStore.StoredTransfer
    {
        let plan = DownloadPlan(
            destination: record.place, overwrite: record.overwrite, checksum: record.checksum,
            options: record.options(in: queue), source: record.url,
            observer: JournalingObserver(store: self, id: record.id))
        let transfer = session.download(request, plan)
        transfers[record.id] = transfer
        resumable.remove(record.id)
        transfer.start()
        // Clean up after every end, even of a transfer that never started.
        Task {
            _ = try? await transfer.value
            self.transferEnded(record.id, transfer.id)
        }
        return TransferStore.StoredTransfer(record: record, transfer: transfer)
    }

    private func transferEnded(_ id: String, _ transfer: UInt64) {
        // Another transfer may run the download by now.
        guard transfers[id]?.id == transfer else { return }
        transfers[id] = nil
        if let record = journal[id], !record.isOver { resumable.insert(id) }
        signal.send()
    }
}

extension TransferStore {
    /// A download of a store: its record and its running transfer.
    public struct StoredTransfer: Sendable, Identifiable {
        /// The record, as it was when the transfer was started.
        public let record: TransferStore.Download
        /// The transfer.
        public let transfer: Transfer<DownloadedFile>
        /// The record's id.
        public var id: TransferStore.Download.ID { record.id }
    }
}

extension TransferStore.Download {
    mutating func finish(at name: String, bytes: Int64? = nil) {
        state = .finished
        self.bytes = bytes ?? self.bytes
        path = name
    }
}

/// An observer of one download that writes its state into the store's journal.
private struct JournalingObserver: DownloadObserver {
    let store: TransferStore
    let id: String

    func didStart() async {
        let lineNumber = store.journal.change(id) { record in
            record.state = .running
            record.incrementAttempts()
            record.failure = nil
        }
        // No other step depends on this record, so it is not synced to the disk and errors are ignored.
        if let lineNumber { try? await store.journal.waitUntilWritten(lineNumber, isSynced: false) }
    }

    func willRename(_ part: FileIdentity, from partPath: String, to path: String) async throws(DiskFailure) {
        let lineNumber = store.journal.change(id) { record in
            record.placing = TransferStore.Download.PendingRename(
                part: DiskFile.absolute(partPath), path: DiskFile.absolute(path), inode: part.inode,
                writtenAt: part.writtenAt, bytes: part.size, bootID: DiskFile.bootID)
            record.bytes = part.size
        }
        if let lineNumber { try await store.journal.waitUntilWritten(lineNumber) }
    }

    func didEnd(_ result: Result<DownloadedFile, NetworkError>, isDiscarded: Bool) async {
        let lineNumber: TransferJournal.LineNumber?
        switch result {
        case .success(let file):
            lineNumber = store.journal.change(id) { record in
                record.placing = nil
                record.finish(at: file.path, bytes: file.bytes)
            }
        case .failure where isDiscarded:
            lineNumber = store.journal.drop(id)
        case .failure(let error):
            let isToGoOn = error.kind == .cancelled || error.kind == .sessionClosed
            lineNumber = store.journal.change(id) { record in
                record.placing = nil
                record.state = isToGoOn ? .waiting : .failed
                if !isToGoOn { record.failure = "\(error.code): \(error.message)" }
            }
        }
        // If this write fails, the next process detects the outcome from the files.
        if let lineNumber { try? await store.journal.waitUntilWritten(lineNumber) }
        store.signal.send()
    }
}
