// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

/// The one reader of a transfer's elements, or of the body of a response in the chain.
///
/// The first call of `nextElement()` claims the body. Releasing the reader before the end of the body cancels the
/// transfer or the attempt.
final class BodyReader: Sendable {
    private enum Source {
        case transfer(TransferLifetime)
        case response(IncomingBody, Request)

        var request: Request {
            switch self {
            case .transfer(let lifetime): lifetime.run.request
            case .response(_, let request): request
            }
        }
    }

    private enum Stage {
        case unopened
        /// Waits for the response of the transfer.
        case waiting
        case reading(IncomingBody)
        case ended(NetworkError?)
    }

    private struct State {
        var stage = Stage.unopened
        var isBusy = false
        /// The decoding of the body.
        var decoding: BodyDecoding?
        var meter = RateMeter()
        /// For a body without an attempt: the bytes delivered, and what is still due at its end.
        var count: Int64 = 0
        var isLastProgressDue: Bool
        /// The `Content-Length` of a body without an attempt; nil if it is unknown.
        var expected: Int64?
        /// The time and the byte count of the latest progress of a body without an attempt.
        var lastProgress: (time: UInt64, count: Int64) = (0, 0)
        var areTrailersDue = true
        /// The trailers that were delivered.
        var trailers: HeaderFields?
    }

    private let source: Source
    private let withProgress: Bool
    private let state: Lock<State>

    /// Creates the reader of a transfer, which starts at the first step.
    init(_ lifetime: TransferLifetime, withProgress: Bool) {
        source = .transfer(lifetime)
        self.withProgress = withProgress
        state = Lock(State(isLastProgressDue: withProgress))
    }

    /// Creates a reader that claims a response's body at the first step.
    init(_ body: IncomingBody, of request: Request) {
        source = .response(body, request)
        withProgress = false
        state = Lock(State(isLastProgressDue: false))
    }

    deinit {
        let stage = state.withLock { $0.stage }
        switch stage {
        case .unopened, .ended: return
        case .waiting, .reading: if case .transfer(let lifetime) = source { lifetime.run.stopReading() }
        }
        // The body of a transfer may come from an attempt of another transfer.
        if case .reading(let body) = stage { body.carrier?.engine.cancel() }
    }

    /// Returns the next element; nil at the end, and the same error again after an error.
    ///
    /// The elements of a transfer begin with its informational heads and its head.
    func nextElement() async throws(NetworkError) -> TransferElement? {
        let isBusy = state.withLock { state in
            defer { state.isBusy = true }
            return state.isBusy
        }
        if isBusy { throw .secondReader(of: source.request) }
        defer { state.withLock { $0.isBusy = false } }
        do throws(NetworkError) {
            if let element = try await element() { return element }
            end(nil)
            await waitForRecorders()
            return nil
        } catch {
            end(error)
            await waitForRecorders()
            throw error
        }
    }

    private func waitForRecorders() async {
        if case .transfer(let lifetime) = source { await lifetime.run.session.waitForRecorders() }
    }

    private func end(_ error: NetworkError?) {
        let stage = state.withLock { state in
            defer { state.stage = .ended(error) }
            return state.stage
        }
        switch stage {
        case .unopened, .ended: return
        case .waiting: break
        // The body has ended, so discard any bytes of the attempt that it did not need.
        case .reading(let body):
            if let engine = body.carrier?.engine { error == nil ? engine.discardBody(byReader: true) : engine.cancel() }
        }
        if case .transfer(let lifetime) = source { lifetime.run.endReading(with: error) }
    }

    private func element() async throws(NetworkError) -> TransferElement? {
        switch (state.withLock { $0.stage }, source) {
        case (.unopened, .transfer(let lifetime)):
            try lifetime.run.claimStream(withProgress: withProgress)
            state.withLock { $0.stage = .waiting }
            return try await opening(of: lifetime.run)
        case (.unopened, .response(let body, let request)):
            try open(body, of: request)
            return try await element(of: body)
        case (.waiting, .transfer(let lifetime)): return try await opening(of: lifetime.run)
        case (.reading(let body), _): return try await element(of: body)
        case (.ended(let error?), _): throw error
        case (.ended(nil), _), (.waiting, .response): return nil
        }
    }

    // MARK: Before the body

    /// Returns the next element of a transfer: an element before the head, or the head.
    private func opening(of run: TransferRun) async throws(NetworkError) -> TransferElement? {
        switch try await run.nextOpening() {
        case .element(let element): return element
        case .response(let response):
            try open(response.body, of: response.request)
            if withProgress {
                state.withLock { state in
                    state.expected = response.body.hasStatedLength ? response.head.contentLength : nil
                    state.lastProgress.time = run.session.loop.clock.now()
                }
            }
            return .head(response.head)
        }
    }

    /// Claims a body and prepares to read it.
    ///
    /// - Throws: An error when the body is already taken.
    private func open(_ body: IncomingBody, of request: Request) throws(NetworkError) {
        try body.claim(for: request)
        let decoding = body.decoding
        state.withLock { state in
            state.stage = .reading(body)
            state.decoding = decoding
        }
    }

    // MARK: The body

    private func element(of body: IncomingBody) async throws(NetworkError) -> TransferElement? {
        let chunk: ByteChunk?
        switch body.source {
        case .wire(let attempt): return try await received(by: attempt)
        case .bytes(let data, _):
            chunk = state.withLock { $0.count } == 0 && !data.isEmpty ? ByteChunk(data) : nil
        case .pull(let source):
            if let progress = dueProgress() { return .progress(progress) }
            chunk = try await pulled(from: source)
        }
        return state.withLock { state in
            if let chunk {
                state.count += Int64(chunk.count)
                return .bytes(chunk)
            }
            if state.areTrailersDue {
                state.areTrailersDue = false
                state.trailers = body.trailers
                if let trailers = body.trailers { return .trailers(trailers) }
            }
            guard state.isLastProgressDue else { return nil }
            state.isLastProgressDue = false
            return .progress(
                TransferProgress(received: state.count, expectedToReceive: state.count, isFinished: true))
        }
    }

    /// Returns the progress of a body without an attempt, at most once in each interval of the session.
    private func dueProgress() -> TransferProgress? {
        guard withProgress, case .transfer(let lifetime) = source else { return nil }
        let loop = lifetime.run.session.loop
        let (now, elapsed) = (loop.clock.now(), lifetime.run.elapsed)
        return state.withLock { state in
            guard state.count > state.lastProgress.count,
                now &- state.lastProgress.time >= loop.configuration.progressInterval
            else { return nil }
            state.lastProgress = (now, state.count)
            state.meter.record(now: now, totalBytes: state.count)
            return TransferProgress(
                received: state.count, expectedToReceive: state.expected,
                bytesPerSecond: state.meter.bytesPerSecond, elapsed: elapsed)
        }
    }

    private func pulled(from source: any ChunkSource) async throws(NetworkError) -> ByteChunk? {
        if Task.isCancelled { throw NetworkError.cancelled(.receiving, self.source.request) }
        do {
            return try await source.next()
        } catch let error as NetworkError {
            throw error
        } catch is CancellationError {
            throw NetworkError.cancelled(.receiving, self.source.request)
        } catch {
            throw NetworkError(
                .interceptorFailed, phase: .receiving, "The body of an interceptor threw \(type(of: error)).",
                cause: error, request: self.source.request)
        }
    }

    /// Returns the next element that an attempt receives, decoded.
    private func received(by attempt: Attempt) async throws(NetworkError) -> TransferElement? {
        let decoding = state.withLock { $0.decoding }
        while true {
            if let decoding, let chunk = try await decoded(by: decoding, attempt) { return .bytes(chunk) }
            switch await attempt.engine.next(withProgress: withProgress) {
            // The reader has delivered these elements before the body, or does not need them.
            case .informational, .head: break
            case .bytes(let chunk):
                guard let decoding else { return .bytes(ByteChunk(chunk)) }
                decoding.feed(ByteChunk(chunk))
            case .progress(let counters): return .progress(progress(counters, of: attempt))
            case .trailers(let lines):
                let trailers = HeaderFields(trailers: lines)
                state.withLock { $0.trailers = trailers }
                return .trailers(trailers)
            case .end(let outcome):
                if let failure = outcome.failure { throw attempt.error(failure, outcome) }
                try decoding?.finish()
                return nil
            }
        }
    }

    private func progress(_ counters: Counters, of attempt: Attempt) -> TransferProgress {
        state.withLock { state in
            state.meter.record(now: counters.at, totalBytes: counters.sent + counters.received)
            return TransferProgress(counters, rate: state.meter.bytesPerSecond, offset: attempt.offset)
        }
    }

    /// Returns the next decoded bytes; nil when the decoder needs more received bytes.
    private func decoded(by decoding: BodyDecoding, _ attempt: Attempt) async throws(NetworkError) -> ByteChunk? {
        var timeslice = Timeslice()
        while true {
            do throws(NetworkError) {
                switch try decoding.step() {
                case .bytes(let chunk): return chunk
                case .starved: return nil
                case .working: break
                }
            } catch {
                attempt.engine.cancel()
                decoding.abandon()
                throw error
            }
            await timeslice.yieldIfOver()
        }
    }
}

extension BodyReader: ChunkSource {
    /// Returns the next chunk of the body; nil at its end.
    func next() async throws(NetworkError) -> ByteChunk? {
        while let element = try await nextElement() {
            if case .bytes(let chunk) = element { return chunk }
        }
        return nil
    }

    /// The trailers, known at the end of the body.
    var trailers: HeaderFields? { state.withLock { $0.trailers } }
}
