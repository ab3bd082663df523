// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport
internal import FoundationEssentials

extension HTTPCache {
    /// A store in memory, which removes the least recently used responses when it is full.
    ///
    /// A body takes at most an eighth of the memory. While memory is short, the store keeps less: half of its limit at
    /// `.warning`, nothing at `.critical`.
    public final class MemoryStore: CacheStore {
        private struct State {
            var table = LRUTable()
            var bodies: [Entry.ID: Data] = [:]
            /// The bytes of bodies that are being written.
            var pending: Int64 = 0
            var level = MemoryPressure.Level.normal
        }

        /// The maximum size of all entries and bodies; 20 MiB unless set.
        public let limit: ByteCount
        private let pressure: MemoryPressure?
        private let state: Lock<State>
        /// The observation of the pressure, which ends with the store; unset until the first response is stored.
        private let observation = Once<MemoryPressure.Observation>()

        /// Creates an empty store.
        ///
        /// - Parameters:
        ///   - limit: The maximum size of all entries and bodies; 20 MiB unless given.
        ///   - pressure: The memory pressure that the store watches, from its first stored response until its release;
        ///     that of the machine and the control group unless given, nil to ignore memory pressure.
        public init(limit: ByteCount = .mebibytes(20), pressure: MemoryPressure? = .shared) {
            self.limit = limit
            self.pressure = pressure
            state = Lock(State())
        }

        /// The maximum size of one body in bytes: an eighth of the limit.
        public var maximumBodySize: Int64 { limit.bytes / 8 }

        /// False.
        public var isPersistent: Bool { false }

        /// Returns the entries of a selection.
        public func entries(_ selection: Selection) async -> [Entry] { state.withLock { $0.table.entries(selection) } }

        /// Returns a part of the body of an entry; nil when it was removed.
        public func body(of entry: Entry, _ range: Range<Int64>) async -> StoredBody? {
            let body = state.withLock { state -> Data? in
                state.table.use(entry.id)
                return state.bodies[entry.id]
            }
            guard let body, range.upperBound <= body.count else { return nil }
            return .data(range.count == body.count ? body : Data(body[Int(range.lowerBound)..<Int(range.upperBound)]))
        }

        /// Returns a writer, which collects the body in memory.
        public func writer(for entry: Entry, expecting expectedSize: Int64?) async -> any BodyWriter {
            MemoryWriter(self, expecting: expectedSize)
        }

        /// Replaces an entry.
        public func update(_ entry: Entry) async { state.withLock { $0.table.update(entry) } }

        /// Removes entries.
        public func remove(_ ids: [Entry.ID]) async -> Int {
            let removed = state.withLock { state in
                ids.filter { state.table.remove($0) }.map { state.bodies.removeValue(forKey: $0) }
            }
            return removed.count
        }

        /// Returns the number of entries and their size.
        public func usage() async -> Usage {
            state.withLock { Usage(count: $0.table.count, bytes: $0.table.bytes, limit: limit.bytes) }
        }

        /// Counts bytes of a body that is being written; returns false if all of them exceed the limit.
        fileprivate func reserve(_ count: Int64) -> Bool {
            state.withLock { state in
                guard state.pending + count <= limit.bytes else { return false }
                state.pending += count
                return true
            }
        }

        fileprivate func release(_ count: Int64) { state.withLock { $0.pending -= count } }

        /// Stores an entry with its body, and removes the least recently used ones above the limit.
        fileprivate func add(_ entry: Entry, _ body: Data, replacing replaced: [Entry.ID]) {
            let removed = state.withLock { state -> [Data?] in
                let removed = replaced.filter { state.table.remove($0) }
                state.table.add(entry)
                state.bodies[entry.id] = body
                return removed.map { state.bodies.removeValue(forKey: $0) } + evict(&state)
            }
            // Large bodies are released without the lock.
            withExtendedLifetime(removed) {}
            guard let pressure else { return }
            _ = observation.value { pressure.observe { [weak self] in self?.adapt(to: $0) } }
        }

        /// Removes the least recently used entries above the size that the memory pressure permits.
        private func evict(_ state: inout State) -> [Data?] {
            let size =
                switch state.level {
                case .normal: limit.bytes
                case .warning: limit.bytes / 2
                case .critical: Int64(0)
                }
            return state.table.evict(above: size).map { state.bodies.removeValue(forKey: $0) }
        }

        /// Releases memory when it is short.
        private func adapt(to level: MemoryPressure.Level) {
            if release(at: level) > 0 { HeapTrimmer.shared.request() }
        }

        /// Removes the entries above the size for a level, releases their bodies, and returns their number.
        private func release(at level: MemoryPressure.Level) -> Int {
            state.withLock { state in
                state.level = level
                return evict(&state)
            }.count
        }
    }

    /// Collects a body in memory.
    private final class MemoryWriter: BodyWriter {
        /// All bodies that are being written are larger than the store.
        private struct Full: Error {}

        private let store: MemoryStore
        private let body: Lock<Data>

        init(_ store: MemoryStore, expecting expectedSize: Int64?) {
            self.store = store
            // A server may announce any size.
            let capacity = min(max(expectedSize ?? 0, 0), store.maximumBodySize, 64 << 10)
            body = Lock(Data(capacity: Int(capacity)))
        }

        deinit { release() }

        func write(_ chunk: ByteChunk) async throws {
            guard store.reserve(Int64(chunk.count)) else { throw Full() }
            body.withLock { $0.append(contentsOf: chunk) }
        }

        func finish(_ entry: Entry, replacing replaced: [Entry.ID]) async {
            store.add(entry, release(), replacing: replaced)
        }

        func discard() async { _ = release() }

        @discardableResult
        private func release() -> Data {
            let taken = body.withLock { body in
                defer { body = Data() }
                return body
            }
            store.release(Int64(taken.count))
            return taken
        }
    }
}
