// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import FoundationEssentials

/// The body of a response on its way through interceptors, wherever it comes from; read once.
final class IncomingBody: Sendable {
    enum Source: Sendable {
        case wire(Attempt)
        case bytes(Data, trailers: HeaderFields)
        case pull(any ChunkSource)
    }

    /// The longest rest of a body that is read although nobody wants it, and how long it may take.
    private static let longestRest = 64 << 10
    private static let longestWait = Duration.seconds(1)

    let source: Source
    private let isTaken = Lock(false)

    init(_ source: Source) { self.source = source }

    /// Gives the body to whoever asks first.
    func take(for request: Request, withProgress: Bool = false) throws(NetworkError) -> BodyReader {
        try claim(for: request)
        return BodyReader(self, request, withProgress: withProgress)
    }

    private func claim(for request: Request) throws(NetworkError) {
        let wasTaken = isTaken.withLock { isTaken in
            defer { isTaken = true }
            return isTaken
        }
        guard wasTaken else { return }
        throw NetworkError(
            .invalidRequest, phase: .receiving, "The body has been read already.",
            hint: "A body is read once. An interceptor that reads it hands on a response with a new one (with(body:)).",
            request: request)
    }

    /// The attempt whose body this is, still whole and untouched.
    var untouched: Attempt? {
        guard case .wire(let attempt) = source, !attempt.isStreamed, !isTaken.withLock({ $0 }) else { return nil }
        return attempt
    }

    /// The whole body.
    func collect(upTo limit: ByteCount?, of request: Request) async throws(NetworkError) -> Data {
        if let attempt = untouched {
            try claim(for: request)
            let data = try await attempt.response(attempt.engine.ending()).value
            if let limit, data.count > limit.bytes { throw tooLarge(limit, request) }
            return data
        }
        return try await whole(upTo: limit, of: request).0
    }

    /// The whole body and its trailers, read piece by piece.
    func whole(upTo limit: ByteCount?, of request: Request) async throws(NetworkError) -> (Data, HeaderFields) {
        if case .bytes(let data, let trailers) = source {
            try claim(for: request)
            if let limit, data.count > limit.bytes { throw tooLarge(limit, request) }
            return (data, trailers)
        }
        let reader = try take(for: request)
        var (data, trailers) = (Data(), HeaderFields())
        while let element = try await reader.next() {
            switch element {
            case .bytes(let chunk):
                if let limit, Int64(data.count + chunk.count) > limit.bytes { throw tooLarge(limit, request) }
                data.append(contentsOf: chunk)
            case .trailers(let fields): trailers = fields
            default: break
            }
        }
        return (data, trailers)
    }

    private func tooLarge(_ limit: ByteCount, _ request: Request) -> NetworkError {
        NetworkError(
            .bodyTooLarge, phase: .receiving, "The response body has more than \(limit).",
            hint: "Raise options.responseLimit or limits.responseBody, or read it piece by piece.", request: request)
    }

    /// Reads a short rest, so that the connection can serve another request; breaks off what is long, slow or fails.
    func discard(expecting length: Int64?) async {
        guard case .wire(let attempt) = source else { return }
        let engine = attempt.engine
        if engine.outcome == nil, length ?? 0 <= Int64(Self.longestRest), !isTaken.withLock({ $0 }) {
            await readRest(of: attempt)
        }
        engine.letGo()
        _ = await engine.ended()
    }

    /// Reads the bytes as they come over the wire: nobody wants them decoded.
    private func readRest(of attempt: Attempt) async {
        // From now on they go to a reader.
        _ = attempt.reader
        let engine = attempt.engine
        let patience = Task {
            try await Task.sleep(for: Self.longestWait)
            engine.letGo()
        }
        defer { patience.cancel() }
        var rest = 0
        while rest <= Self.longestRest {
            switch await engine.next(withProgress: false) {
            case .bytes(let chunk): rest += chunk.count
            case .end: return
            case .informational, .head, .progress, .trailers: break
            }
        }
    }
}

/// Reads one body to its end; dropping it before that ends the attempt behind it.
final class BodyReader: Sendable {
    private struct State {
        var isAsked = false
        var isEnded = false
        var error: NetworkError?
        var count: Int64 = 0
        var isLastProgressDue: Bool
        var areTrailersTaken = false
    }

    private let body: IncomingBody
    private let request: Request
    private let withProgress: Bool
    private let state: Lock<State>

    init(_ body: IncomingBody, _ request: Request, withProgress: Bool) {
        self.body = body
        self.request = request
        self.withProgress = withProgress
        state = Lock(State(isLastProgressDue: withProgress))
    }

    /// Whether the head was handed on, or does not come this way.
    var isHeadPassed: Bool {
        guard case .wire(let attempt) = body.source else { return true }
        return attempt.reader.head != nil
    }

    deinit {
        if case .wire(let attempt) = body.source, !state.withLock({ $0.isEnded }) { attempt.engine.cancel() }
    }

    /// The next element, nil at the end; the same error again after an error.
    ///
    /// A body from the wire that nobody has read yet begins with its informational heads and its head.
    func next() async throws(NetworkError) -> TransferElement? {
        let isBusy = state.withLock { state in
            defer { state.isAsked = true }
            return state.isAsked
        }
        if isBusy { throw NetworkError.secondReader(of: request) }
        defer { state.withLock { $0.isAsked = false } }
        let (isEnded, error) = state.withLock { ($0.isEnded, $0.error) }
        if let error { throw error }
        if isEnded { return nil }
        do throws(NetworkError) {
            if let element = try await element() { return element }
            state.withLock { $0.isEnded = true }
            return nil
        } catch {
            state.withLock { state in
                state.isEnded = true
                state.error = error
            }
            throw error
        }
    }

    private func element() async throws(NetworkError) -> TransferElement? {
        let chunk: ByteChunk?
        switch body.source {
        case .wire(let attempt): return try await attempt.reader.next(withProgress: withProgress)
        case .bytes(let data, _):
            chunk = state.withLock { $0.count } == 0 && !data.isEmpty ? ByteChunk(data) : nil
        case .pull(let source): chunk = try await piece(from: source)
        }
        return state.withLock { state in
            if let chunk {
                state.count += Int64(chunk.count)
                return .bytes(chunk)
            }
            if let trailers = takeTrailers(&state) { return .trailers(trailers) }
            guard state.isLastProgressDue else { return nil }
            state.isLastProgressDue = false
            return .progress(
                TransferProgress(received: state.count, expectedToReceive: state.count, isFinished: true))
        }
    }

    private func takeTrailers(_ state: inout State) -> HeaderFields? {
        if state.areTrailersTaken { return nil }
        state.areTrailersTaken = true
        switch body.source {
        case .wire: return nil
        case .bytes(_, let trailers): return trailers.isEmpty ? nil : trailers
        case .pull(let source): return source.trailers
        }
    }

    private func piece(from source: any ChunkSource) async throws(NetworkError) -> ByteChunk? {
        if Task.isCancelled { throw NetworkError.cancelled(.receiving, request) }
        do {
            return try await source.next()
        } catch let error as NetworkError {
            throw error
        } catch is CancellationError {
            throw NetworkError.cancelled(.receiving, request)
        } catch {
            throw NetworkError(
                .interceptorFailed, phase: .receiving, "The body an interceptor gave cannot be read: \(error).",
                cause: error, request: request)
        }
    }
}

/// Gives a body piece by piece to one reader, which asks for the next piece when it has the one before.
protocol ChunkSource: AnyObject, Sendable {
    /// The next piece; nil at the end, and then always.
    func next() async throws -> ByteChunk?
    /// What came after the body, known at its end.
    var trailers: HeaderFields? { get }
}

/// Pulls the elements of a sequence one by one.
// Safe because a body has one reader, which asks for the next piece when it has the one before.
final class SequenceSource<Chunks: AsyncSequence & Sendable>: ChunkSource, @unchecked Sendable
where Chunks.Element == ByteChunk {
    private let chunks: Chunks
    private var iterator: Chunks.AsyncIterator?
    private var isEnded = false

    init(_ chunks: Chunks) { self.chunks = chunks }

    func next() async throws -> ByteChunk? {
        guard !isEnded else { return nil }
        var iterator = self.iterator ?? chunks.makeAsyncIterator()
        let chunk = try await iterator.next()
        self.iterator = iterator
        isEnded = chunk == nil
        return chunk
    }

    var trailers: HeaderFields? { nil }
}

/// Pulls the pieces of a body through a closure; its trailers come through as they are.
final class MappedSource: ChunkSource {
    private struct State {
        var reader: BodyReader?
        var isEnded = false
        var trailers: HeaderFields?
    }

    private let body: IncomingBody
    private let request: Request
    private let transform: @Sendable (ByteChunk?) async throws -> ByteChunk?
    private let state = Lock(State())

    init(
        _ body: IncomingBody, _ request: Request,
        _ transform: @escaping @Sendable (ByteChunk?) async throws -> ByteChunk?
    ) {
        self.body = body
        self.request = request
        self.transform = transform
    }

    func next() async throws -> ByteChunk? {
        if state.withLock({ $0.isEnded }) { return nil }
        let reader = try begun()
        while let element = try await reader.next() {
            switch element {
            case .bytes(let chunk): if let mapped = try await transform(chunk) { return mapped }
            case .trailers(let fields): state.withLock { $0.trailers = fields }
            default: break
            }
        }
        state.withLock { $0.isEnded = true }
        return try await transform(nil)
    }

    var trailers: HeaderFields? { state.withLock { $0.trailers } }

    private func begun() throws(NetworkError) -> BodyReader {
        if let reader = state.withLock({ $0.reader }) { return reader }
        let reader = try body.take(for: request)
        state.withLock { $0.reader = reader }
        return reader
    }
}
