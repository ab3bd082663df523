// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import FoundationEssentials
internal import CurlewSupport

/// The body of a response in the chain of interceptors, from the connection or from an interceptor; it is read once.
final class IncomingBody: Sendable {
    enum Source: Sendable {
        case wire(Attempt)
        case bytes(Data, trailers: HeaderFields)
        case pull(any ChunkSource)
    }

    /// The maximum size and time for reading the rest of a discarded body.
    private static let maximumRest = 64 << 10
    private static let longestWait = Duration.seconds(1)

    let source: Source
    /// The attempt that delivers the bytes, directly or through transformations; nil when the body needs no attempt.
    let carrier: Attempt?
    /// Whether the bytes are those that the server sent, without a transformation by an interceptor.
    let isAsReceived: Bool
    private let isTaken = Lock(false)

    init(_ attempt: Attempt) {
        source = .wire(attempt)
        carrier = attempt
        isAsReceived = true
    }

    init(_ data: Data, trailers: HeaderFields = [:]) {
        source = .bytes(data, trailers: trailers)
        carrier = nil
        isAsReceived = false
    }

    /// Creates a body that is pulled from a source.
    ///
    /// - Parameters:
    ///   - carrier: The attempt behind the source, which ends with the body.
    ///   - isAsReceived: Whether the bytes are those that the server sent.
    init(_ source: any ChunkSource, carrier: Attempt?, isAsReceived: Bool = false) {
        self.isAsReceived = isAsReceived
        self.source = .pull(source)
        self.carrier = carrier
    }

    /// Takes the body for a reader.
    ///
    /// - Throws: An error when the body is already taken.
    func take(for request: Request, withProgress: Bool = false) throws(NetworkError) -> BodyReader {
        try claim(for: request)
        return BodyReader(self, request, withProgress: withProgress)
    }

    private func claim(for request: Request) throws(NetworkError) {
        let wasTaken = isTaken.withLock { isTaken in
            defer { isTaken = true }
            return isTaken
        }
        if wasTaken { throw Task.isCancelled ? .cancelled(.receiving, request) : .takenBody(request) }
    }

    /// The attempt of the body, if no reader has touched the body; nil otherwise.
    var untouched: Attempt? {
        guard case .wire(let attempt) = source, !attempt.isStreamed, !isTaken.withLock({ $0 }) else { return nil }
        return attempt
    }

    /// Collects the whole body.
    ///
    /// - Parameter origin: The attempt that received the response; its limit applies.
    func collect(upTo limit: ByteCount?, of request: Request, from origin: Attempt?) async throws(NetworkError) -> Data
    {
        if let attempt = untouched {
            try claim(for: request)
            let data = try await attempt.response(attempt.engine.ending()).value
            if let limit, data.count > limit.bytes { throw tooLarge(limit, request) }
            return data
        }
        // A body that is in memory already needs only the caller's limit.
        if case .bytes = source { return try await whole(upTo: limit, of: request).0 }
        let most = origin.map { ByteCount(Int64($0.engine.plan.collectLimit)) } ?? .defaultBodyLimit
        return try await whole(upTo: min(limit ?? most, most), of: request).0
    }

    /// Reads the whole body and its trailers chunk by chunk.
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
            hint: "Raise options.responseLimit or limits.responseBody, or read it in chunks.", request: request)
    }

    /// Discards the body: reads a short rest so that the connection can be reused, and cancels a long or slow one.
    ///
    /// The body cannot be read afterwards.
    func discard(_ attempt: Attempt, expecting length: Int64?) async {
        let wasTaken = isTaken.withLock { isTaken in
            defer { isTaken = true }
            return isTaken
        }
        let engine = attempt.engine
        if engine.outcome == nil, length ?? 0 <= Int64(Self.maximumRest), !wasTaken {
            await readRest(of: attempt)
        }
        engine.discardBody()
        _ = await engine.ended()
    }

    /// Reads the bytes of the rest without decoding them.
    private func readRest(of attempt: Attempt) async {
        // Creating the reader stops the collecting of the body.
        _ = attempt.reader
        let engine = attempt.engine
        let patience = Task {
            try await ContinuousClock().wait(for: Self.longestWait)
            engine.discardBody()
        }
        defer { patience.cancel() }
        var rest = 0
        while rest <= Self.maximumRest {
            switch await engine.next(withProgress: false) {
            case .bytes(let chunk): rest += chunk.count
            case .end: return
            case .informational, .head, .progress, .trailers: break
            }
        }
    }
}

/// The reader of one body; releasing it before the end of the body cancels the attempt.
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

    /// Whether the head was delivered, or is not part of the body's elements.
    var isHeadPassed: Bool {
        guard case .wire(let attempt) = body.source else { return true }
        return attempt.reader.head != nil
    }

    deinit {
        guard let carrier = body.carrier, !state.withLock({ $0.isEnded }) else { return }
        carrier.engine.cancel()
    }

    /// Returns the next element; nil at the end.
    ///
    /// After an error, the method throws the same error again. The elements of an untouched body of an attempt begin
    /// with its informational heads and its head.
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
            end(nil)
            return nil
        } catch {
            end(error)
            throw error
        }
    }

    private func end(_ error: NetworkError?) {
        state.withLock { state in
            state.isEnded = true
            state.error = error
        }
        // The body has ended, so discard any bytes of the attempt that it did not need.
        if let carrier = body.carrier { error == nil ? carrier.engine.discardBody() : carrier.engine.cancel() }
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
                .interceptorFailed, phase: .receiving, "The body of an interceptor threw \(type(of: error)).",
                cause: error, request: request)
        }
    }
}
