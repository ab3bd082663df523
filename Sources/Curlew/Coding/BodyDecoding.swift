// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import FoundationEssentials
internal import CurlewSupport

/// The content codings that all transfers of a session can decode, and the limit of the decompression ratio.
final class DecodingPolicy: Sendable {
    let codings: ContentCodings
    /// The maximum number of decoded bytes for one received byte; nil for any number.
    let ratio: Int?

    init(_ codings: ContentCodings, ratio: Int? = nil) {
        self.codings = codings
        self.ratio = ratio
    }
}

/// The decoding of one body, which its reader drives step by step; cancellation, timeouts and limits end it early.
final class BodyDecoding: @unchecked Sendable {
    // Safe because one task at a time runs a step, inside a reader's turn or a lock; `decodedCount` has its own lock.

    /// The names of the codings to decode, as in the response.
    let encoding: String
    /// The head for the caller, without the fields that only describe the encoded body.
    let head: ResponseHead
    private let received: ResponseHead
    private let request: Request
    private let engine: EngineTransfer
    private let ratio: Int?
    /// The number of bytes that a body can copy from its dictionary, which do not count as growth.
    private let allowance: Int64
    private var decoder: Result<ContentDecoder, NetworkError>?
    private var hasInput = false
    /// Nanoseconds of decoding since the last byte was received; the reader's time between steps does not count.
    private var spent: UInt64 = 0
    private let decodedCount = Lock<Int64>(0)
    /// For a collected body, the maximum number of decoded bytes, and the first received bytes.
    private var limit: Int?
    private var prefix: [UInt8] = []

    /// Creates the decoding of a body; nil when the body is to be delivered as it was received.
    init?(_ raw: RawHead, _ request: Request, _ engine: EngineTransfer, _ policy: DecodingPolicy?) {
        guard let policy, engine.plan.method != "HEAD",
            ![204, 206, 304].contains(raw.status)
        else { return nil }
        let received = ResponseHead(raw, url: request.url)
        guard let value = received[.contentEncoding] else { return nil }
        let names = ContentCodings.names(in: value)
        if names.isEmpty { return nil }
        do throws(NetworkError) {
            decoder = .success(try policy.codings.decoder(for: names, with: request.dictionary))
            let block = HeaderFields.block(raw.bytes, without: [.contentEncoding, .contentLength], from: 0)
            head = ResponseHead(rawBlock: block, url: request.url) ?? received
        } catch {
            // The error is thrown when there is a body to decode.
            decoder = .failure(error)
            head = received
        }
        encoding = names.joined(separator: ", ")
        self.received = received
        self.request = request
        self.engine = engine
        ratio = policy.ratio
        let usesDictionary = names.contains { ContentCoding(token: $0)?.needsDictionary ?? false }
        allowance = usesDictionary ? Int64(request.dictionary?.bytes.count ?? 0) : 0
    }

    /// The number of decoded bytes so far, readable from any thread.
    var decodedBytes: Int64 { decodedCount.withLock { $0 } }

    /// Takes the next received bytes, after the last step returned `.starved`.
    func feed(_ chunk: ByteChunk) {
        hasInput = true
        if case .success(let decoder) = decoder { decoder.feed(chunk) }
    }

    /// Takes a whole body, which may have at most `limit` decoded bytes.
    func feed(whole chunk: ByteChunk, limit: Int) {
        self.limit = limit
        prefix = Array(chunk.prefix(NetworkError.bodyLimit))
        feed(chunk)
    }

    /// Runs one step of the decoding.
    /// - Throws: `NetworkError` in phase `decoding`: `cancelled`, `timedOut`, `bodyTooLarge`, `corruptEncoding`,
    ///   `unsupported`, `resourceExhausted`.
    func step() throws(NetworkError) -> ContentDecoder.Step {
        guard hasInput, let decoder else { return .starved }
        do throws(NetworkError) {
            let standing = engine.standing
            let now = engine.loop.clock.now()
            try check(standing, now)
            let step = try decoder.get().step()
            if standing.finishedAt != nil { spent += engine.loop.clock.now() - now }
            if case .bytes = step { try count(try decoder.get()) }
            return step
        } catch {
            throw addingContext(error)
        }
    }

    /// Checks that the body is complete.
    /// - Throws: `NetworkError` of kind `truncatedEncoding`.
    func finish() throws(NetworkError) {
        defer { decoder = nil }
        guard hasInput, case .success(let decoder) = decoder else { return }
        do throws(NetworkError) { try decoder.finish() } catch { throw addingContext(error) }
    }

    /// Frees the decoders.
    func abandon() { decoder = nil }

    private func check(_ standing: EngineTransfer.Standing, _ now: UInt64) throws(NetworkError) {
        if standing.isCancelled || Task.isCancelled {
            throw NetworkError(.cancelled, phase: .decoding, "The transfer was cancelled.")
        }
        guard let total = engine.plan.remainingTotal else { return }
        let deadline = standing.startedAt &+ total
        guard standing.finishedAt.map({ $0 &+ spent }) ?? now >= deadline else { return }
        let length = Duration.nanoseconds(Int64(clamping: total &+ engine.plan.offset))
        throw NetworkError(
            .timedOut, phase: .decoding,
            "The body was not decoded within \(NetworkError.limit(.total, length, of: request)).",
            hint: "\(ByteCount(decodedBytes)) were decoded by then.")
    }

    /// Counts the decoded bytes, and throws when the body exceeds the limit or the ratio.
    private func count(_ decoder: ContentDecoder) throws(NetworkError) {
        let produced = decoder.produced
        decodedCount.withLock { $0 = produced }
        let consumed = max(decoder.consumed, 1)
        if let limit, produced > Int64(limit) {
            throw NetworkError(
                .bodyTooLarge, phase: .decoding,
                "The response body has more than \(ByteCount(Int64(limit))): \(ByteCount(Int64(limit))) decoded "
                    + "from \(ByteCount(consumed)), \(max(1, Int64(limit) / consumed)) to 1.",
                hint: "Raise options.responseLimit or limits.responseBody, or read transfer.bytes.")
        }
        let (most, overflows) = Int64(ratio ?? .max).multipliedReportingOverflow(by: decoder.fed)
        let grown = produced - allowance
        guard let ratio, grown > 1 << 20, !overflows, grown > most else { return }
        throw NetworkError(
            .bodyTooLarge, phase: .decoding,
            "The response body grows by more than \(ratio) to 1: \(ByteCount(produced)) decoded "
                + "from \(ByteCount(decoder.fed)).",
            hint: "Raise limits.decompressionRatio if such a body is expected.")
    }

    private func addingContext(_ error: NetworkError) -> NetworkError {
        let start = engine.standing.startedAt
        return error.with(
            request: request, response: received, body: prefix,
            duration: .nanoseconds(Int64(clamping: engine.loop.clock.now() &- start)))
    }
}

/// The decoding of a collected body, which runs once for any number of tasks that await its value.
///
/// The waiting tasks run the steps in turns, one step at a time. A cancelled task can therefore leave at once, and the
/// other tasks continue without it.
final class CollectedDecoding: Sendable {
    private struct State {
        var data = Data()
        var result: Result<Data, NetworkError>?
    }

    let decoding: BodyDecoding
    private let state = Lock(State())

    init(_ decoding: BodyDecoding) { self.decoding = decoding }

    /// Returns the decoded body, the same for every call.
    /// - Throws: The errors of ``BodyDecoding/step()`` and ``BodyDecoding/finish()``; the same error for every call,
    ///   except for `cancelled`.
    func value() async throws(NetworkError) -> Data {
        var timeslice = Timeslice()
        while true {
            if let result = state.withLock({ advance(&$0) }) { return try result.get() }
            await timeslice.yieldIfOver()
        }
    }

    /// Runs one step, and returns nil while there are more.
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
