// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import FoundationEssentials

extension SessionCore {
    /// Runs a request and collects its body in the calling task.
    ///
    /// A request that folds needs only an attempt, whose end is usually final. Every other end starts the chain late,
    /// which continues with that attempt.
    ///
    /// Variables that are alive during the wait take memory for every request in flight. Therefore the steps before and
    /// after the wait, and the rare cases, are separate functions, whose memory exists only while they run.
    @inline(__always)
    func data(for request: Request) async throws(NetworkError) -> (Data, ResponseHead) {
        guard let attempt = startFolded(request) else { return try await run(request, continuing: nil) }
        await withTaskCancellationHandler {
            _ = await withUnsafeContinuation { attempt.resumeAtAnswer($0, orHead: true) }
        } onCancel: {
            attempt.cancel()
        }
        if let response = plainResponse(of: attempt, to: request) { return response }
        guard let outcome = await attempt.answer(orHead: true), outcome.isFinal else {
            return try await run(request, continuing: attempt)
        }
        return try await response(of: attempt, to: request)
    }

    /// Starts the first attempt of a request without the chain; nil when the chain must run from the start, the request
    /// is invalid, which a transfer reports, or its body must be kept for another attempt.
    @inline(never)
    private func startFolded(_ request: Request) -> EngineTransfer? {
        guard !Task.isCancelled, !request.body.needsOwnDescriptor, let folded = chain(for: request).fold(request)
        else { return nil }
        let position = AttemptPosition(id: EngineTransfer.nextID(), interest: folded.interest)
        let attempt =
            if let adapted = folded.request {
                try? engineTransfer(for: adapted, at: position, isMeasured: false)
            } else {
                try? engineTransfer(for: request, at: position, isMeasured: false)
            }
        attempt?.startPrepared()
        return attempt
    }

    /// Returns a response that needs neither decoding nor a wait for recorders; nil for all other ends.
    @inline(never)
    private func plainResponse(of attempt: EngineTransfer, to request: Request) -> (Data, ResponseHead)? {
        guard recorder == nil, let (head, body) = attempt.takePlainResponse() else { return nil }
        chain(for: request).passed(request)
        return (Data(taking: body), ResponseHead(head, url: request.url))
    }

    /// Returns the response of an attempt whose end is final.
    @inline(never)
    private func response(
        of engine: EngineTransfer, to request: Request
    ) async throws(NetworkError) -> (Data, ResponseHead) {
        await waitForRecorders()
        let attempt = attempt(engine, of: request)
        guard let outcome = engine.outcome else { throw .headless(request) }
        if outcome.failure == nil { chain(for: request).passed(request) }
        let response = try await attempt.collected(outcome)
        return (response.value, response.head)
    }

    /// Runs a request through its chain, from the start or from an attempt whose head or end the chain must see.
    @inline(never)
    private func run(
        _ request: Request, continuing engine: EngineTransfer?
    ) async throws(NetworkError) -> (Data, ResponseHead) {
        let run =
            if let engine {
                TransferRun(request, continuing: attempt(engine, of: request), on: self)
            } else {
                TransferRun(request, on: self)
            }
        if let engine, run.hasEndedBefore {
            _ = await engine.ended()
            return try await response(of: engine, to: request)
        }
        do throws(NetworkError) {
            let response = try await run.executed(continues: engine != nil)
            await waitForRecorders()
            return (response.value, response.head)
        } catch {
            await waitForRecorders()
            throw error
        }
    }

    /// Returns the attempt of an engine's transfer that was started without the chain.
    private func attempt(_ engine: EngineTransfer, of request: Request) -> Attempt {
        let sent = chain(for: request).fold(request)?.request ?? request
        return Attempt(sent, engine, policy: policy(for: sent))
    }
}
