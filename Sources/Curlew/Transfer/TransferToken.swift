// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import FoundationEssentials

/// One run of a request as its holders see it: whoever holds the token keeps the transfer alive.
///
/// Every public view of a transfer holds it; when the last one goes, an unfinished transfer is cancelled, unless it was
/// handed to its session with `start()`.
final class TransferToken: Sendable {
    /// Who reads the body.
    ///
    /// Decided once, by the first who asks.
    private enum Claim { case none, value, stream }

    private struct State {
        var claim = Claim.none
        var isDetached = false
        var body: Data?
        /// For a body that is encoded: its decoding, by a reader or by those who await the value.
        var decoding: BodyDecoding?
        var collected: CollectedDecoding?
    }

    let request: Request
    /// The run, or why there can be none.
    let run: Result<EngineTransfer, NetworkError>
    private let share: LoopShare
    /// Nil when bodies are taken as they come.
    private let policy: DecodingPolicy?
    private let state = Lock(State())

    init(
        request: Request, share: LoopShare, run: Result<EngineTransfer, NetworkError>, policy: DecodingPolicy? = nil
    ) {
        self.request = request
        self.share = share
        self.run = run
        self.policy = policy
    }

    deinit {
        guard case .success(let engine) = run, !state.withLock({ $0.isDetached }) else { return }
        engine.cancel()
    }

    // MARK: Orders

    func start() {
        guard case .success(let engine) = run else { return }
        engine.startPrepared()
    }

    func detach() {
        state.withLock { $0.isDetached = true }
        start()
    }

    func cancel() { if case .success(let engine) = run { engine.cancel() } }

    // MARK: Claims

    /// Makes the body collected for `value`; an error when a stream took it.
    func claimValue() throws(NetworkError) {
        let isTaken = state.withLock { state in
            if state.claim == .none { state.claim = .value }
            return state.claim == .stream
        }
        guard isTaken else { return }
        if case .success(let engine) = run, let failure = engine.failure { throw error(failure, nil) }
        throw NetworkError(
            .invalidRequest, phase: .receiving, "The body was taken as a stream, so there is no value to wait for.",
            hint: "Await the value or iterate the stream, not both.", request: request)
    }

    /// Gives the body to one reader; an error for the second, or when a value is awaited.
    func claimStream() throws(NetworkError) -> EngineTransfer {
        let engine = try run.get()
        try refuseCancelledTask(engine)
        let isFree = state.withLock { state in
            guard state.claim == .none else { return false }
            state.claim = .stream
            return true
        }
        guard isFree else {
            throw NetworkError(
                .invalidRequest, phase: .receiving, "The body has a reader already.",
                hint: "A body is read once: by one stream, or by awaiting the value.", request: request)
        }
        engine.claimStream()
        start()
        return engine
    }

    /// A cancelled task starts nothing.
    private func refuseCancelledTask(_ engine: EngineTransfer) throws(NetworkError) {
        if Task.isCancelled && engine.snapshot.state == .idle {
            throw NetworkError(EngineFailure(.cancelled, phase: .preparing), request: request)
        }
    }

    // MARK: The end

    /// The collected response, the same one every time.
    func response() async throws(NetworkError) -> Response<Data> {
        try claimValue()
        let engine = try run.get()
        try refuseCancelledTask(engine)
        start()
        let outcome = try await outcome(of: engine)
        if let failure = outcome.failure { throw error(failure, outcome) }
        let trailers = HeaderFields(trailers: outcome.trailers)
        switch body(outcome, engine) {
        case .plain(let body):
            let metrics = TransferMetrics(outcome.metrics)
            return Response(head: head(outcome.head), value: body, metrics: metrics, trailers: trailers)
        case .encoded(let collected):
            let body = try await collected.value()
            let metrics = metrics(outcome.metrics)
            return Response(head: collected.decoding.head, value: body, metrics: metrics, trailers: trailers)
        }
    }

    private enum Body { case plain(Data), encoded(CollectedDecoding) }

    /// What was collected, taken over once.
    private func body(_ outcome: EngineTransfer.Outcome, _ engine: EngineTransfer) -> Body {
        state.withLock { state in
            if let body = state.body { return .plain(body) }
            if let collected = state.collected { return .encoded(collected) }
            if let decoding = outcome.head.flatMap({ BodyDecoding($0, request, engine, policy) }) {
                if let chunk = outcome.body?.takeChunk() {
                    decoding.feed(whole: ByteChunk(chunk), limit: engine.plan.collectLimit)
                }
                let collected = CollectedDecoding(decoding)
                (state.decoding, state.collected) = (decoding, collected)
                return .encoded(collected)
            }
            let body = Data(taking: outcome.body)
            state.body = body
            return .plain(body)
        }
    }

    /// The decoding of a streamed body; nil when it is handed on as it comes.
    func decoding(of raw: RawHead, _ engine: EngineTransfer) -> BodyDecoding? {
        guard let decoding = BodyDecoding(raw, request, engine, policy) else { return nil }
        state.withLock { $0.decoding = decoding }
        return decoding
    }

    func metrics(_ raw: RawMetrics) -> TransferMetrics {
        var metrics = TransferMetrics(raw)
        if let decoding = state.withLock({ $0.decoding }) {
            metrics.decodedBodyBytes = decoding.decodedBytes
            metrics.contentEncoding = decoding.encoding
        }
        return metrics
    }

    /// The end, or the end of the caller's interest when its task is cancelled.
    private func outcome(of engine: EngineTransfer) async throws(NetworkError) -> EngineTransfer.Outcome {
        if let outcome = await engine.finished() { return outcome }
        if engine.hasEndWaiters || state.withLock({ $0.isDetached }) {
            let now = engine.snapshot
            let phase: EngineFailure.Phase = now.counters.received > 0 ? .receiving : .waiting
            throw NetworkError(
                EngineFailure(.cancelled, phase: now.state == .queued ? .queued : phase), request: request,
                duration: now.counters.duration)
        }
        // Nobody else waits: the transfer ends too, and is off the wire before the caller hears of it.
        engine.cancel()
        return await engine.ended()
    }

    func head(_ raw: RawHead?) -> ResponseHead {
        raw.flatMap { ResponseHead(rawBlock: $0.bytes, url: request.urlText) }
            ?? ResponseHead(status: Status(rawValue: raw?.status ?? 0), version: .http1_1, fields: [:])
    }

    func error(_ failure: EngineFailure, _ outcome: EngineTransfer.Outcome?) -> NetworkError {
        guard case .success(let engine) = run else { return NetworkError(failure, request: request) }
        let counters = engine.snapshot.counters
        return NetworkError(
            failure, request: request, response: outcome?.head.map { head($0) },
            body: outcome?.body?.prefix(NetworkError.bodyLimit) ?? [], duration: counters.duration)
    }
}

extension TransferToken: CustomReflectable {
    /// The request alone: what lies below holds the URL unredacted, and belongs to other threads.
    var customMirror: Mirror { Mirror(self, children: ["request": request.description]) }
}

extension EngineTransfer {
    /// Starts after making sure that a secure transfer has roots to judge by; they are loaded on the caller's thread.
    func startPrepared() {
        if plan.isSecure {
            do throws(EngineFailure) {
                try plan.trust.prepare()
            } catch {
                return refuse(error)
            }
        }
        start()
    }
}

extension Counters {
    var duration: Duration {
        startedAt == 0 || at <= startedAt ? .zero : .nanoseconds(Int64(clamping: at - startedAt))
    }
}

extension TransferProgress {
    init(_ counters: Counters, rate: Double) {
        self.init(
            sent: counters.sent, received: counters.received,
            expectedToSend: counters.expectedToSend < 0 ? nil : counters.expectedToSend,
            expectedToReceive: counters.expectedToReceive < 0 ? nil : counters.expectedToReceive,
            bytesPerSecond: rate, isFinished: counters.isFinished && !counters.hasFailed, elapsed: counters.duration)
    }
}

extension TransferMetrics {
    init(_ raw: RawMetrics) {
        func span(_ from: Int64, _ to: Int64) -> Duration { .microseconds(Swift.max(0, to - from)) }
        // On a connection that was there, nothing was resolved, connected or secured.
        let resolved = raw.isReused ? 0 : raw.resolved
        let connected = raw.isReused ? 0 : Swift.max(raw.resolved, raw.connected)
        let secured = raw.isReused ? 0 : Swift.max(connected, raw.secured)
        let ready = raw.isReused ? 0 : Swift.max(secured, raw.readyToSend)
        let sent = Swift.min(Swift.max(ready, raw.bodySent), Swift.max(ready, raw.total))
        let first = raw.firstByte > 0 ? Swift.max(raw.firstByte, sent) : sent
        self.init()
        queued = .nanoseconds(Int64(raw.queued))
        resolve = span(0, resolved)
        connect = span(resolved, connected)
        secure = span(connected, secured)
        send = span(ready, sent)
        wait = span(sent, first)
        receive = raw.firstByte > 0 ? span(first, raw.total) : .zero
        total = queued + .microseconds(raw.total)
        requestHeadBytes = raw.requestHeadBytes
        requestBodyBytes = raw.requestBodyBytes
        responseHeadBytes = raw.responseHeadBytes
        responseBodyBytes = raw.responseBodyBytes
        decodedBodyBytes = raw.responseBodyBytes
        version = HTTPVersion(engineNumber: raw.version)
        localAddress = TransferMetrics.address(raw.localAddress, raw.localPort)
        remoteAddress = TransferMetrics.address(raw.remoteAddress, raw.remotePort)
        isConnectionReused = raw.isReused
        tlsVersion = raw.tlsVersion
        tlsCipher = raw.tlsCipher
        isTLSSessionResumed = raw.isResumed
    }

    private static func address(_ host: String, _ port: Int) -> String {
        if host.isEmpty { return "" }
        return host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]:\(port)" : "\(host):\(port)"
    }
}

extension HTTPVersion {
    /// libcurl's numbers (CURL_HTTP_VERSION_*).
    fileprivate init(engineNumber: Int) {
        self =
            switch engineNumber {
            case 1: .http1_0
            case 3: .http2
            case 30: .http3
            default: .http1_1
            }
    }
}
