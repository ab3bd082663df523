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
        if let engine, let outcome = await engine.finished(orLed: true), outcome.isPlain {
            return answer(of: outcome, to: request)
        }
        return try await collectTransfer(request, continuing: engine)
    }

    /// The started run of a request that is all there may be to it; nil when a transfer has to see to it.
    @inline(never)
    private func started(_ request: Request) -> EngineTransfer? {
        guard !Task.isCancelled, !isIntercepted(request), let engine = directRun(of: request) else { return nil }
        engine.startPrepared()
        return engine
    }

    @inline(never)
    private func answer(of outcome: EngineTransfer.Outcome, to request: Request) -> (Data, ResponseHead) {
        let head = outcome.head.map { ResponseHead($0, url: request.urlText) } ?? ResponseHead(status: .ok)
        return (Data(taking: outcome.body), head)
    }

    @inline(never)
    private func collectTransfer(
        _ request: Request, continuing engine: EngineTransfer?
    ) async throws(NetworkError) -> (Data, ResponseHead) {
        // A cancelled task has waited no longer.
        if let engine { _ = await engine.endingOrLed() }
        let attempt = engine.map { Attempt(request, $0, policy: policy(for: request)) }
        let run = attempt.map { TransferRun(continuing: $0, on: self) } ?? TransferRun(request, on: self)
        let response = try await run.collect()
        return (response.value, response.head)
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
