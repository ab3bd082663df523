// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine

@testable import Curlew

/// An attempt of a simulated run, with a number as its identity.
struct StubAttempt: Identifiable, Equatable {
    let id: UInt64
}

/// A waiting task of a simulated run.
struct StubWaiter: Identifiable, Equatable {
    let id: UInt64
}

typealias StubMachine = RunMachine<StubAttempt, String, StubWaiter>

/// A run with a simulated engine and a simulated chain, whose next step a generator selects.
struct RunSimulation {
    /// How the transfer starts.
    enum Kind: CaseIterable { case folds, runsChain, foldsBesideChain }

    /// The orders of the holders of a transfer.
    enum Order: CaseIterable { case start, detach, pause, resume, cancel, drop, value, leaveValue, read, stopReading }

    private struct Attempt {
        enum State { case planned, running, headed, ended }
        var state = State.planned
        var isCancelled = false
        var isHeadFinal = true
    }

    private enum Chain {
        case unstarted, calling, waiting(StubAttempt), answering(StubAttempt?), ended
    }

    private(set) var machine: StubMachine
    private var random: SeededChance
    private var attempts: [UInt64: Attempt] = [:]
    private var lastID: UInt64 = 0
    private var chain = Chain.unstarted
    private var isChainCancelled = false
    private var stepWaiter: UInt64?
    private var sends = 0
    /// The waiting tasks that were not resumed.
    private var waiting: Set<UInt64> = []
    private var values: [UInt64] = []
    private var isReading = false
    private(set) var finishes = 0
    private(set) var chainRuns = 0
    /// The rules that the run has broken.
    private(set) var flaws: [String] = []

    init(_ kind: Kind, seed: UInt64) {
        random = SeededChance(seed)
        let planned: StubAttempt? = kind == .runsChain ? nil : StubAttempt(id: 1)
        if planned != nil { attempts[1] = Attempt() }
        lastID = 1
        machine = StubMachine(planned, startsChain: kind == .foldsBesideChain, priority: 0)
    }

    // MARK: Holders

    mutating func order(_ order: Order) {
        switch order {
        case .start: give(.start(detaches: false))
        case .detach: give(.start(detaches: true))
        case .pause: give(.pause)
        case .resume: give(.resume)
        case .cancel: give(.cancel)
        case .drop: give(.drop)
        case .value:
            guard machine.claimValue() else { return }
            give(.start(detaches: false))
            values.append(wait { .awaitFinish($0) })
        case .leaveValue: if let id = values.popLast() { give(.leave(id)) }
        case .read:
            guard machine.claimStream() else { return }
            isReading = true
            give(.read)
            if !machine.hasResponse { _ = wait { .awaitResponse($0) } }
        case .stopReading:
            guard isReading else { return }
            isReading = false
            give(.cancel)
        }
    }

    private mutating func wait(_ input: (StubWaiter) -> StubMachine.Input) -> UInt64 {
        lastID += 1
        let id = lastID
        waiting.insert(id)
        give(input(StubWaiter(id: id)))
        return id
    }

    // MARK: The engine and the chain

    /// Makes up to two random steps.
    mutating func pass() { for _ in 0..<Int.random(in: 0...2, using: &random) where !step() { break } }

    /// Makes one random step of the engine or the chain; false when no step is possible.
    private mutating func step() -> Bool {
        let running = attempts.filter { $0.value.state == .running || $0.value.state == .headed }.keys.sorted()
        var choices = running.map { Optional($0) }
        switch chain {
        case .calling, .answering: choices.append(nil)
        case .unstarted, .waiting, .ended: break
        }
        guard let choice = choices.randomElement(using: &random) else { return false }
        if let choice { engineStep(choice) } else { chainStep() }
        return true
    }

    private mutating func engineStep(_ id: UInt64) {
        guard var attempt = attempts[id] else { return }
        if attempt.isCancelled {
            attempts[id]?.state = .ended
            return give(.end(id, isFinal: true))
        }
        if attempt.state == .running, Bool.random(using: &random) {
            attempt.isHeadFinal = Bool.random(using: &random)
            attempt.state = .headed
            attempts[id] = attempt
            return give(.head(id, isFinal: attempt.isHeadFinal))
        }
        attempts[id]?.state = .ended
        give(.end(id, isFinal: attempt.isHeadFinal && Bool.random(using: &random)))
    }

    private mutating func chainStep() {
        switch chain {
        case .calling:
            if sends > 0, Int.random(in: 0..<4, using: &random) == 0 {
                chain = .ended
                return give(.fail(NetworkError(.internal, phase: .preparing, "simulated")))
            }
            send()
        case .answering(let attempt): respond(attempt)
        case .unstarted, .waiting, .ended: break
        }
    }

    private mutating func send() {
        sends += 1
        let attempt: StubAttempt
        if machine.takeFirst() {
            attempt = machine.latest ?? StubAttempt(id: 0)
        } else if isChainCancelled {
            chain = .ended
            return give(.fail(NetworkError(.cancelled, phase: .preparing, "simulated")))
        } else {
            lastID += 1
            attempt = StubAttempt(id: lastID)
            attempts[attempt.id] = Attempt()
            give(.sent(attempt))
        }
        switch attempts[attempt.id]?.state {
        case .headed, .ended: chain = .answering(attempt)
        case .planned, .running, nil:
            chain = .waiting(attempt)
            stepWaiter = wait { .awaitHead(attempt.id, $0) }
        }
    }

    private mutating func respond(_ attempt: StubAttempt?) {
        // Another attempt, a response by hand, or the response of the attempt.
        switch Int.random(in: 0..<3, using: &random) {
        case 0 where sends < 3: chain = .calling
        case 1:
            chain = .ended
            give(.respond("made", nil, hasEnded: true))
        default:
            chain = .ended
            guard let attempt else { return give(.respond("made", nil, hasEnded: true)) }
            give(.respond("received", attempt, hasEnded: attempts[attempt.id]?.state == .ended))
        }
    }

    // MARK: Effects

    private mutating func give(_ input: StubMachine.Input) {
        var effects = machine.on(input)
        if let attempt = effects.start {
            if attempts[attempt.id]?.state != .planned { flaws.append("an attempt was started twice") }
            attempts[attempt.id]?.state = .running
        }
        if let attempt = effects.cancel { cancel(attempt.id) }
        if effects.runsChain {
            chainRuns += 1
            chain = .calling
            if machine.isCancelled { isChainCancelled = true }
        }
        if effects.cancelsChain { isChainCancelled = true }
        if effects.finishes { finishes += 1 }
        var resumed: [UInt64] = []
        effects.resumed.removeAll().forEach { resumed.append($0.id) }
        if let withdrawn = effects.withdrawn { resumed.append(withdrawn.id) }
        for id in resumed {
            if waiting.remove(id) == nil { flaws.append("waiter \(id) was resumed twice") }
            if case .waiting(let attempt) = chain, id == stepWaiter { chain = .answering(attempt) }
        }
    }

    private mutating func cancel(_ id: UInt64) {
        switch attempts[id]?.state {
        case .planned?: attempts[id]?.state = .ended
        case .running?, .headed?: attempts[id]?.isCancelled = true
        case .ended?, nil: break
        }
    }

    // MARK: The end

    /// Runs everything to its end and checks what must hold then.
    mutating func check() {
        for _ in 0..<200 where !step() { break }
        // A paused or unused transfer ends with its last holder.
        if machine.finish == nil { give(.cancel) }
        for _ in 0..<200 where !step() { break }
        if machine.finish == nil { flaws.append("the run did not finish") }
        if finishes != 1 { flaws.append("the end was reported \(finishes) times") }
        if chainRuns > 1 { flaws.append("the chain ran \(chainRuns) times") }
        if !waiting.isEmpty { flaws.append("\(waiting.count) tasks were not resumed") }
        if case .ended = chain {} else if chainRuns > 0 { flaws.append("the chain did not end") }
    }
}
