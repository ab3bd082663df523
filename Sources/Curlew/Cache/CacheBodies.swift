// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport
internal import FoundationEssentials

/// Records the body of a response in a store while the body is read; the reader uses it from one task at a time.
///
/// A failure of the store or a body above the limit ends the recording, but not the reading.
final class BodyRecorder: Sendable {
    private struct State {
        var entry: HTTPCache.Entry
        /// The number of bytes that were received.
        var received: Int64 = 0
        var isActive = true
    }

    private let writer: any HTTPCache.BodyWriter
    private let cache: HTTPCache
    /// Returns the stored entries that an entry replaces.
    private let replaced: @Sendable (HTTPCache.Entry) async -> [HTTPCache.Entry]
    /// The number of removals before the response was requested.
    private let removals: UInt64
    /// The size of the whole body if its start may be stored; nil if it may not.
    private let completeSize: Int64?
    private let map: HTTPCache.Mapping?
    private let state: Lock<State>

    init(
        _ entry: HTTPCache.Entry, to writer: any HTTPCache.BodyWriter, in cache: HTTPCache, after removals: UInt64,
        completeSize: Int64?, by map: HTTPCache.Mapping?,
        replacing replaced: @escaping @Sendable (HTTPCache.Entry) async -> [HTTPCache.Entry]
    ) {
        self.removals = removals
        self.writer = writer
        self.cache = cache
        self.replaced = replaced
        self.completeSize = completeSize
        self.map = map
        state = Lock(State(entry: entry))
    }

    private var isActive: Bool { state.withLock { $0.isActive } }

    /// Ends the recording; returns false if it has ended already.
    private func end() -> Bool {
        state.withLock { state in
            defer { state.isActive = false }
            return state.isActive
        }
    }

    /// Stores the next bytes of the body.
    func record(_ chunk: ByteChunk) async {
        guard isActive else { return }
        state.withLock { $0.received += Int64(chunk.count) }
        do { if let stored = try await map?(chunk) ?? (map == nil ? chunk : nil) { try await write(stored) } } catch {
            await fail(error)
        }
    }

    private func write(_ chunk: ByteChunk) async throws {
        let size = state.withLock { state in
            state.entry.size += Int64(chunk.count)
            return state.entry.size
        }
        guard size <= cache.maximumBodySize else { return await discard() }
        try await writer.write(chunk)
    }

    /// Makes the entry visible after the end of the body.
    func finish() async {
        guard isActive else { return }
        do {
            if let last = try await map?(nil) { try await write(last) }
            guard end() else { return }
            try await commit(state.withLock { $0.entry })
        } catch {
            await fail(error)
        }
    }

    private func commit(_ entry: HTTPCache.Entry) async throws {
        let others = await replaced(entry)
        // A part must not replace a larger part or a whole body, and an old response no newer one.
        let isObsolete = others.contains { other in
            !entry.isComplete && (other.isComplete || other.size >= entry.size)
                || entry.isComplete && other.isComplete && other.receivedAt > entry.receivedAt
        }
        // The response may be one of those that were removed since it was requested.
        guard !isObsolete, !cache.hasRemoved(entry.url, after: removals) else { return await writer.discard() }
        do { try await writer.finish(entry, replacing: others.map(\.id)) } catch {
            await writer.discard()
            throw error
        }
        // A removal may have listed the entries before this one was visible.
        if cache.hasRemoved(entry.url, after: removals) {
            await cache.remove([entry])
            return
        }
        cache.record { statistics in
            statistics.stores += 1
            statistics.storedBytes += entry.size
        }
    }

    /// Ends the recording before the end of the body: keeps the start if a later request can complete it.
    func leave() async {
        var (entry, received) = state.withLock { ($0.entry, $0.received) }
        guard let completeSize, received > 0, received <= completeSize else { return await discard() }
        guard end() else { return }
        entry.completeSize = received < completeSize ? completeSize : nil
        do { try await commit(entry) } catch { cache.count(\.failures) }
    }

    private func fail(_ error: any Error) async {
        cache.count(\.failures)
        await discard()
    }

    private func discard() async { if end() { await writer.discard() } }
}

/// The body of a response that is recorded while it is read.
final class RecordedSource: ChunkSource {
    private let reader: BodyReader
    private let recorder: BodyRecorder
    private let isEnded = Lock(false)

    init(_ response: IncomingResponse, _ recorder: BodyRecorder) {
        reader = BodyReader(response.body, of: response.request)
        self.recorder = recorder
    }

    deinit {
        if isEnded.withLock({ $0 }) { return }
        Task { [recorder] in await recorder.leave() }
    }

    var trailers: HeaderFields? { reader.trailers }

    func next() async throws -> ByteChunk? {
        let chunk: ByteChunk?
        do throws(NetworkError) { chunk = try await reader.next() } catch {
            isEnded.withLock { $0 = true }
            // A retry can then complete what is stored.
            await recorder.leave()
            throw error
        }
        if let chunk {
            await recorder.record(chunk)
        } else if !isEnded.withLock({ $0 }) {
            isEnded.withLock { $0 = true }
            await recorder.finish()
        }
        return chunk
    }
}

/// A stored body; an error of the store removes the entry and becomes `.cacheFailed`.
final class StoredSource: ChunkSource {
    private let source: any ChunkSource
    private let entry: HTTPCache.Entry
    private let cache: HTTPCache
    private let request: Request
    /// The number of missing bytes.
    private let missing: Lock<Int>

    init<Chunks: AsyncSequence & Sendable>(
        _ chunks: Chunks, of entry: HTTPCache.Entry, _ range: Range<Int64>, _ cache: HTTPCache, _ request: Request
    ) where Chunks.Element == ByteChunk {
        source = SequenceSource(chunks)
        self.entry = entry
        self.cache = cache
        self.request = request
        missing = Lock(range.count)
    }

    var trailers: HeaderFields? { nil }

    func next() async throws -> ByteChunk? {
        let chunk: ByteChunk?
        do { chunk = try await source.next() } catch is CancellationError { throw CancellationError() } catch {
            throw await failure(error)
        }
        let missing = missing.withLock { missing in
            missing -= chunk?.count ?? 0
            return missing
        }
        if missing < 0 || chunk == nil && missing > 0 { throw await failure(nil) }
        return chunk
    }

    private func failure(_ error: (any Error)?) async -> NetworkError {
        cache.count(\.failures)
        await cache.remove([entry])
        let what = error.map { "The store of the cache threw \(type(of: $0))" } ?? "The stored body has another size"
        return NetworkError(
            .cacheFailed, phase: .receiving, "\(what) while a stored response was read.",
            hint: "The response was removed from the cache; send the request again.", cause: error, request: request)
    }
}

/// A body whose start is stored, and whose rest the server sends.
final class JoinedSource: ChunkSource {
    private let start: BodyReader
    private let rest: BodyReader
    private let isInRest = Lock(false)

    init(_ start: IncomingBody, _ rest: IncomingBody, _ request: Request) {
        self.start = BodyReader(start, of: request)
        self.rest = BodyReader(rest, of: request)
    }

    var trailers: HeaderFields? { rest.trailers }

    func next() async throws -> ByteChunk? {
        if !isInRest.withLock({ $0 }) {
            if let chunk = try await start.next() { return chunk }
            isInRest.withLock { $0 = true }
        }
        return try await rest.next()
    }
}
