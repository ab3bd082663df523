// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

/// A reader that converts the steps of one attempt to elements, and decodes its body.
final class WireReader: Sendable {
    private struct State {
        /// The decoding of the body, known with the head.
        var decoding: BodyDecoding?
        var head: ResponseHead?
        var isEnded = false
        var error: NetworkError?
        var meter = RateMeter()
    }

    // Unowned, since the attempt keeps its reader, and the caller of the reader keeps the attempt.
    private unowned let attempt: Attempt
    private let state = Lock(State())

    init(_ attempt: Attempt) { self.attempt = attempt }

    /// The head; nil until it was delivered.
    var head: ResponseHead? { state.withLock { $0.head } }

    /// Returns the next element; nil at the end, and the same error again after an error.
    func next(withProgress: Bool) async throws(NetworkError) -> TransferElement? {
        let (decoding, isEnded, error) = state.withLock { ($0.decoding, $0.isEnded, $0.error) }
        if let error { throw error }
        if isEnded { return nil }
        let engine = attempt.engine
        guard let decoding else { return try element(await engine.next(withProgress: withProgress)) }
        while true {
            if let chunk = try await decoded(by: decoding) { return .bytes(chunk) }
            let step = await engine.next(withProgress: withProgress)
            guard case .bytes(let chunk) = step else { return try element(step) }
            decoding.feed(ByteChunk(chunk))
        }
    }

    /// Returns the next decoded bytes; nil when the decoder needs more received bytes.
    private func decoded(by decoding: BodyDecoding) async throws(NetworkError) -> ByteChunk? {
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
                state.withLock { $0.error = error }
                throw error
            }
            await timeslice.yieldIfOver()
        }
    }

    private func element(_ step: EngineTransfer.Step) throws(NetworkError) -> TransferElement? {
        switch step {
        case .informational(let raw): return .informational(attempt.head(raw))
        case .head(let raw):
            let (head, decoding) = attempt.opened(raw)
            state.withLock { state in
                state.decoding = decoding
                state.head = head
            }
            return .head(head)
        case .bytes(let chunk): return .bytes(ByteChunk(chunk))
        case .progress(let counters):
            return state.withLock { state in
                state.meter.record(now: counters.at, totalBytes: counters.sent + counters.received)
                return .progress(
                    TransferProgress(counters, rate: state.meter.bytesPerSecond, offset: attempt.offset))
            }
        case .trailers(let lines): return .trailers(HeaderFields(trailers: lines))
        case .end(let outcome):
            let error = outcome.failure.map { attempt.error($0, outcome) } ?? encodingError()
            state.withLock { state in
                state.isEnded = true
                state.error = error
            }
            if let error { throw error }
            return nil
        }
    }

    /// Returns the error of a body that arrived completely but ends inside its content coding; nil without one.
    private func encodingError() -> NetworkError? {
        do throws(NetworkError) {
            try state.withLock { $0.decoding }?.finish()
            return nil
        } catch {
            return error
        }
    }
}
