// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import FoundationEssentials
internal import CurlewSupport

/// What undoes content codings for all transfers of a session, and how far it goes.
final class DecodingPolicy: Sendable {
    let codings: ContentCodings
    /// Decoded bytes for one of the wire, nil for any number.
    let ratio: Int?

    init(_ codings: ContentCodings, ratio: Int? = nil) {
        self.codings = codings
        self.ratio = ratio
    }
}

/// The decoding of one body, driven step by step by whoever wants it, with everything that can end it early.
final class BodyDecoding: @unchecked Sendable {
    // Safe because one task at a time goes on with it, inside a reader's turn or a lock; the tally has its own lock.

    /// The codings undone, as the response named them.
    let encoding: String
    /// The head to hand over: without what was true of the encoded body alone.
    let head: ResponseHead
    private let received: ResponseHead
    private let request: Request
    private let engine: EngineTransfer
    private let ratio: Int?
    private var decoder: Result<ContentDecoder, NetworkError>?
    private var isFed = false
    /// Nanoseconds of work since the wire was done: what the reader does in between is not the transfer's time.
    private var spent: UInt64 = 0
    private let tally = Lock<Int64>(0)
    /// Most bytes that may come out, and the first ones that went in, for a body that is collected.
    private var limit: Int?
    private var prefix: [UInt8] = []

    /// Nil when the body is to be taken as it came.
    init?(_ raw: RawHead, _ request: Request, _ engine: EngineTransfer, _ policy: DecodingPolicy?) {
        guard let policy, raw.isEncoded, engine.plan.method != "HEAD",
            ![204, 206, 304].contains(raw.status)
        else { return nil }
        let received = ResponseHead(raw, url: request.urlText)
        guard let value = received[.contentEncoding] else { return nil }
        let names = ContentCodings.names(in: value)
        if names.isEmpty { return nil }
        do throws(NetworkError) {
            decoder = .success(try policy.codings.decoder(for: names))
            let block = HeaderFields.block(raw.bytes, without: [.contentEncoding, .contentLength], from: 0)
            head = ResponseHead(rawBlock: block, url: request.urlText) ?? received
        } catch {
            // Told when there is a body to decode.
            decoder = .failure(error)
            head = received
        }
        encoding = names.joined(separator: ", ")
        self.received = received
        self.request = request
        self.engine = engine
        ratio = policy.ratio
    }

    /// Decoded bytes so far, from any thread.
    var decodedBytes: Int64 { tally.withLock { $0 } }

    /// Takes the next wire bytes, when the last step was `.starved`.
    func feed(_ chunk: ByteChunk) {
        isFed = true
        if case .success(let decoder) = decoder { decoder.feed(chunk) }
    }

    /// Takes a whole body, of which at most `limit` bytes may come out.
    func feed(whole chunk: ByteChunk, limit: Int) {
        self.limit = limit
        prefix = Array(chunk.prefix(NetworkError.bodyLimit))
        feed(chunk)
    }

    /// Goes on a little.
    /// - Throws: `NetworkError` in phase `decoding`: `cancelled`, `timedOut`, `bodyTooLarge`, `corruptEncoding`,
    ///   `unsupported`, `resourceExhausted`.
    func step() throws(NetworkError) -> ContentDecoder.Step {
        guard isFed, let decoder else { return .starved }
        do throws(NetworkError) {
            let standing = engine.standing
            let now = Monotonic.now()
            try check(standing, now)
            let step = try decoder.get().step()
            if standing.finishedAt != nil { spent += Monotonic.now() - now }
            if case .bytes = step { try count(try decoder.get()) }
            return step
        } catch {
            throw withFacts(error)
        }
    }

    /// Checks that the body is complete.
    /// - Throws: `NetworkError` of kind `truncatedEncoding`.
    func finish() throws(NetworkError) {
        defer { decoder = nil }
        guard isFed, case .success(let decoder) = decoder else { return }
        do throws(NetworkError) { try decoder.finish() } catch { throw withFacts(error) }
    }

    /// Frees what decoders keep.
    func abandon() { decoder = nil }

    private func check(_ standing: EngineTransfer.Standing, _ now: UInt64) throws(NetworkError) {
        if standing.isCancelled || Task.isCancelled {
            throw NetworkError(.cancelled, phase: .decoding, "The transfer was cancelled.")
        }
        guard let total = engine.plan.totalTimeout else { return }
        let deadline = standing.startedAt &+ total
        guard standing.finishedAt.map({ $0 &+ spent }) ?? now >= deadline else { return }
        let length = Duration.nanoseconds(Int64(clamping: total &+ engine.plan.offset))
        throw NetworkError(
            .timedOut, phase: .decoding,
            "The body was not decoded within \(NetworkError.limit("total", length, of: request)).",
            hint: "\(ByteCount(decodedBytes)) were decoded by then.")
    }

    /// Counts what came out, and stops a body that grows beyond what is allowed.
    private func count(_ decoder: ContentDecoder) throws(NetworkError) {
        let produced = decoder.produced
        tally.withLock { $0 = produced }
        let consumed = max(decoder.consumed, 1)
        if let limit, produced > Int64(limit) {
            throw NetworkError(
                .bodyTooLarge, phase: .decoding,
                "The response body has more than \(ByteCount(Int64(limit))): \(ByteCount(Int64(limit))) decoded "
                    + "from \(ByteCount(consumed)), \(max(1, Int64(limit) / consumed)) to 1.",
                hint: "Raise options.responseLimit or limits.responseBody, or read transfer.bytes.")
        }
        let (most, overflows) = Int64(ratio ?? .max).multipliedReportingOverflow(by: decoder.fed)
        guard let ratio, produced > 1 << 20, !overflows, produced > most else { return }
        throw NetworkError(
            .bodyTooLarge, phase: .decoding,
            "The response body grows by more than \(ratio) to 1: \(ByteCount(produced)) decoded "
                + "from \(ByteCount(decoder.fed)).",
            hint: "Raise limits.decompressionRatio if the server is right to send it.")
    }

    private func withFacts(_ error: NetworkError) -> NetworkError {
        let start = engine.standing.startedAt
        return error.with(
            request: request, response: received, body: prefix,
            duration: .nanoseconds(Int64(clamping: Monotonic.now() &- start)))
    }
}

/// The decoding of a collected body: done once, however many tasks await its value.
///
/// Whoever waits goes on with it, a step at a time and in turns, so that a task that is cancelled leaves at once and
/// the others need nobody to take over.
final class CollectedDecoding: Sendable {
    private struct State {
        var data = Data()
        var result: Result<Data, NetworkError>?
    }

    let decoding: BodyDecoding
    private let state = Lock(State())

    init(_ decoding: BodyDecoding) { self.decoding = decoding }

    /// The decoded body, the same every time.
    /// - Throws: As ``BodyDecoding/step()`` and ``BodyDecoding/finish()`` do; the same every time but for `cancelled`.
    func value() async throws(NetworkError) -> Data {
        var turn = Turn()
        while true {
            if let result = state.withLock({ advance(&$0) }) { return try result.get() }
            await turn.giveWayIfOver()
        }
    }

    /// One step; nil while there are more.
    private func advance(_ state: inout State) -> Result<Data, NetworkError>? {
        if let result = state.result { return result }
        do throws(NetworkError) {
            switch try decoding.step() {
            case .bytes(let chunk):
                state.data.append(contentsOf: chunk)
                return nil
            case .working: return nil
            case .starved:
                try decoding.finish()
                state.result = .success(state.data)
            }
        } catch {
            if error.kind == .cancelled { return .failure(error) }
            state.result = .failure(error)
            decoding.abandon()
        }
        state.data = Data()
        return state.result
    }
}
