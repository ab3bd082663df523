// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import FoundationEssentials
internal import CurlewSupport

/// The body of a response on its way through interceptors, wherever it comes from; read once.
final class IncomingBody: Sendable {
    enum Source: Sendable {
        case wire(Attempt)
        case bytes(Data, trailers: HeaderFields)
        case pull(any ChunkSource)
    }

    /// What is collected at most of a body that came from nowhere.
    private static let usualLimit = ByteCount.mebibytes(64)
    /// The longest rest of a body that is read although nobody wants it, and how long it may take.
    private static let longestRest = 64 << 10
    private static let longestWait = Duration.seconds(1)

    let source: Source
    /// What may bring its bytes, also when they pass through something; nil when nothing is on the wire for it.
    let carrier: Attempt?
    /// Whether its bytes are those that came over the wire.
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

    /// - Parameters:
    ///   - carrier: Ended with the body, since nobody reads what it has beside.
    ///   - isAsReceived: Whether its bytes are those that came over the wire.
    init(_ source: any ChunkSource, carrier: Attempt?, isAsReceived: Bool = false) {
        self.isAsReceived = isAsReceived
        self.source = .pull(source)
        self.carrier = carrier
    }

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
        if wasTaken { throw Task.isCancelled ? .cancelled(.receiving, request) : .takenBody(request) }
    }

    /// The attempt whose body this is, still whole and untouched.
    var untouched: Attempt? {
        guard case .wire(let attempt) = source, !attempt.isStreamed, !isTaken.withLock({ $0 }) else { return nil }
        return attempt
    }

    /// The whole body.
    ///
    /// - Parameter origin: What it came from.
    func collect(upTo limit: ByteCount?, of request: Request, from origin: Attempt?) async throws(NetworkError) -> Data
    {
        if let attempt = untouched {
            try claim(for: request)
            let data = try await attempt.response(attempt.engine.ending()).value
            if let limit, data.count > limit.bytes { throw tooLarge(limit, request) }
            return data
        }
        // What is in memory already needs no limit but the caller's.
        if case .bytes = source { return try await whole(upTo: limit, of: request).0 }
        let most = origin.map { ByteCount(Int64($0.engine.plan.collectLimit)) } ?? Self.usualLimit
        return try await whole(upTo: min(limit ?? most, most), of: request).0
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
    ///
    /// Nobody can read it afterwards.
    func discard(_ attempt: Attempt, expecting length: Int64?) async {
        let wasTaken = isTaken.withLock { isTaken in
            defer { isTaken = true }
            return isTaken
        }
        let engine = attempt.engine
        if engine.outcome == nil, length ?? 0 <= Int64(Self.longestRest), !wasTaken {
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
            try await ContinuousClock().wait(for: Self.longestWait)
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
        guard let carrier = body.carrier, !state.withLock({ $0.isEnded }) else { return }
        carrier.engine.cancel()
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
        // What was not needed for the body is not wanted.
        if let carrier = body.carrier { error == nil ? carrier.engine.letGo() : carrier.engine.cancel() }
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
                .interceptorFailed, phase: .receiving, "The body an interceptor gave threw a \(type(of: error)).",
                cause: error, request: request)
        }
    }
}
