// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// The one reader of a transfer's body: claims it at the first step and cancels the transfer when it is dropped early.
final class TransferReader: Sendable {
    private enum Stage { case fresh, reading(EngineTransfer), ended(NetworkError?) }

    private struct State {
        var stage = Stage.fresh
        /// What the body goes through before it is handed on, known with the head.
        var decoding: BodyDecoding?
        var isAsked = false
        var meter = RateMeter()
    }

    private let token: TransferToken
    private let withProgress: Bool
    private let state = Lock(State())

    init(_ token: TransferToken, withProgress: Bool) {
        self.token = token
        self.withProgress = withProgress
    }

    deinit { if case .reading(let engine) = state.withLock({ $0.stage }) { engine.cancel() } }

    /// The next element, nil at the end; the same error again after an error.
    func next() async throws(NetworkError) -> TransferElement? {
        let isTaken = state.withLock { state in
            defer { state.isAsked = true }
            return state.isAsked
        }
        if isTaken {
            throw NetworkError(
                .invalidRequest, phase: .receiving, "Two tasks read one body at the same time.",
                hint: "A body has one reader; hand its elements on from there.", request: token.request)
        }
        defer { state.withLock { $0.isAsked = false } }
        return try await nextAlone()
    }

    private func nextAlone() async throws(NetworkError) -> TransferElement? {
        let engine: EngineTransfer
        let (stage, decoding) = state.withLock { ($0.stage, $0.decoding) }
        switch stage {
        case .reading(let running): engine = running
        case .ended(let error):
            if let error { throw error }
            return nil
        case .fresh:
            do throws(NetworkError) {
                engine = try token.claimStream()
            } catch {
                state.withLock { $0.stage = .ended(error) }
                throw error
            }
            state.withLock { $0.stage = .reading(engine) }
        }
        guard let decoding else { return try element(await engine.next(withProgress: withProgress), engine) }
        while true {
            if let chunk = try await decoded(by: decoding, engine) { return .bytes(chunk) }
            let step = await engine.next(withProgress: withProgress)
            guard case .bytes(let chunk) = step else { return try element(step, engine) }
            decoding.feed(ByteChunk(chunk))
        }
    }

    /// The next decoded bytes, nil when more have to come over the wire first.
    private func decoded(by decoding: BodyDecoding, _ engine: EngineTransfer) async throws(NetworkError) -> ByteChunk? {
        var steps = 0
        while true {
            do throws(NetworkError) {
                switch try decoding.step() {
                case .bytes(let chunk): return chunk
                case .starved: return nil
                case .working: steps += 1
                }
            } catch {
                engine.cancel()
                decoding.abandon()
                state.withLock { $0.stage = .ended(error) }
                throw error
            }
            if steps.isMultiple(of: 16) { await Task.yield() }
        }
    }

    private func element(
        _ step: EngineTransfer.Step, _ engine: EngineTransfer
    ) throws(NetworkError) -> TransferElement? {
        switch step {
        case .informational(let raw): return .informational(token.head(raw))
        case .head(let raw):
            guard let decoding = token.decoding(of: raw, engine) else { return .head(token.head(raw)) }
            state.withLock { $0.decoding = decoding }
            return .head(decoding.head)
        case .bytes(let chunk): return .bytes(ByteChunk(chunk))
        case .progress(let counters):
            return state.withLock { state in
                state.meter.record(now: counters.at, totalBytes: counters.sent + counters.received)
                return .progress(TransferProgress(counters, rate: state.meter.bytesPerSecond))
            }
        case .trailers(let lines): return .trailers(HeaderFields(trailers: lines))
        case .end(let outcome):
            let error = outcome.failure.map { token.error($0, outcome) } ?? encodingError()
            state.withLock { $0.stage = .ended(error) }
            if let error { throw error }
            return nil
        }
    }
    /// Why a body that came whole is not whole after all.
    private func encodingError() -> NetworkError? {
        do throws(NetworkError) {
            try state.withLock { $0.decoding }?.finish()
            return nil
        } catch {
            return error
        }
    }
}
