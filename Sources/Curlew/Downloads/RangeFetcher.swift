// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import FoundationEssentials
internal import CurlewSupport

/// Workers that fetch chunks of a download from its end, while the main download proceeds from its front.
///
/// Each chunk is a transfer of its own, so the interceptors and limits of requests apply to it. A worker cannot make
/// the download fail: a worker that cannot continue stops, and other connections fetch the missing bytes.
final class RangeFetcher: Sendable {
    private struct State {
        var plan: SegmentPlan
        var tasks: [Task<Void, Never>] = []
        var transfers: [Int: Transfer<Data>] = [:]
        var isStopped = false
        /// Whether `plan.storedRanges` has changed since `takeChangedRanges()` was called.
        var hasChangedRanges = false
    }

    private let state: Lock<State>
    private let download: DownloadRun
    private let request: Request
    private let context: Interception.Context
    private let stopwatch: RetrySchedule.Stopwatch
    private var run: TransferRun { context.run }
    private let file: PartialFile
    private let validator: ResumeToken.Validator
    private let policy: RetryPolicy
    /// Sent when the plan has changed in a way that the main download may wait for.
    let signal = Signal()

    init(
        _ plan: SegmentPlan, into file: PartialFile, _ validator: ResumeToken.Validator, _ request: Request,
        _ download: DownloadRun, _ context: Interception.Context, _ policy: RetryPolicy,
        _ stopwatch: RetrySchedule.Stopwatch
    ) {
        state = Lock(State(plan: plan))
        (self.file, self.validator, self.request, self.download) = (file, validator, request, download)
        (self.context, self.policy, self.stopwatch) = (context, policy, stopwatch)
    }

    /// Starts a number of workers.
    func begin(_ count: Int) {
        state.withLock { state in
            state.tasks += (0..<count).map { worker in Task { await self.work(worker) } }
        }
    }

    /// Cancels all workers, and waits until they have stopped writing.
    func stop() async {
        let tasks = state.withLock { $0.tasks }
        for task in tasks { task.cancel() }
        for task in tasks { await task.value }
    }

    /// Whether a failure that another attempt cannot avoid has stopped all workers.
    var isStopped: Bool { state.withLock { $0.isStopped } }

    // MARK: For the main download

    var next: SegmentPlan.Next { state.withLock { $0.plan.next } }

    /// The number of stored bytes behind the front.
    var storedBehindFront: Int64 { state.withLock { $0.plan.storedBehindFront } }

    /// The stored ranges behind the front.
    var storedRanges: [Range<Int64>] { state.withLock { $0.plan.storedRanges } }

    /// Returns the stored ranges behind the front; nil when they have not changed since the last call.
    func takeChangedRanges() -> [Range<Int64>]? {
        state.withLock { state in
            defer { state.hasChangedRanges = false }
            return state.hasChangedRanges ? state.plan.storedRanges : nil
        }
    }

    /// Advances the front by up to `count` bytes, as far as no worker has stored or is fetching them.
    ///
    /// - Returns: The number of bytes that the main download must write.
    func take(_ count: Int) -> Int {
        state.withLock { state in
            let count = min(Int64(count), max(state.plan.border - state.plan.front, 0))
            state.plan.advance(to: state.plan.front + count)
            return Int(count)
        }
    }

    func advance(to place: Int64) { state.withLock { $0.plan.advance(to: place) } }

    func pauseChanged() { for transfer in state.withLock({ Array($0.transfers.values) }) { matchPause(of: transfer) } }

    /// Pauses or resumes a worker's transfer like the download, and repeats that if the download changes meanwhile.
    private func matchPause(of transfer: Transfer<Data>) {
        var isPaused: Bool
        repeat {
            isPaused = run.isPaused
            if isPaused { transfer.pause() } else { transfer.resume() }
        } while isPaused != run.isPaused
    }

    /// Cancels the transfers of all workers; their chunks are requested again later.
    func cancelTransfers() { for transfer in state.withLock({ Array($0.transfers.values) }) { transfer.cancel() } }

    // MARK: Workers

    private func work(_ worker: Int) async {
        var schedule = RetrySchedule(policy)
        while !Task.isCancelled, await run.waitWhilePaused() {
            guard let piece = state.withLock({ $0.isStopped ? nil : $0.plan.claim(by: worker) }) else { break }
            let outcome = await fetch(piece, worker)
            // The transfer is released without the lock, because its release may run code of the user.
            let transfer = state.withLock { state in
                state.plan.release(worker)
                state.hasChangedRanges = true
                return state.transfers.removeValue(forKey: worker)
            }
            withExtendedLifetime(transfer) {}
            signal.send()
            switch outcome {
            case .done: schedule.recordProgress()
            case .useless: return
            case .failed(let error):
                // A transfer that was dropped because of a pause does not count as a failure.
                if run.isPaused || error.isCancellation && !Task.isCancelled { continue }
                guard await waitForRetry(after: error, &schedule) else { return }
            }
        }
    }

    /// Waits before a chunk is requested again; returns false when the worker must stop.
    ///
    /// If another attempt cannot avoid this failure, other workers would fail as well, so stop them too.
    private func waitForRetry(after error: NetworkError, _ schedule: inout RetrySchedule) async -> Bool {
        let retry = run.session.retry
        let time = stopwatch.now
        let step = schedule.step(after: error, of: request, at: time, chance: retry.chance())
        guard case .retry(let wait) = retry.withdraw(step, request, policy, leaving: RetryBudget.reserve / 2) else {
            // Other reasons, such as a refused connection or an empty budget, concern this worker only.
            if error.repetition == .never, error.kind != .unacceptableStatus { state.withLock { $0.isStopped = true } }
            return false
        }
        let limit = schedule.left(with: wait, at: time)
        let hasWaited = try? await retry.pause(for: wait, after: error, of: request, policy, atMost: limit, context)
        guard hasWaited == true else { return false }
        if !context.isClosed { return true }
        retry.refund(request, policy)
        return false
    }

    private enum Outcome {
        case done
        /// The server does not serve this worker.
        case useless
        case failed(NetworkError)
    }

    private func fetch(_ piece: Range<Int64>, _ worker: Int) async -> Outcome {
        var asked = request
        asked.fields[.acceptEncoding] = "identity"
        asked.options.decompression = .off
        // The worker retries by itself; retries of the session would multiply with its own.
        asked.options.retry = .never
        asked.fields[.range] = "bytes=\(piece.lowerBound)-\(piece.upperBound - 1)"
        asked.fields[.ifRange] = validator.field
        run.session.retry.deposit(request, policy)
        let transfer = Transfer(run.session.transfer(asked)) { response throws(NetworkError) in response.value }
        state.withLock { $0.transfers[worker] = transfer }
        matchPause(of: transfer)
        let sink = FileSink(file, at: piece.lowerBound) { [weak self] end in self?.wrote(worker, upTo: end) }
        do {
            let response = try await transfer.opened()
            let total = state.withLock { $0.plan.total }
            let question = RangeRequest(offset: piece.lowerBound, validator: validator, total: total)
            let isEncoded = response.head.fields.contains(.contentEncoding)
            let schedule = RetrySchedule(policy)
            if let error = schedule.refusal(by: response.head, of: asked, after: run.elapsed), error.retryAfter != nil {
                transfer.cancel()
                return .failed(error)
            }
            // A server that sends the whole file, or refuses, does not accept further connections: stop this worker.
            guard case .rest(let last, _) = question.answer(response.head, isEncoded: isEncoded),
                last < piece.upperBound
            else { return .useless }
            guard state.withLock({ $0.plan.answered(worker) }) else {
                transfer.cancel()
                return .done
            }
            var position = piece.lowerBound
            for try await chunk in response.bytes {
                position += Int64(chunk.count)
                // Discard bytes beyond the announced range, and stop.
                guard position <= last + 1 else {
                    try await sink.flush()
                    return .useless
                }
                try await sink.append(chunk.chunk)
                download.received(chunk.count)
                run.notify()
            }
            try await sink.flush()
            return position == piece.upperBound ? .done : .failed(.shortRange(asked, response.head))
        } catch {
            // Wait for pending writes: they must not happen after this worker has ended.
            try? await sink.flush()
            return (error as? NetworkError).map { .failed($0) } ?? .useless
        }
    }

    private func wrote(_ worker: Int, upTo end: Int64) {
        state.withLock { $0.plan.fetched(worker, upTo: end) }
    }
}

extension NetworkError {
    fileprivate static func shortRange(_ request: Request, _ head: ResponseHead) -> NetworkError {
        NetworkError(
            .connectionLost, phase: .receiving, "The server sent only a part of the requested range.", request: request,
            response: head)
    }
}
