// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

/// A source that delivers a body chunk by chunk to one reader, which requests one chunk at a time.
protocol ChunkSource: AnyObject, Sendable {
    /// Returns the next chunk; nil at the end, and at every later call.
    func next() async throws -> ByteChunk?
    /// The trailers, known at the end of the body.
    var trailers: HeaderFields? { get }
}

/// A placeholder for a body that a reader has taken.
final class TakenSource: ChunkSource {
    var trailers: HeaderFields? { nil }

    func next() async throws -> ByteChunk? { nil }
}

/// A source that delivers the elements of a sequence one by one.
// Safe because a body has one reader, which requests one chunk at a time.
final class SequenceSource<Pieces: AsyncSequence & Sendable>: ChunkSource, @unchecked Sendable
where Pieces.Element == ByteChunk {
    private let chunks: Pieces
    private var iterator: Pieces.AsyncIterator?
    private var isEnded = false

    init(_ chunks: Pieces) { self.chunks = chunks }

    func next() async throws -> ByteChunk? {
        guard !isEnded else { return nil }
        var iterator = self.iterator ?? chunks.makeAsyncIterator()
        let chunk = try await iterator.next()
        self.iterator = iterator
        // In a cancelled task some sequences, such as AsyncThrowingStream, end without an error.
        if chunk == nil { try Task.checkCancellation() }
        isEnded = chunk == nil
        return chunk
    }

    var trailers: HeaderFields? { nil }
}

/// A source that passes the chunks of a body through a closure, and its trailers unchanged.
final class MappedSource: ChunkSource {
    private let reader: BodyReader
    private let transform: @Sendable (ByteChunk?) async throws -> ByteChunk?
    private let isEnded = Lock(false)

    init(
        _ body: IncomingBody, _ request: Request,
        _ transform: @escaping @Sendable (ByteChunk?) async throws -> ByteChunk?
    ) {
        reader = BodyReader(body, of: request)
        self.transform = transform
    }

    func next() async throws -> ByteChunk? {
        if isEnded.withLock({ $0 }) { return nil }
        while let chunk = try await reader.next() { if let mapped = try await transform(chunk) { return mapped } }
        isEnded.withLock { $0 = true }
        return try await transform(nil)
    }

    var trailers: HeaderFields? { reader.trailers }
}

extension IncomingResponse {
    /// Returns the same response, with its trailers, and calls closures with its body as the body is read.
    ///
    /// - Parameters:
    ///   - sample: The value to compute from the body.
    ///   - take: Adds a chunk to the value.
    ///   - end: Receives the value once: at the end, when the body breaks off, or when its reader stops early.
    func tapped<Sample: Sendable>(
        _ sample: Sample, _ take: @escaping @Sendable (inout Sample, ByteChunk) -> Void,
        end: @escaping @Sendable (Sample, NetworkError?) -> Void
    ) -> IncomingResponse {
        let source = TappedSource(self, sample, take, end)
        return IncomingResponse(head, body.passing(through: source), request, attempt)
    }
}

/// A body that passes unchanged, while a closure observes its chunks.
private final class TappedSource<Sample: Sendable>: ChunkSource {
    private struct State {
        var sample: Sample
        var isReported = false
    }

    private let reader: BodyReader
    private let take: @Sendable (inout Sample, ByteChunk) -> Void
    private let end: @Sendable (Sample, NetworkError?) -> Void
    private let state: Lock<State>

    init(
        _ response: IncomingResponse, _ sample: Sample, _ take: @escaping @Sendable (inout Sample, ByteChunk) -> Void,
        _ end: @escaping @Sendable (Sample, NetworkError?) -> Void
    ) {
        reader = BodyReader(response.body, of: response.request)
        self.take = take
        self.end = end
        state = Lock(State(sample: sample))
    }

    deinit { report(nil) }

    var trailers: HeaderFields? { reader.trailers }

    func next() async throws -> ByteChunk? {
        do throws(NetworkError) {
            guard let chunk = try await reader.next() else {
                report(nil)
                return nil
            }
            state.withLock { take(&$0.sample, chunk) }
            return chunk
        } catch {
            report(error)
            throw error
        }
    }

    private func report(_ error: NetworkError?) {
        let sample = state.withLock { state -> Sample? in
            defer { state.isReported = true }
            return state.isReported ? nil : state.sample
        }
        if let sample { end(sample, error) }
    }
}
