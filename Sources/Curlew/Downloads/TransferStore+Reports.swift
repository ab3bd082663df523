// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension TransferStore {
    /// What has become of a store's downloads.
    public enum Report: Sendable, Hashable {
        /// A file has its name; the record's `path` and `bytes` say which.
        case finished(StoredDownload)
        /// There is none; the record's `failure` says why.
        ///
        /// What was received is kept; ``TransferStore/retry(_:on:adapting:)``, or the same download, goes on with it.
        case failed(StoredDownload)
        /// Everything has been told: nothing waits to be reattached, runs, or is over and not reported.
        case drained
    }

    /// What has become of the store's downloads, those of earlier processes included.
    ///
    /// Each is told once, to one reader, and forgotten when that one asks for the next: a process that ends before has it
    /// told again to the next one. `drained` comes whenever there is nothing more. The sequence ends when the store is
    /// closed, or the task cancelled.
    public nonisolated var reports: Reports { Reports(self) }

    /// The next thing to be told; nil for a cancelled task.
    fileprivate func report(after last: StoredDownload?, hasDrained: Bool) async -> Report? {
        // What was begun again meanwhile is news again, when it is over.
        if let last, journal[last.id] == last {
            let ticket = journal.drop(last.id)
            delivered.remove(last.id)
            // Another reader may have waited for it.
            bell.ring()
            // Where it cannot be written it is told again some day.
            try? await journal.settle(ticket)
        }
        while !Task.isCancelled, !journal.isClosed {
            let rings = bell.rings
            if let next = journal.firstOver(except: delivered) {
                delivered.insert(next.id)
                // What is told is on the disk; where that fails, it is told all the same.
                try? await journal.settle()
                // It may have been begun again, or forgotten.
                guard journal[next.id] == next else {
                    handBack(next)
                    continue
                }
                return next.state == .finished ? .finished(next) : .failed(next)
            }
            if !hasDrained, live.isEmpty, isResting { return .drained }
            // After it was drained, something new has to happen first.
            guard await bell.wait(after: rings) else { return nil }
        }
        return nil
    }

    /// Whether all that is known was cancelled here, and waits to be gone on with.
    private var isResting: Bool {
        // Cheap while something is not: this is asked with each change.
        resting.count >= journal.count && journal.records.allSatisfy { resting.contains($0.id) }
    }

    /// Hands back what was told to a reader who went away.
    fileprivate func handBack(_ record: StoredDownload) {
        // After a retry it is somebody else's.
        if journal[record.id].map({ $0.retries == record.retries }) ?? true { delivered.remove(record.id) }
        bell.ring()
    }

    /// The sequence of a store's reports.
    public struct Reports: AsyncSequence, Sendable {
        private let store: TransferStore

        init(_ store: TransferStore) { self.store = store }

        /// Begins with the oldest that nobody else was told.
        public func makeAsyncIterator() -> Iterator { Iterator(store) }

        /// Tells one after the other.
        public final class Iterator: AsyncIteratorProtocol {
            private let store: TransferStore
            private var last: StoredDownload?
            private var hasDrained = false

            init(_ store: TransferStore) { self.store = store }

            deinit {
                guard let last else { return }
                Task { [store] in await store.handBack(last) }
            }

            /// Waits for the next; nil when the task is cancelled.
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
