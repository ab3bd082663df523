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
        let chain = chain(for: request)
        guard let (attempt, adapted) = startFolded(request, by: chain) else {
            return try await run(TransferRun(request, by: chain, on: self), continues: false)
        }
        await withTaskCancellationHandler {
            _ = await withUnsafeContinuation { attempt.resumeAtEnd($0, orHead: true) }
        } onCancel: {
            attempt.cancel()
        }
        if let response = plainResponse(of: attempt, to: request, adapted, by: chain) { return response }
        guard let outcome = await attempt.waitForEnd(orHead: true), outcome.isFinal else {
            return try await run(request, by: chain, continuing: attempt, adapted)
        }
        return try await response(of: attempt, to: adapted ?? request, by: chain)
    }

    /// Starts the first attempt of a request without the chain.
    ///
    /// - Returns: The attempt, and the request that it sends if interceptors have changed the request. Nil when the
    ///   task is cancelled, the chain must run from the start, the request is invalid, or its body needs a duplicated
    ///   file descriptor. The caller then creates a `TransferRun`, which reports any error.
    @inline(never)
    private func startFolded(_ request: Request, by chain: Chain) -> (EngineTransfer, Request?)? {
        guard !Task.isCancelled, !request.body.needsOwnDescriptor, let folded = chain.fold(request) else { return nil }
        let position = AttemptPosition(id: EngineTransfer.nextID(), interest: folded.interest)
        let sent = folded.request ?? request
        guard let attempt = try? engineTransfer(for: sent, at: position, isMeasured: false) else { return nil }
        attempt.startPrepared()
        return (attempt, folded.request)
    }

    /// Returns a response that needs neither decoding nor a wait for recorders; nil for all other ends.
    @inline(never)
    private func plainResponse(
        of attempt: EngineTransfer, to request: Request, _ adapted: Request?, by chain: Chain
    ) -> (Data, ResponseHead)? {
        guard recorder == nil, let (head, body) = attempt.takePlainResponse() else { return nil }
        let sent = adapted ?? request
        chain.didBypass(sent, head, isComplete: true)
        return (Data(taking: body), ResponseHead(head, url: sent.url))
    }

    /// Returns the response of an attempt whose end is final.
    @inline(never)
    private func response(
        of engine: EngineTransfer, to request: Request, by chain: Chain
    ) async throws(NetworkError) -> (Data, ResponseHead) {
        await waitForRecorders()
        guard let outcome = engine.outcome else { throw .headless(request) }
        if let head = outcome.head { chain.didBypass(request, head, isComplete: outcome.failure == nil) }
        let response = try await Attempt(request, engine, policy: policy(for: request)).collected(outcome)
        return (response.value, response.head)
    }

    /// Runs the chain of a request from an attempt whose head or end the chain must see.
    @inline(never)
    private func run(
        _ request: Request, by chain: Chain, continuing engine: EngineTransfer, _ adapted: Request?
    ) async throws(NetworkError) -> (Data, ResponseHead) {
        let sent = adapted ?? request
        let attempt = Attempt(sent, engine, policy: policy(for: sent))
        let run = TransferRun(request, by: chain, continuing: attempt, on: self)
        if run.hasEndedBefore {
            _ = await engine.waitForEndUncancelled()
            return try await response(of: engine, to: sent, by: chain)
        }
        return try await self.run(run, continues: true)
    }

    /// Runs a chain, and returns the collected response.
    @inline(never)
    private func run(_ run: TransferRun, continues: Bool) async throws(NetworkError) -> (Data, ResponseHead) {
        do throws(NetworkError) {
            let response = try await run.runForCaller(continues: continues)
            await waitForRecorders()
            return (response.value, response.head)
        } catch {
            await waitForRecorders()
            throw error
        }
    }
}
