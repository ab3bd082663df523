// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import FoundationEssentials
internal import CurlewSupport

/// One request on the wire, in public words: a transfer has one, or several when it is redirected or intercepted.
///
/// Whoever drops it ends it.
final class Attempt: Sendable {
    private struct State {
        var body: Data?
        /// For a body that is encoded: its decoding, by a reader or by those who await the value.
        var decoding: BodyDecoding?
        var collected: CollectedDecoding?
        var reader: WireReader?
    }

    let request: Request
    let engine: EngineTransfer
    /// How long after the start of its transfer it was made, in nanoseconds.
    let offset: UInt64
    /// Nil when bodies are taken as they come.
    private let policy: DecodingPolicy?
    private let state = Lock(State())

    /// - Parameter policy: What decodes the response; nil when it is taken as it comes.
    init(_ request: Request, _ engine: EngineTransfer, offset: UInt64 = 0, policy: DecodingPolicy?) {
        self.request = request
        self.engine = engine
        self.offset = offset
        self.policy = policy
    }

    deinit { engine.cancel() }

    // MARK: Streamed

    /// The one reader of the stream of steps; the body is not collected from now on.
    var reader: WireReader {
        let (reader, isNew) = state.withLock { state -> (WireReader, Bool) in
            if let reader = state.reader { return (reader, false) }
            let reader = WireReader(self)
            state.reader = reader
            return (reader, true)
        }
        if isNew { engine.claimStream() }
        return reader
    }

    /// Whether its body had a content coding, which is undone; known with the head.
    var isDecoded: Bool { state.withLock { $0.decoding != nil } }

    /// Whether somebody reads it step by step.
    var isStreamed: Bool { state.withLock { $0.reader != nil } }

    /// The head to hand over and, for an encoded body, what decodes it, which is the same for all who ask.
    func opened(_ raw: RawHead) -> (head: ResponseHead, decoding: BodyDecoding?) {
        if let decoding = decoding(of: raw) { return (decoding.head, decoding) }
        return (head(raw), nil)
    }

    private func decoding(of raw: RawHead) -> BodyDecoding? {
        if let known = state.withLock({ $0.decoding }) { return known }
        guard let made = BodyDecoding(raw, request, engine, policy) else { return nil }
        return state.withLock { state in
            if let known = state.decoding { return known }
            state.decoding = made
            return made
        }
    }

    // MARK: Collected

    /// The collected response, the same one every time, once the wire is done.
    func response(_ outcome: EngineTransfer.Outcome) async throws(NetworkError) -> Response<Data> {
        if let failure = outcome.failure { throw error(failure, outcome) }
        let trailers = HeaderFields(trailers: outcome.trailers)
        switch body(outcome) {
        case .plain(let body):
            let metrics = TransferMetrics(outcome.metrics)
            return Response(head: head(outcome.head), value: body, metrics: metrics, trailers: trailers)
        case .encoded(let collected):
            let body = try await collected.value()
            let metrics = measured(outcome.metrics)
            return Response(head: collected.decoding.head, value: body, metrics: metrics, trailers: trailers)
        }
    }

    private enum Body { case plain(Data), encoded(CollectedDecoding) }

    /// What was collected, taken over once.
    private func body(_ outcome: EngineTransfer.Outcome) -> Body {
        let decoding = outcome.head.flatMap { self.decoding(of: $0) }
        return state.withLock { state in
            if let body = state.body { return .plain(body) }
            if let collected = state.collected { return .encoded(collected) }
            if let decoding {
                if let chunk = outcome.body?.takeChunk() {
                    decoding.feed(whole: ByteChunk(chunk), limit: engine.plan.collectLimit)
                }
                let collected = CollectedDecoding(decoding)
                state.collected = collected
                return .encoded(collected)
            }
            let body = Data(taking: outcome.body)
            state.body = body
            return .plain(body)
        }
    }

    // MARK: In public words

    /// What was measured; nil until it has ended.
    var metrics: TransferMetrics? {
        guard let outcome = engine.outcome else { return nil }
        return measured(outcome.metrics)
    }

    private func measured(_ raw: RawMetrics) -> TransferMetrics {
        var metrics = TransferMetrics(raw)
        if let decoding = state.withLock({ $0.decoding }) {
            metrics.decodedBodyBytes = decoding.decodedBytes
            metrics.contentEncoding = decoding.encoding
        }
        return metrics
    }

    func head(_ raw: RawHead?) -> ResponseHead {
        raw.map { ResponseHead($0, url: request.urlText) }
            ?? ResponseHead(status: Status(rawValue: raw?.status ?? 0), version: .http1_1, fields: [:])
    }

    /// Why it ended without a response.
    func error(_ outcome: EngineTransfer.Outcome) -> NetworkError {
        outcome.failure.map { error($0, outcome) } ?? .headless(request)
    }

    func error(_ failure: EngineFailure, _ outcome: EngineTransfer.Outcome?) -> NetworkError {
        NetworkError(
            failure, request: request, response: outcome?.head.map { head($0) },
            body: outcome?.body?.prefix(NetworkError.bodyLimit) ?? [],
            duration: .nanoseconds(Int64(clamping: offset)) + engine.snapshot.counters.duration)
    }
}

extension Attempt: CustomReflectable {
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

extension ResponseHead {
    init(_ raw: RawHead, url: String) {
        self.init(status: Status(raw.status), judgedBlock: raw.bytes, url: url)
    }
}
