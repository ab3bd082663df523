// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import FoundationEssentials
internal import CurlewSupport

extension DownloadProcess {
    // MARK: The queue

    mutating func enterQueue() async throws {
        guard let queue = plan.options.queue else { return }
        let isIn = Lock(false)
        download.isQueued = true
        defer {
            download.isQueued = false
            hasSlot = isIn.withLock { $0 }
        }
        _ = try await context.wait(atMost: nil, by: .continuous) { [run = context.run] in
            if (try? await queue.enter(run)) != nil { isIn.withLock { $0 = true } }
        }
        if context.isClosed, !isIn.withLock({ $0 }) {
            throw NetworkError(EngineFailure(.closed, phase: .preparing), request: request)
        }
    }

    mutating func leaveQueue() {
        if hasSlot { plan.options.queue?.leave() }
        hasSlot = false
    }

    /// Waits while the transfer is paused, without a connection and without a slot in the queue.
    mutating func waitWhilePaused() async throws {
        guard context.run.isPaused else { return }
        leaveQueue()
        _ = try await context.wait(atMost: nil, by: .continuous) { [run = context.run] in
            _ = await run.waitWhilePaused()
        }
        try await enterQueue()
    }

    // MARK: After a failure

    /// Returns the timeout error if the total time limit caused the cancellation, and the given error otherwise.
    func overdue(_ error: NetworkError) -> NetworkError {
        guard error.kind == .cancelled, context.run.isOverdue else { return error }
        return .overdue(request, after: context.run.session.totalTimeout(of: request))
    }

    /// Waits, according to the retry policy, before the rest is requested.
    ///
    /// - Throws: The given error, when the download must not be retried.
    mutating func retry(after error: NetworkError) async throws {
        if Task.isCancelled || context.isClosed { throw error }
        if error.kind == .cancelled, download.clearDropped() { return try await waitWhilePaused() }
        try? await part?.flush()
        guard mayRetry(after: error), let part else { throw error }
        // Only new bytes count: bytes that were received again are not progress.
        if highestStored - storedAtLastFailure >= Self.gain { schedule.recordProgress() }
        storedAtLastFailure = highestStored
        let retry = context.run.session.retry
        let time = stopwatch.now
        let step = schedule.step(after: error, of: request, at: time, chance: retry.chance())
        let wait: Duration
        switch retry.withdraw(step, request, policy) {
        case .retry(let time): wait = time
        case .stop(nil) where schedule.failures <= policy.limit: throw error
        case .stop(let reason):
            throw (reason.map { error.adding(hint: $0) } ?? error).with(attempts: context.attempts)
        }
        context.announce(.waits(wait, after: error))
        let limit = schedule.left(with: wait, at: time)
        guard try await retry.pause(for: wait, after: error, of: request, policy, atMost: limit, context) else {
            throw error
        }
        if context.isClosed {
            retry.refund(request, policy)
            throw error
        }
        // Without a validator the rest may be of a changed resource, so start at the first byte.
        if part.note == nil { try await restart("the server gave no strong validator") }
    }

    private func mayRetry(after error: NetworkError) -> Bool {
        guard let part, part.stored > 0 || isReceiving else { return false }
        if error.kind == .checksumMismatch || error.kind == .contentChanged { return false }
        if part.note == nil, plan.options.failsWhenChanged { return false }
        // Before a response, the session's retry policy has retried the request already.
        return isReceiving || context.run.session.retryPolicy(of: request) == nil
    }

    /// Cleans up after a failure: keeps a part file that can be resumed and adds its token to the error.
    mutating func failed(_ error: NetworkError) async -> NetworkError {
        await stopFetcher()
        let isDiscarded = download.isDiscarded
        if isDiscarded, part == nil, let place = plan.token?.part ?? plan.destination.part(of: source) {
            await PartialDownload.remove(place, of: source)
        }
        guard var part else { return error }
        defer { self.part = part }
        let isSpoilt = error.kind == .checksumMismatch || isDiscarded
        if !isSpoilt, let token = await part.token() { return error.with(resumeToken: token) }
        await part.remove(evenIfOfOthers: isDiscarded)
        return error
    }

    // MARK: The end

    mutating func place(_ head: ResponseHead) async throws -> DownloadedFile {
        guard var part, let path else {
            throw NetworkError(.internal, phase: .saving, "The download ended without a part file.", request: request)
        }
        if let total = part.total, total != part.stored {
            throw NetworkError(
                .invalidResponse, phase: .receiving,
                "The file has \(part.stored) bytes, but the server announced \(total).",
                request: request, response: head)
        }
        for (checksum, who) in [
            (plan.checksum ?? plan.token?.checksum, "the caller expects"),
            (stated, "the Repr-Digest field states"),
        ] {
            guard let checksum else { continue }
            let found = try request.computed(part.digest(checksum.algorithm), as: checksum.algorithm)
            if found != checksum { throw mismatch(checksum, found, who) }
        }
        defer { self.part = part }
        let name = try await part.place(at: path, plan.overwrite, before: plan.observer)
        let algorithm = plan.checksum?.algorithm ?? plan.options.digest ?? stated?.algorithm
        return DownloadedFile(
            path: name, bytes: part.stored, response: head, checksum: algorithm.flatMap { part.digest($0) },
            resumedFrom: resumedFrom)
    }

    func mismatch(_ wanted: Checksum, _ found: Checksum, _ who: String) -> NetworkError {
        .mismatch(wanted, found, who, request)
    }

    /// Converts any error to a `NetworkError`.
    func networkError(_ error: any Error) -> NetworkError {
        switch error {
        case let error as NetworkError: return error
        case let failure as DiskFailure where failure.errno == DiskFailure.cancelled:
            return .cancelled(context.attempts == 0 ? .preparing : .receiving, request)
        case let failure as DiskFailure: return NetworkError(failure, request: request)
        case is CancellationError: return .cancelled(context.attempts == 0 ? .preparing : .receiving, request)
        default:
            return NetworkError(
                .interceptorFailed, phase: .receiving, "The download threw \(type(of: error)).", cause: error,
                request: request)
        }
    }
}
