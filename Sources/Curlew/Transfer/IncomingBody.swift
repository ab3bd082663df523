// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import FoundationEssentials
internal import CurlewSupport

/// The body of a response in the chain of interceptors, from the connection or from an interceptor; it is read once.
final class IncomingBody: Sendable {
    enum Source: Sendable {
        /// The bytes that the attempt receives.
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
    /// Whether the body has the length that the head of its response states.
    let hasStatedLength: Bool
    private let isTaken = Lock(false)

    init(_ attempt: Attempt) {
        source = .wire(attempt)
        carrier = attempt
        isAsReceived = true
        hasStatedLength = true
    }

    init(_ data: Data, trailers: HeaderFields = [:]) {
        source = .bytes(data, trailers: trailers)
        carrier = nil
        isAsReceived = false
        hasStatedLength = false
    }

    /// Creates a body that is pulled from a source.
    ///
    /// - Parameters:
    ///   - carrier: The attempt behind the source, which ends with the body.
    ///   - isAsReceived: Whether the bytes are those that the server sent.
    ///   - hasStatedLength: Whether the body has the length that the head states.
    init(
        _ source: any ChunkSource, carrier: Attempt?, isAsReceived: Bool = false, hasStatedLength: Bool = false
    ) {
        self.isAsReceived = isAsReceived
        self.hasStatedLength = hasStatedLength
        self.source = .pull(source)
        self.carrier = carrier
    }

    /// Returns the same body, which passes through a source that does not change it.
    func passing(through source: any ChunkSource) -> IncomingBody {
        IncomingBody(source, carrier: carrier, isAsReceived: isAsReceived, hasStatedLength: hasStatedLength)
    }

    /// Claims the body for a reader; an attempt delivers the body then, instead of collecting it.
    ///
    /// - Throws: An error when the body is already taken.
    func claim(for request: Request) throws(NetworkError) {
        let isClaimed = isTaken.withLock { isTaken in
            if isTaken { return false }
            // Other bodies may belong to the same attempt, so the attempt decides.
            if case .wire(let attempt) = source, !attempt.engine.claimReader() { return false }
            isTaken = true
            return true
        }
        if !isClaimed { throw Task.isCancelled ? .cancelled(.receiving, request) : .takenBody(request) }
    }

    /// Claims the body for a caller that collects it, if an attempt can collect it.
    ///
    /// - Returns: The attempt; nil when a reader has to collect the body.
    /// - Throws: An error when the body is already taken.
    private func claimCollecting(for request: Request) throws(NetworkError) -> Attempt? {
        guard case .wire(let attempt) = source else { return nil }
        let isCollecting = isTaken.withLock { isTaken -> Bool? in
            if isTaken { return nil }
            isTaken = attempt.engine.claimCollecting()
            return isTaken
        }
        if let isCollecting { return isCollecting ? attempt : nil }
        throw Task.isCancelled ? .cancelled(.receiving, request) : .takenBody(request)
    }

    /// Makes the body unreadable, because another body replaces it.
    func markTaken() { isTaken.withLock { $0 = true } }

    /// The decoding of an encoded body that an attempt delivers; nil for others.
    var decoding: BodyDecoding? {
        guard case .wire(let attempt) = source, let raw = attempt.engine.head else { return nil }
        return attempt.decoding(of: raw)
    }

    /// The trailers of a body without an attempt, known at its end; nil without trailers.
    var trailers: HeaderFields? {
        switch source {
        case .wire: nil
        case .bytes(_, let trailers): trailers.isEmpty ? nil : trailers
        case .pull(let source): source.trailers
        }
    }

    /// The attempt of the body, if no reader has touched the body; nil otherwise.
    var unreadAttempt: Attempt? {
        guard case .wire(let attempt) = source, !isTaken.withLock({ $0 }), !attempt.engine.isStreamed else {
            return nil
        }
        return attempt
    }

    /// Collects the whole body.
    ///
    /// - Parameter origin: The attempt that received the response; its limit applies.
    func collect(upTo limit: ByteCount?, of request: Request, from origin: Attempt?) async throws(NetworkError) -> Data
    {
        if let attempt = try claimCollecting(for: request) {
            guard let outcome = await attempt.engine.waitForEnd() else { throw .headless(request) }
            return try await collected(by: attempt, outcome, limit, request).value
        }
        // A body that is in memory already needs only the caller's limit.
        if case .bytes = source { return try await whole(upTo: limit, of: request).0 }
        let most = origin.map { ByteCount(Int64($0.engine.plan.limits.bodySize)) } ?? .defaultBodyLimit
        return try await whole(upTo: min(limit ?? most, most), of: request).0
    }

    /// Returns the whole body and its trailers; a body that an attempt collects can still be collected by others.
    func copied(upTo limit: ByteCount?, of request: Request) async throws(NetworkError) -> (Data, HeaderFields) {
        guard let attempt = unreadAttempt, attempt.engine.claimCollecting() else {
            return try await whole(upTo: limit, of: request)
        }
        // The attempt belongs to another transfer, which continues if this task is cancelled.
        guard let outcome = await attempt.engine.waitForSharedEnd() else { throw .cancelled(.receiving, request) }
        let response = try await collected(by: attempt, outcome, limit, request)
        return (response.value, response.trailers)
    }

    private func collected(
        by attempt: Attempt, _ outcome: EngineTransfer.Outcome, _ limit: ByteCount?, _ request: Request
    ) async throws(NetworkError) -> Response<Data> {
        let response = try await attempt.collected(outcome)
        if let limit, response.value.count > limit.bytes { throw tooLarge(limit, request) }
        return response
    }

    /// Reads the whole body and its trailers chunk by chunk.
    func whole(upTo limit: ByteCount?, of request: Request) async throws(NetworkError) -> (Data, HeaderFields) {
        if case .bytes(let data, let trailers) = source {
            try claim(for: request)
            if let limit, data.count > limit.bytes { throw tooLarge(limit, request) }
            return (data, trailers)
        }
        let reader = BodyReader(self, of: request)
        var data = Data()
        while let chunk = try await reader.next() {
            if let limit, Int64(data.count + chunk.count) > limit.bytes { throw tooLarge(limit, request) }
            data.append(contentsOf: chunk)
        }
        return (data, reader.trailers ?? [:])
    }

    private func tooLarge(_ limit: ByteCount, _ request: Request) -> NetworkError {
        NetworkError(
            .bodyTooLarge, phase: .receiving, "The response body has more than \(limit).",
            hint: "Raise options.responseLimit or limits.responseBody, or read it in chunks.", request: request)
    }

    /// Discards the body: reads a short rest so that the connection can be reused, and cancels a long or slow one.
    ///
    /// The body cannot be read afterwards. If another task reads it, that task gets an error.
    func discard(_ attempt: Attempt, expecting length: Int64?) async {
        let wasTaken = isTaken.withLock { isTaken in
            defer { isTaken = true }
            return isTaken
        }
        let engine = attempt.engine
        if !wasTaken, let next = rest(of: engine) {
            if engine.outcome == nil, length ?? 0 <= Int64(Self.maximumRest) { await readRest(of: engine, next) }
            engine.discardBody(byReader: true)
        } else {
            engine.cancel()
        }
        _ = await engine.waitForEndUncancelled()
    }

    /// Returns a function that reads the next received bytes and returns their number, or nil at the end of the body.
    ///
    /// - Returns: Nil when the body has another reader.
    private func rest(of engine: EngineTransfer) -> (() async -> Int?)? {
        if engine.claimReader() {
            return {
                while true {
                    switch await engine.next(withProgress: false) {
                    case .bytes(let chunk): return chunk.count
                    case .end: return nil
                    case .informational, .head, .progress, .trailers: break
                    }
                }
            }
        }
        // The source has read the start of the body.
        guard isAsReceived, case .pull(let source) = source else { return nil }
        return { try? await source.next()?.count }
    }

    private func readRest(of engine: EngineTransfer, _ next: () async -> Int?) async {
        let timeout = Task {
            try await engine.loop.clock.taskClock.wait(for: Self.longestWait)
            engine.discardBody(byReader: true)
        }
        defer { timeout.cancel() }
        var rest = 0
        while rest <= Self.maximumRest, let count = await next() { rest += count }
    }
}

extension NetworkError {
    static func takenBody(_ request: Request) -> NetworkError {
        NetworkError(
            invalid: .usage, "The body has been read already.",
            hint: "A body is read once. An interceptor that reads it returns a response with a new body (with(body:)).",
            request: request, phase: .receiving)
    }
}
