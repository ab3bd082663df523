// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport

@testable import CurlewEngine

/// A transport without sockets: it plays a script for each transfer.
///
/// Limits come from the same rules as on the wire, so a test with a `StubClock` can pass them without waiting. The rate
/// is not measured.
final class StubTransport: Transport {
    enum Step: Sendable {
        /// The connection is made.
        case connect
        case informational(Int)
        case head(Int, [(String, String)] = [])
        /// So many bytes of the response's body arrive.
        case body(Int)
        /// So many bytes of the request's body are sent.
        case take(Int)
        /// The peer is silent until the test calls `StubBench.proceed`.
        case stall
        /// The response ends.
        case end
        case fail(EngineFailure.Reason)
    }

    /// The scripts of transfers, and the number of transfers that run at once.
    struct Program: Sendable {
        var scripts: [UInt64: [Step]] = [:]
        var slots = Int.max
    }

    /// A transfer that has not ended, with the rest of its script.
    private final class Play {
        let transfer: EngineTransfer
        var steps: ArraySlice<Step>
        var stage: Deadlines.Stage
        var taken = 0

        init(_ transfer: EngineTransfer, _ steps: [Step], at now: UInt64) {
            self.transfer = transfer
            self.steps = steps[...]
            stage = .queued(since: now)
        }

        var hasSlot: Bool { if case .queued = stage { false } else { true } }

        /// Whether libcurl would be told not to receive.
        var isReceivingPaused: Bool {
            transfer.loopState.isUserPaused || transfer.loopState.isFlowPaused || transfer.loopState.isTurnOver
        }
    }

    private let program: Lock<Program>
    private let deliveries: Deliveries
    private var plays: [Play] = []
    /// The earliest deadline of all transfers.
    private(set) var deadline = Monotonic.never

    init(_ program: Lock<Program>, _ deliveries: Deliveries) {
        self.program = program
        self.deliveries = deliveries
    }

    var isIdle: Bool { plays.isEmpty }
    var allTransfers: [EngineTransfer] {
        plays.filter(\.hasSlot).map(\.transfer) + plays.filter { !$0.hasSlot }.map(\.transfer)
    }

    func beginTurn(now: UInt64) {}
    func socketIsReady(token: UInt64, mask: UInt32) {}
    func resetConnections() {}

    func start(_ transfer: EngineTransfer) {
        guard let watching = transfer.watching else { return }
        transfer.loopState.lastActivity = max(deliveries.now, watching.startedAt)
        transfer.setObservers(own: watching.observer, common: deliveries.observer, isPaused: false)
        transfer.send(.queued)
        transfer.sendPauseEvent()
        let steps = program.withLock { $0.scripts[transfer.id] } ?? [.connect, .head(200), .end]
        plays.append(Play(transfer, steps, at: deliveries.now))
    }

    func adjust(_ transfer: EngineTransfer) {
        transfer.sendPauseEvent()
        guard let play = plays.first(where: { $0.transfer === transfer }) else { return }
        if play.hasSlot {
            let wasPaused = play.isReceivingPaused
            transfer.applyRequests(deliveries)
            // The silence of a pause does not count.
            if wasPaused, !play.isReceivingPaused { transfer.loopState.lastActivity = deliveries.now }
        } else {
            play.stage = .queued(since: transfer.wantsPause ? nil : deliveries.now)
        }
    }

    func remove(_ transfer: EngineTransfer, _ reason: EngineFailure.Reason) {
        let play = plays.first { $0.transfer === transfer }
        end(transfer, EngineFailure(reason, phase: play.map(phase) ?? .queued), isWhole: !transfer.isBodyDiscarded)
    }

    /// Makes the next stall of a transfer end.
    func proceed(_ transfer: EngineTransfer) {
        guard let play = plays.first(where: { $0.transfer === transfer }) else { return }
        if case .stall? = play.steps.first { play.steps.removeFirst() }
    }

    func advance(now: UInt64) {
        _ = admit(now)
        repeat {
            for play in plays { while isRunning(play), take(play, now) {} }
        } while admit(now)
        deliveries.flush(now) { _ in }
        for play in plays {
            let (at, due) = Deadlines.next(facts(about: play), play.transfer.plan.limits, now: now)
            guard now >= at else { continue }
            switch due {
            case .limit(let limit):
                remove(play.transfer, .timedOut(limit, after: play.transfer.plan.limits.length(of: limit)))
            case .queue:
                let report = EngineFailure.QueueReport(
                    host: "stub", active: plays.count(where: \.hasSlot), slots: program.withLock { $0.slots },
                    waiting: 1, connections: 0, connectionLimit: 0, oldestAge: 0)
                remove(play.transfer, .queueTimedOut(report, after: play.transfer.plan.limits.queue ?? 0))
            case .answered, .silent, nil: break
            }
        }
        // A transfer that was admitted into the slot of an ended one needs another turn.
        deadline =
            admit(now)
            ? 0 : plays.map { Deadlines.next(facts(about: $0), $0.transfer.plan.limits, now: now).at }.min() ?? .max
    }

    private func isRunning(_ play: Play) -> Bool { play.hasSlot && plays.contains { $0 === play } }

    /// Gives free slots to waiting transfers; returns whether one of them has started.
    private func admit(_ now: UInt64) -> Bool {
        var hasAdmitted = false
        for play in plays where !play.hasSlot && plays.count(where: \.hasSlot) < program.withLock({ $0.slots }) {
            let transfer = play.transfer
            guard let collects = transfer.tryAdmission() else { continue }
            transfer.sendPauseEvent()
            transfer.loopState.admittedAt = now
            transfer.loopState.launchedAt = now
            transfer.loopState.lastActivity = now
            transfer.loopState.hasSlot = true
            transfer.loopState.deliveries = deliveries
            if collects { transfer.loopState.collected = CollectedBody() }
            play.stage = .connecting(since: now)
            transfer.send(.resolved)
            hasAdmitted = true
        }
        return hasAdmitted
    }

    /// Takes a step of the script; returns false if it has to wait.
    private func take(_ play: Play, _ now: UInt64) -> Bool {
        let transfer = play.transfer
        guard let step = play.steps.first else { return false }
        switch step {
        case .stall: return false
        case .connect:
            play.stage = .connected
            transfer.loopState.lastActivity = now
            transfer.send(.connected(remote: "stub", isReused: false))
        case .take(let count):
            guard !transfer.loopState.isUserPaused, send(count, play) else { return false }
        case .informational(let status): transfer.receiveInformational(head(status, [], transfer), deliveries)
        case .head(let status, let fields):
            if play.isReceivingPaused { return false }
            transfer.loopState.lastActivity = now
            transfer.receiveHead(head(status, fields, transfer), deliveries)
        case .body(let count):
            if play.isReceivingPaused { return false }
            let bytes = [UInt8](repeating: 7, count: count)
            let isReceived = bytes.withUnsafeBytes { transfer.receive($0.baseAddress!, count, deliveries) }
            if !isReceived { end(transfer, failure(of: play), isWhole: false) }
        case .end:
            if play.isReceivingPaused { return false }
            end(transfer, nil, isWhole: true)
        case .fail(let reason): end(transfer, EngineFailure(reason, phase: phase(of: play)), isWhole: false)
        }
        if !play.steps.isEmpty { play.steps.removeFirst() }
        return true
    }

    /// Pulls bytes of the request's body; returns false while the source has none.
    private func send(_ count: Int, _ play: Play) -> Bool {
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while play.taken < count {
            let left = min(count - play.taken, buffer.count)
            let pulled = buffer.withUnsafeMutableBytes { play.transfer.pull(into: $0.baseAddress!, left, deliveries) }
            switch pulled {
            case .bytes(0): play.taken = count
            case .bytes(let sent): play.taken += sent
            case .wait: return false
            case .failed:
                end(play.transfer, failure(of: play), isWhole: false)
                return true
            }
        }
        play.taken = 0
        return true
    }

    private func head(_ status: Int, _ fields: [(String, String)], _ transfer: EngineTransfer) -> RawHead {
        let lines = ["HTTP/1.1 \(status) Stub"] + fields.map { "\($0.0): \($0.1)" } + [""]
        transfer.loopState.check.restart()
        for line in lines { _ = Array("\(line)\r\n".utf8).withUnsafeBytes { transfer.loopState.check.take($0) } }
        let bytes = Array(lines.map { "\($0)\r\n" }.joined().utf8)
        return RawHead(bytes: bytes, status: status, fields: transfer.loopState.check.knownFields)
    }

    private func failure(of play: Play) -> EngineFailure {
        EngineFailure(play.transfer.loopState.abort ?? .responseTruncated, phase: phase(of: play))
    }

    private func phase(of play: Play) -> EngineFailure.Phase {
        switch play.stage {
        case .queued: return .queued
        case .resolving: return .resolving
        case .connecting: return .connecting
        case .connected: break
        }
        if play.transfer.loopState.isHeadComplete { return .receiving }
        return play.transfer.isBodyPulled && play.transfer.loopState.bodySentAt == 0 ? .sending : .waiting
    }

    private func facts(about play: Play) -> Deadlines.Facts {
        let transfer = play.transfer
        var facts = Deadlines.Facts(
            stage: play.stage, startedAt: transfer.startedAt, remainingTotal: transfer.plan.remainingTotal)
        facts.isHeldBack = transfer.isHeldBack
        facts.isUserPaused = transfer.loopState.isUserPaused
        facts.isHeadComplete = transfer.loopState.isHeadComplete
        facts.lastActivity = transfer.loopState.lastActivity
        let isSent = !transfer.isBodyPulled || transfer.loopState.bodySentAt > 0
        if isSent {
            facts.sentAt = max(
                transfer.loopState.launchedAt, transfer.loopState.bodySentAt, transfer.loopState.resumedAt)
        }
        return facts
    }

    private func end(_ transfer: EngineTransfer, _ failure: EngineFailure?, isWhole: Bool) {
        plays.removeAll { $0.transfer === transfer }
        let failure = transfer.isBodyDiscarded ? nil : failure
        transfer.done(failure, RawMetrics(), isWhole: isWhole, deliveries)
    }
}
