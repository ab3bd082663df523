// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import FoundationEssentials
internal import CurlewSupport

/// One attempt of a transfer, as public types; a transfer has several attempts when it is redirected or intercepted.
///
/// Releasing an attempt cancels it.
final class Attempt: Sendable, Identifiable {
    private struct State {
        var body: Data?
        /// The decoding of an encoded body, for a reader or for the tasks that await the value.
        var decoding: BodyDecoding?
        var collected: CollectedDecoding?
    }

    let request: Request
    let engine: EngineTransfer
    /// The nanoseconds between the start of the transfer and the creation of the attempt.
    let offset: UInt64
    /// The policy for decoding; nil when bodies are not decoded.
    private let policy: DecodingPolicy?
    private let state = Lock(State())

    /// Creates an attempt.
    ///
    /// - Parameter policy: The policy for decoding the response; nil when it is not decoded.
    init(_ request: Request, _ engine: EngineTransfer, offset: UInt64 = 0, policy: DecodingPolicy?) {
        self.request = request
        self.engine = engine
        self.offset = offset
        self.policy = policy
    }

    deinit { engine.cancel() }

    var id: UInt64 { engine.id }

    // MARK: The response

    /// Whether the body has a content coding and is decoded; known with the head.
    var isDecoded: Bool { state.withLock { $0.decoding != nil } }

    /// Returns the response that begins with a head; its body is unread.
    func response(_ raw: RawHead) -> IncomingResponse {
        IncomingResponse(decoding(of: raw)?.head ?? head(raw), IncomingBody(self), request, self)
    }

    /// Returns the decoding of the body, which all callers share; nil for a body that is delivered as it was received.
    func decoding(of raw: RawHead) -> BodyDecoding? {
        guard raw.fields.contains(.contentEncoding) else { return nil }
        if let known = state.withLock({ $0.decoding }) { return known }
        guard let made = BodyDecoding(raw, request, engine, policy) else { return nil }
        return state.withLock { state in
            if let known = state.decoding { return known }
            state.decoding = made
            return made
        }
    }

    // MARK: Collecting

    /// Returns the collected response after the end of the attempt; each call returns the same response.
    func collected(_ outcome: EngineTransfer.Outcome) async throws(NetworkError) -> Response<Data> {
        if let plain = plainResponse(outcome) { return plain }
        guard outcome.failure == nil, outcome.head != nil, case .encoded(let collected) = body(outcome) else {
            throw error(outcome)
        }
        let body = try await collected.value()
        return Response(
            head: collected.decoding.head, value: body, metrics: metrics(outcome),
            trailers: HeaderFields(trailers: outcome.trailers))
    }

    /// Returns the collected response, if it needs no decoding; nil for all other ends.
    func plainResponse(_ outcome: EngineTransfer.Outcome) -> Response<Data>? {
        guard outcome.failure == nil, let raw = outcome.head, case .plain(let body) = body(outcome) else { return nil }
        return Response(
            head: head(raw), value: body, measurements: .measured(outcome.facts),
            trailers: HeaderFields(trailers: outcome.trailers))
    }

    private enum Body { case plain(Data), encoded(CollectedDecoding) }

    /// Returns the collected body, which is taken from the engine's transfer at the first call.
    private func body(_ outcome: EngineTransfer.Outcome) -> Body {
        let decoding = outcome.head.flatMap { self.decoding(of: $0) }
        return state.withLock { state in
            if let body = state.body { return .plain(body) }
            if let collected = state.collected { return .encoded(collected) }
            if let decoding {
                if let chunk = engine.takeBodyChunk() {
                    decoding.feed(whole: ByteChunk(chunk), limit: engine.plan.limits.bodySize)
                }
                let collected = CollectedDecoding(decoding)
                state.collected = collected
                return .encoded(collected)
            }
            let body = Data(taking: engine.takeBody())
            state.body = body
            return .plain(body)
        }
    }

    // MARK: Public types

    /// The metrics; nil until the attempt has ended.
    var metrics: TransferMetrics? { engine.outcome.map { metrics($0) } }

    /// Returns the metrics of the attempt, which has ended.
    func metrics(_ outcome: EngineTransfer.Outcome) -> TransferMetrics {
        var metrics = TransferMetrics(outcome.metrics)
        if let decoding = state.withLock({ $0.decoding }) {
            metrics.decodedBodyBytes = decoding.decodedBytes
            metrics.contentEncoding = decoding.encoding
        }
        return metrics
    }

    private func head(_ raw: RawHead) -> ResponseHead { ResponseHead(raw, url: request.url) }

    /// Returns the error of an attempt that ended without a response.
    func error(_ outcome: EngineTransfer.Outcome) -> NetworkError {
        outcome.failure.map { error($0, outcome) } ?? .headless(request)
    }

    func error(_ failure: EngineFailure, _ outcome: EngineTransfer.Outcome?) -> NetworkError {
        NetworkError(
            failure, request: request, response: outcome?.head.map { head($0) },
            body: outcome?.excerpt ?? [],
            duration: .nanoseconds(Int64(clamping: offset)) + engine.snapshot.counters.duration,
            proxy: engine.plan.target.proxyChoice)
    }
}

extension Attempt: CustomReflectable {
    /// A mirror with the request only: other properties hold the unredacted URL, and belong to other threads.
    var customMirror: Mirror { Mirror(self, children: ["request": request.description]) }
}

extension EngineTransfer {
    /// Starts the transfer, after loading the trust roots for a TLS connection on the caller's thread.
    func startPrepared() {
        let proxyTrust = plan.target.route?.proxy?.trust
        if plan.isSecure || proxyTrust != nil {
            do throws(EngineFailure) {
                do throws(EngineFailure) { try proxyTrust?.prepare() } catch { throw error.ofProxy }
                if plan.isSecure { try plan.trust.prepare() }
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

extension NetworkError {
    static func headless(_ request: Request) -> NetworkError {
        NetworkError(.internal, phase: .receiving, "A response ended before its head.", request: request)
    }
}
