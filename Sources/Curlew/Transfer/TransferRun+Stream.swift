// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import FoundationEssentials
internal import CurlewSupport

extension TransferRun {
    // MARK: The stream

    /// An element before the body, or the response whose body the reader reads.
    enum Opening {
        case element(TransferElement)
        case response(IncomingResponse)
    }

    /// Claims the body for a stream and starts the transfer.
    ///
    /// - Throws: An error when the body has another reader, or its value is awaited.
    func claimStream(withProgress: Bool) throws(NetworkError) {
        try checkStart()
        if download != nil {
            state.withLock { $0.machine.addFileReader() }
            return on(.start(detaches: false))
        }
        let hasClaim = state.withLock { state in
            guard state.machine.claimStream() else { return false }
            state.wantsProgress = withProgress
            return true
        }
        guard hasClaim else {
            if let error = failureOfTakenBody, error.isCancellation { throw error }
            throw NetworkError(
                invalid: .usage, "The body already has a reader.",
                hint: "A body is read once: by one stream, or by awaiting the value.", request: request,
                phase: .receiving)
        }
        if withProgress { reportProgress() }
        refold()
        on(.read)
    }

    /// Returns the next element before the body, or the response.
    ///
    /// A cancelled task cancels the transfer, unless it is a download, and gets the error of the cancellation.
    func nextOpening() async throws(NetworkError) -> Opening {
        while true {
            let (element, seen) = state.withLock { ($0.takePreview(), $0.notifications) }
            if let element { return .element(element) }
            if let copy = download?.copy { return .response(copy) }
            if takeLateInformation() { continue }
            if let response = try takeResponse() { return .response(response) }
            let id = EngineTransfer.nextID()
            let isComplete = await withTaskCancellationHandler {
                await withUnsafeContinuation { continuation in
                    let waiter = Waiter(continuation, id: id)
                    let isWaiting = state.withLock { state in
                        guard state.notifications == seen, !state.machine.hasResponse else { return false }
                        _ = state.machine.on(.awaitResponse(waiter))
                        return true
                    }
                    if !isWaiting { return continuation.resume(returning: true) }
                    if Task.isCancelled { on(.leave(id)) }
                }
            } onCancel: {
                on(.leave(id))
            }
            if !isComplete { throw .cancelled(.receiving, request) }
        }
    }

    /// Moves the informational heads that arrived before the claim of the stream to `preview`.
    ///
    /// - Returns: Whether `preview` has elements.
    private func takeLateInformation() -> Bool {
        state.withLock { state in
            guard state.machine.hasResponse, let latest = state.machine.latest else { return false }
            state.preview += latest.takeInformation()
            return !state.preview.isEmpty
        }
    }

    /// Returns the response, whose body belongs to the reader from now on; nil before the response.
    private func takeResponse() throws(NetworkError) -> IncomingResponse? {
        let (phase, first) = state.withLock { state in
            defer { if state.machine.hasResponse { _ = state.forgetBody() } }
            return (state.machine.phase, state.first)
        }
        switch phase {
        case .idle, .folded, .runningChain: return nil
        case .responded(_, let response?), .finished(.attempt(_, let response?)), .finished(.made(let response)):
            return response.value
        case .responded(let engine, nil), .finished(.attempt(let engine, nil)):
            if let first, case .head(let raw)? = engine.firstResult { return first.response(raw) }
            throw snapshot.error ?? .headless(request)
        case .finished(.failed(let error)): throw error
        case .finished(.cancelled): throw cancellation
        }
    }

    /// Records that the reader of the stream stops before the end of the body, which cancels the transfer.
    func stopReading() {
        endReading(with: .cancelled(.receiving, request))
        // A download's file may have other readers; do not cancel it.
        if download == nil { cancel() }
    }

    /// Records that a reader has ended, and the error that stopped the reader of the stream before the end of the body.
    func endReading(with error: NetworkError?) {
        state.withLock { state in
            if download != nil { state.machine.removeFileReader() } else if let error { state.readerError = error }
        }
    }
}

// MARK: Reports of the engine

extension TransferRun: TransferSink {
    var isFinished: Bool { state.withLock { $0.machine.isFinished } }

    func receivedHead(of transfer: EngineTransfer, isFinal: Bool) { on(.head(transfer.id, isFinal: isFinal)) }

    func receivedUpdate(of transfer: EngineTransfer) {
        let consequences = state.withLock { state in
            defer { state.notifications += 1 }
            guard state.machine.claim == .stream, state.machine.latest === transfer else {
                return accept(.update, outcome: nil, &state)
            }
            let capacity = max(EngineTransfer.informationalKept - state.preview.count, 0)
            state.preview += transfer.takeInformation().prefix(capacity)
            if state.wantsProgress, let counters = transfer.takeProgressBeforeHead() {
                state.setProgress(counters, of: transfer)
            }
            return accept(.update, outcome: nil, &state)
        }
        carryOut(consequences) { $0.resume() }
    }

    func ended(_ transfer: EngineTransfer, _ outcome: EngineTransfer.Outcome) -> SmallList<Waiter> {
        var resumed = SmallList<Waiter>()
        carryOut(accept(.end(transfer.id, isFinal: outcome.isFinal), outcome: outcome)) { resumed.append($0) }
        return resumed
    }
}

extension TransferRun.State {
    /// Removes and returns the next element before the response.
    fileprivate mutating func takePreview() -> TransferElement? { preview.isEmpty ? nil : preview.removeFirst() }

    /// Replaces the progress among the elements before the response, since only the latest one counts.
    fileprivate mutating func setProgress(_ counters: Counters, of engine: EngineTransfer) {
        meter.record(now: counters.at, totalBytes: counters.sent + counters.received)
        preview.removeAll { if case .progress = $0 { true } else { false } }
        preview.append(
            .progress(TransferProgress(counters, rate: meter.bytesPerSecond, offset: engine.plan.offset)))
    }
}

extension EngineTransfer {
    /// Removes and returns the informational heads that have arrived.
    fileprivate func takeInformation() -> [TransferElement] {
        takeInformational().map { .informational(ResponseHead($0, url: plan.url)) }
    }
}
