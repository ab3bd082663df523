// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewSupport

extension TransferStore {
    /// A report about the end of a download in a store.
    public enum Report: Sendable, Hashable {
        /// A download has finished; the record has the file's `path` and `bytes`.
        case finished(TransferStore.Download)
        /// A download has failed; the record's `failure` has the reason.
        ///
        /// The received bytes are kept; ``TransferStore/retry(_:on:adapting:)``, or the same download, resumes from
        /// them.
        case failed(TransferStore.Download)
        /// Everything is reported: no download waits to be reattached, runs, or is over without a report.
        case drained
    }

    /// The reports about the ends of the store's downloads, including those of earlier processes.
    ///
    /// The store delivers each report once, to one reader, and removes the record when that reader requests the next
    /// report. If the process ends before that, the next process delivers the report again. `drained` follows whenever
    /// there is nothing more to report. The sequence ends when the store is closed or the task is cancelled.
    public nonisolated var reports: Reports { Reports(self) }

    /// Waits for the next report; nil when the task is cancelled or the store is closed.
    fileprivate func report(after last: TransferStore.Download?, hasDrained: Bool) async -> Report? {
        // Keep the record if it has changed: a download that was retried meanwhile is reported again when it is over.
        if let last, journal[last.id] == last {
            let lineNumber = journal.drop(last.id)
            delivered.remove(last.id)
            // Another reader may have waited for this acknowledgement.
            signal.send()
            // If this write fails, a later process delivers the report again.
            try? await journal.waitUntilWritten(lineNumber)
        }
        while !Task.isCancelled, !journal.isClosed {
            let seen = signal.count
            if let next = journal.firstOver(except: delivered) {
                delivered.insert(next.id)
                // Sync the record before reporting it; report it even if the sync fails.
                try? await journal.waitUntilWritten()
                // The download may have been retried or removed during the sync.
                guard journal[next.id] == next else {
                    returnReport(next)
                    continue
                }
                return next.state == .finished ? .finished(next) : .failed(next)
            }
            if !hasDrained, transfers.isEmpty, areAllResumable { return .drained }
            // After `drained`, wait for a change first.
            guard await signal.wait(after: seen) else { return nil }
        }
        return nil
    }

    /// Whether all records are of downloads that ended in this process and can be resumed.
    private var areAllResumable: Bool {
        // Compare the counts first: this property is read with each change.
        resumable.count >= journal.count && journal.records.allSatisfy { resumable.contains($0.id) }
    }

    /// Makes a report available again after its reader ended without acknowledging it.
    fileprivate func returnReport(_ record: TransferStore.Download) {
        // After a retry, another reader may have the record.
        if journal[record.id].map({ $0.retries == record.retries }) ?? true { delivered.remove(record.id) }
        signal.send()
    }

    /// The sequence of a store's reports.
    public struct Reports: AsyncSequence, Sendable {
        private let store: TransferStore

        init(_ store: TransferStore) { self.store = store }

        /// Returns an iterator that begins with the oldest report that no other reader has.
        public func makeAsyncIterator() -> Iterator { Iterator(store) }

        /// An iterator that delivers one report after the other.
        public final class Iterator: AsyncIteratorProtocol {
            private let store: TransferStore
            private var last: TransferStore.Download?
            private var hasDrained = false

            init(_ store: TransferStore) { self.store = store }

            deinit {
                guard let last else { return }
                Task { [store] in await store.returnReport(last) }
            }

            /// Waits for the next report; nil when the task is cancelled or the store is closed.
            public func next() async -> Report? {
                let report = await store.report(after: last, hasDrained: hasDrained)
                switch report {
                case .finished(let record), .failed(let record): (last, hasDrained) = (record, false)
                case .drained: (last, hasDrained) = (nil, true)
                case nil: last = nil
                }
                return report
            }
        }
    }
}
