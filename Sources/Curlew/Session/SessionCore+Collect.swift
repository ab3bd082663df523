// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import FoundationEssentials

extension SessionCore {
    /// Runs a request and collects its body, in the calling task alone.
    ///
    /// Most requests end with a plain response to what was asked, and nobody but the caller ever hears of them: for those
    /// there is no more than the run itself. Everything else is a transfer, which takes the run over.
    ///
    /// What is alive while it waits is memory of every request in flight: the steps before and after stand apart, and what
    /// is rare in functions that have their own memory when they are called.
    func collect(_ request: Request) async throws(NetworkError) -> (Data, ResponseHead) {
        let engine = started(request)
        if let engine, let outcome = await engine.finished(orLed: true), isAnswer(outcome, to: request) {
            if recorder == nil { return answer(of: outcome, to: request) }
            return await recordedAnswer(of: engine, to: request)
        }
        return try await collectTransfer(request, continuing: engine)
    }

    /// The started run of a request that is all there may be to it; nil when a transfer has to see to it.
    @inline(never)
    private func started(_ request: Request) -> EngineTransfer? {
        guard !Task.isCancelled, startsDirectly(request), let engine = directRun(of: request) else { return nil }
        engine.startPrepared()
        return engine
    }

    /// Whether nothing has to see the request before it is sent: nothing surrounds it but retries, which the session's
    /// policy may want after it.
    ///
    /// Who observes the session is to hear of one end only, so then retries surround it from the start.
    @inline(__always)
    private func startsDirectly(_ request: Request) -> Bool {
        if hasInterceptors(request) { return false }
        if !(request.options.retry ?? configuration.retry).isOn { return true }
        return request.options.retry == nil && !configuration.retry.addsIdempotencyKey && sink == nil
    }

    /// Whether a response is plain, and the end.
    @inline(never)
    private func isAnswer(_ outcome: EngineTransfer.Outcome, to request: Request) -> Bool {
        guard outcome.isPlain else { return false }
        guard configuration.retry.isOn else { return true }
        guard !mayRepeat(request, after: outcome) else { return false }
        retry.noteSuccess(at: request.origin)
        return true
    }

    @inline(never)
    private func answer(of outcome: EngineTransfer.Outcome, to request: Request) -> (Data, ResponseHead) {
        let head = outcome.head.map { ResponseHead($0, url: request.urlText) } ?? ResponseHead(status: .ok)
        return (Data(taking: outcome.body), head)
    }

    /// The answer once the end is recorded; the outcome is the run's, so that no request in flight has room for it here.
    @inline(never)
    private func recordedAnswer(of engine: EngineTransfer, to request: Request) async -> (Data, ResponseHead) {
        await recorder?.settled()
        guard let outcome = engine.outcome else { preconditionFailure("a transfer that has ended has an outcome") }
        return answer(of: outcome, to: request)
    }

    @inline(never)
    private func collectTransfer(
        _ request: Request, continuing engine: EngineTransfer?
    ) async throws(NetworkError) -> (Data, ResponseHead) {
        // A cancelled task has waited no longer.
        if let engine { _ = await engine.endingOrLed() }
        let attempt = engine.map { Attempt(request, $0, policy: policy(for: request)) }
        let run = attempt.map { TransferRun(continuing: $0, on: self) } ?? TransferRun(request, on: self)
        do throws(NetworkError) {
            let response = try await run.collect()
            await recorder?.settled()
            return (response.value, response.head)
        } catch {
            await recorder?.settled()
            throw error
        }
    }

    /// The run of a request that is all there may be to it; nil when there can be none, which a transfer can tell, or when
    /// the body has to be kept for another one.
    private func directRun(of request: Request) -> EngineTransfer? {
        if request.body.mustBeKept { return nil }
        let place = AttemptPlace(id: EngineTransfer.nextID(), ordinal: 1, offset: 0, continues: false)
        return try? run(of: request, at: place, isMeasured: false)
    }
}

extension EngineTransfer.Outcome {
    /// Whether it is a response to what was asked, to be taken as it came.
    fileprivate var isPlain: Bool {
        guard failure == nil, let head else { return false }
        return !head.isEncoded && !head.isRedirect
    }
}
