// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import FoundationEssentials

extension SessionCore {
    /// Runs a request and collects its body in the calling task, without a transfer if possible.
    ///
    /// Most requests end with a plain response to the first attempt and have no observer; these need only an engine
    /// run. Every other request becomes a transfer, which takes over the run.
    ///
    /// Variables that are alive during the wait take memory for every request in flight. Therefore the steps before and
    /// after the wait, and the rare cases, are separate functions, whose memory exists only while they run.
    func collect(_ request: Request) async throws(NetworkError) -> (Data, ResponseHead) {
        let engine = started(request)
        if let engine, let outcome = await engine.finished(orLed: true), isFinalResponse(outcome, to: request) {
            if recorder == nil { return response(of: outcome, to: request) }
            return await recordedResponse(of: engine, to: request)
        }
        return try await collectTransfer(request, continuing: engine)
    }

    /// Starts the engine run of a request, or returns nil when the request needs a transfer.
    @inline(never)
    private func started(_ request: Request) -> EngineTransfer? {
        guard !Task.isCancelled, canRunDirectly(request), let engine = directRun(of: request) else { return nil }
        engine.startPrepared()
        return engine
    }

    /// Whether the request has no interceptors but retries, which the session's policy applies only after a response.
    ///
    /// An observer of the session must receive only one end for each transfer, so with observers retries surround the
    /// request from the start.
    @inline(__always)
    private func canRunDirectly(_ request: Request) -> Bool {
        if hasInterceptors(request) { return false }
        if !(request.options.retry ?? configuration.retry).isOn { return true }
        return request.options.retry == nil && !configuration.retry.addsIdempotencyKey && sink == nil
    }

    /// Whether the outcome is a plain response that ends the request.
    @inline(never)
    private func isFinalResponse(_ outcome: EngineTransfer.Outcome, to request: Request) -> Bool {
        guard outcome.isPlain else { return false }
        guard configuration.retry.isOn else { return true }
        guard !mayRepeat(request, after: outcome) else { return false }
        retry.recordSuccess(at: request.origin)
        return true
    }

    @inline(never)
    private func response(of outcome: EngineTransfer.Outcome, to request: Request) -> (Data, ResponseHead) {
        let head = outcome.head.map { ResponseHead($0, url: request.url) } ?? ResponseHead(status: .ok)
        return (Data(taking: outcome.body), head)
    }

    /// Returns the response after its end is recorded; reads the outcome from the run, so that this function's frame
    /// does not hold it.
    @inline(never)
    private func recordedResponse(of engine: EngineTransfer, to request: Request) async -> (Data, ResponseHead) {
        await recorder?.waitUntilRecorded()
        guard let outcome = engine.outcome else { preconditionFailure("a transfer that has ended has an outcome") }
        return response(of: outcome, to: request)
    }

    @inline(never)
    private func collectTransfer(
        _ request: Request, continuing engine: EngineTransfer?
    ) async throws(NetworkError) -> (Data, ResponseHead) {
        // A cancelled task has stopped waiting before the end.
        if let engine { _ = await engine.endingOrLed() }
        let attempt = engine.map { Attempt(request, $0, policy: policy(for: request)) }
        let run = attempt.map { TransferRun(continuing: $0, on: self) } ?? TransferRun(request, on: self)
        do throws(NetworkError) {
            let response = try await run.collect()
            await recorder?.waitUntilRecorded()
            return (response.value, response.head)
        } catch {
            await recorder?.waitUntilRecorded()
            throw error
        }
    }

    /// Creates the run of a request; nil when the request is invalid, which a transfer reports, or when its body must
    /// be kept for another attempt.
    private func directRun(of request: Request) -> EngineTransfer? {
        if request.body.needsOwnDescriptor { return nil }
        let position = AttemptPosition(id: EngineTransfer.nextID(), ordinal: 1, offset: 0, continues: false)
        return try? run(of: request, at: position, isMeasured: false)
    }
}

extension EngineTransfer.Outcome {
    /// Whether the outcome is a response that needs no redirect and no decoding.
    fileprivate var isPlain: Bool {
        guard failure == nil, let head else { return false }
        return !head.isEncoded && !head.isRedirect
    }
}
