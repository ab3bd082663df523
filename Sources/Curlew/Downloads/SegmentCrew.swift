// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import FoundationEssentials

/// Those who fetch pieces of a download from its end while the download itself comes from its front.
///
/// Each piece is a transfer of its own, so whatever stands around requests stands around it, too. Nobody of the crew can make
/// the download fail: who cannot go on leaves, and what is missing is for the others.
final class SegmentCrew: Sendable {
    private struct State {
        var plan: SegmentPlan
        var tasks: [Task<Void, Never>] = []
        var transfers: [Int: Transfer<Data>] = [:]
        /// Whether something is there that was not taken note of.
        var hasNews = false
    }

    private let state: Lock<State>
    private let download: DownloadRun
    private let request: Request
    private let run: TransferRun
    private let core: SessionCore
    private let file: PartFile
    private let validator: EntityValidator
    private let policy: RetryPolicy
    /// Rings when something has changed that the one in front may wait for.
    let bell = Bell()

    init(
        _ plan: SegmentPlan, into file: PartFile, _ validator: EntityValidator, _ request: Request,
        _ download: DownloadRun,
        _ run: TransferRun, _ core: SessionCore, _ policy: RetryPolicy
    ) {
        state = Lock(State(plan: plan))
        (self.file, self.validator, self.request, self.download) = (file, validator, request, download)
        (self.run, self.core, self.policy) = (run, core, policy)
    }

    /// Sends so many to work.
    func begin(_ count: Int) {
        state.withLock { state in
            state.tasks += (0..<count).map { worker in Task { await self.work(worker) } }
        }
    }

    /// Ends all work, and waits until nobody writes any more.
    func stop() async {
        let tasks = state.withLock { $0.tasks }
        for task in tasks { task.cancel() }
        for task in tasks { await task.value }
    }

    // MARK: Seen from the one in front

    var next: SegmentPlan.Next { state.withLock { $0.plan.next } }

    /// How many bytes are there behind the front.
    var behind: Int64 { state.withLock { $0.plan.behind } }

    /// What is there behind the front.
    var done: [Range<Int64>] { state.withLock { $0.plan.done } }

    /// What is there behind the front, where that has changed since it was asked for last.
    func news() -> [Range<Int64>]? {
        state.withLock { state in
            defer { state.hasNews = false }
            return state.hasNews ? state.plan.done : nil
        }
    }

    /// How many of so many bytes the one in front takes: those that nobody else has or fetches.
    ///
    /// It is there then.
    func take(_ count: Int) -> Int {
        state.withLock { state in
            let count = min(Int64(count), max(state.plan.border - state.plan.front, 0))
            state.plan.moved(to: state.plan.front + count)
            return Int(count)
        }
    }

    func moved(to place: Int64) { state.withLock { $0.plan.moved(to: place) } }

    func pauseChanged() { for transfer in state.withLock({ Array($0.transfers.values) }) { follow(transfer) } }

    /// Pauses whoever works for a paused download; until what was done is what is wanted by then.
    private func follow(_ transfer: Transfer<Data>) {
        var isPaused: Bool
        repeat {
            isPaused = run.isPaused
            if isPaused { transfer.pause() } else { transfer.resume() }
        } while isPaused != run.isPaused
    }

    /// Gives up all connections; the pieces are asked for again.
    func drop() { for transfer in state.withLock({ Array($0.transfers.values) }) { transfer.cancel() } }

    // MARK: Work

    private func work(_ worker: Int) async {
        var failures = 0
        while !Task.isCancelled, await run.waitWhilePaused() {
            guard let piece = state.withLock({ $0.plan.claim(by: worker) }) else { break }
            let isDone = await fetch(piece, worker)
            state.withLock { state in
                state.plan.release(worker)
                state.transfers[worker] = nil
                state.hasNews = true
            }
            bell.ring()
            switch isDone {
            case .done: failures = 0
            case .useless: return
            case .failed:
                // What was dropped by a pause is no failure.
                if run.isPaused { continue }
                failures += 1
                guard failures <= policy.limit else { return }
                let wait = policy.backOff.wait(after: failures, chance: Double.random(in: 0..<1))
                do { try await run.pause(for: wait, by: .continuous) } catch { return }
                if core.closing.rings > 0 { return }
            }
        }
    }

    private enum Outcome { case done, failed, useless }

    private func fetch(_ piece: Range<Int64>, _ worker: Int) async -> Outcome {
        var asked = request
        asked.fields[.acceptEncoding] = "identity"
        asked.options.decompression = .off
        asked.fields[.range] = "bytes=\(piece.lowerBound)-\(piece.upperBound - 1)"
        asked.fields[.ifRange] = validator.field
        let transfer = Transfer(core.transfer(asked)) { response throws(NetworkError) in response.value }
        state.withLock { $0.transfers[worker] = transfer }
        follow(transfer)
        let sink = FileSink(file, at: piece.lowerBound) { [weak self] end in self?.wrote(worker, upTo: end) }
        do {
            let response = try await transfer.opened()
            let total = state.withLock { $0.plan.total }
            let question = RangeQuestion(offset: piece.lowerBound, validator: validator, total: total)
            let isEncoded = response.head.fields.contains(.contentEncoding)
            // Whoever sends the whole, or refuses, is left with those connections that it has.
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
                // More than was announced is nothing to be trusted.
                guard position <= last + 1 else {
                    try await sink.flush()
                    return .useless
                }
                try await sink.append(chunk.chunk)
                download.received(chunk.count)
                run.ring()
            }
            try await sink.flush()
            return position == piece.upperBound ? .done : .failed
        } catch {
            // Who waits for the disk, waits in vain: what it was given comes after the end.
            try? await sink.flush()
            return error is DiskFailure ? .useless : .failed
        }
    }

    private func wrote(_ worker: Int, upTo end: Int64) {
        state.withLock { $0.plan.fetched(worker, upTo: end) }
    }
}
