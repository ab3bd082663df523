// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import FoundationEssentials

extension SessionCore {
    /// Runs a request and collects its body, in the calling task alone.
    ///
    /// Most requests end with a plain response to what was asked, and nobody but the caller ever hears of them: for those
    /// there is no more than the run itself. Everything else is a transfer, which takes the run over.
    func collect(_ request: Request) async throws(NetworkError) -> (Data, ResponseHead) {
        guard !isIntercepted(request), let engine = directRun(of: request) else {
            return try await collect(TransferRun(request, on: self))
        }
        if Task.isCancelled { throw .cancelled(.preparing, request) }
        engine.startPrepared()
        if let outcome = await engine.endingOrLed(), outcome.failure == nil, let head = outcome.head, !head.isEncoded,
            !head.isRedirect
        {
            return (Data(taking: outcome.body), ResponseHead(head, url: request.urlText))
        }
        let attempt = Attempt(request, engine, policy: policy(for: request))
        return try await collect(TransferRun(continuing: attempt, on: self))
    }

    /// The run of a request that is all there may be to it; nil when there can be none, which a transfer can tell, or when
    /// the body has to be kept for another one.
    private func directRun(of request: Request) -> EngineTransfer? {
        if request.body.mustBeKept { return nil }
        let place = AttemptPlace(id: EngineTransfer.nextID(), ordinal: 1, offset: 0, continues: false)
        return try? run(of: request, at: place, isMeasured: false)
    }

    private func collect(_ run: TransferRun) async throws(NetworkError) -> (Data, ResponseHead) {
        let response = try await run.collect()
        return (response.value, response.head)
    }
}
