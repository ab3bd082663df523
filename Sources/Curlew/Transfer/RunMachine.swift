// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// The state of one transfer, as a pure value.
///
/// Its inputs are commands of the holders of the transfer, reports of the engine, and results of the chain of
/// interceptors. Each input returns effects, which the owner carries out. The machine calls no other code and reads no
/// clock.
///
/// A transfer *folds* when the engine starts its first attempt without waiting for the chain. The chain then runs only
/// if the engine reports a head or an end that the chain must see. A chain that may run code of the user runs from the
/// start, beside the attempt.
struct RunMachine<Attempt: Identifiable & Sendable, Response: Sendable, Waiter: Identifiable & Sendable>: Sendable
where Attempt.ID == UInt64, Waiter.ID == UInt64 {
    enum Phase: Sendable {
        /// Not started. The attempt is the planned first one; nil when the chain sends the first attempt.
        case idle(Attempt?)
        /// The first attempt runs without the chain.
        case folded(Attempt)
        /// The chain runs.
        case runningChain
        /// The body of a response arrives: the chain's response, or the attempt's own response if nil.
        case responded(Attempt, Response?)
        case finished(Finish)
    }

    enum Finish: Sendable {
        /// With the end of an attempt. The response is that of the chain; nil stands for the attempt's own result.
        case attempt(Attempt, Response?)
        /// With a response that needs no attempt.
        case made(Response)
        case failed(NetworkError)
        /// By a cancellation before the start, or between the end of the attempt and the run of the chain that had to
        /// see it.
        case cancelled
    }

    /// The use of the body, which the first caller decides.
    enum Claim: Sendable { case none, value, stream }

    private struct AttemptWaiter: Sendable {
        let attempt: UInt64
        let waiter: Waiter
        let endsWithHead: Bool
    }

    private(set) var phase: Phase
    private(set) var claim = Claim.none
    /// The main attempt: the planned one, then the last one that the chain sent, then the one that delivers the
    /// response.
    private(set) var latest: Attempt?
    private var hasLatestEnded = false
    /// The other attempts that have not ended; an interceptor may send several requests at a time.
    private var others: [Attempt] = []
    /// Whether the chain's first `send` takes an attempt that was started before the chain.
    private(set) var hasFirst = false
    /// Whether the chain runs from the start although there is a planned first attempt.
    private let startsChain: Bool
    /// The number of attempts that were sent.
    private(set) var attempts = 0
    /// The number that the latest attempt has reserved.
    private var lastOrdinal = 0
    private(set) var hasStarted = false
    /// Whether a refused transfer must still report its end, which its first start does.
    private var isEndDue = false
    private(set) var isPaused = false
    private(set) var isCancelled = false
    private(set) var isExpired = false
    private(set) var isDetached = false
    private(set) var priority: Int
    private let plannedPriority: Int
    private var waiters = SmallList<Waiter>()
    private var readers = SmallList<Waiter>()
    /// Whether several readers may read the body, from a file.
    private var hasFile = false
    private var fileReaders = 0
    private var attemptWaiters: [AttemptWaiter] = []

    /// Creates the machine of a transfer that has not started.
    ///
    /// - Parameters:
    ///   - attempt: The planned first attempt; nil when the chain sends the first attempt.
    ///   - startsChain: Whether the chain runs from the start although there is a planned attempt.
    init(_ attempt: Attempt?, startsChain: Bool, priority: Int) {
        phase = .idle(attempt)
        latest = attempt
        self.startsChain = startsChain
        self.priority = priority
        plannedPriority = priority
    }

    /// Creates the machine of a transfer that was refused.
    init(refusedBy error: NetworkError, priority: Int) {
        phase = .finished(.failed(error))
        isEndDue = true
        startsChain = false
        self.priority = priority
        plannedPriority = priority
    }

    /// Creates the machine of a transfer whose chain must see what an attempt has received.
    init(continuing attempt: Attempt, priority: Int) {
        phase = .runningChain
        latest = attempt
        hasFirst = true
        attempts = 1
        hasStarted = true
        startsChain = false
        self.priority = priority
        plannedPriority = priority
    }

    /// Whether the reader of the stream can have the response, or the error of a transfer without one.
    var hasResponse: Bool {
        switch phase {
        case .idle, .folded, .runningChain: false
        case .responded, .finished: true
        }
    }

    /// The error of a transfer that was refused.
    var refusal: NetworkError? { if case .finished(.failed(let error)) = phase, !hasStarted { error } else { nil } }

    var isFinished: Bool { if case .finished = phase { true } else { false } }

    var finish: Finish? { if case .finished(let finish) = phase { finish } else { nil } }

    // MARK: Claims

    /// Claims the body for the tasks that await the value; returns false when a stream has it.
    mutating func claimValue() -> Bool {
        if claim == .none { claim = .value }
        return claim == .value
    }

    /// Claims the body for a stream; returns false when the body has a claim.
    mutating func claimStream() -> Bool {
        guard claim == .none else { return false }
        claim = .stream
        return true
    }

    /// Starts a transfer without a planned attempt, whose chain the caller then runs; returns false for others.
    mutating func beginChain() -> Bool {
        guard case .idle(nil) = phase else { return false }
        phase = .runningChain
        hasStarted = true
        return true
    }

    /// Claims the bodies of all attempts for a file, which any number of readers may read.
    mutating func claimFile() {
        claim = .stream
        hasFile = true
    }

    mutating func addFileReader() { fileReaders += 1 }

    mutating func removeFileReader() { fileReaders -= 1 }

    /// Reserves the number of the next attempt, before it is sent.
    mutating func reserveOrdinal() -> Int {
        lastOrdinal = max(lastOrdinal, attempts) + 1
        return lastOrdinal
    }

    /// Releases the number of an attempt that could not be made.
    mutating func releaseOrdinal(_ ordinal: Int) { if ordinal == lastOrdinal { lastOrdinal -= 1 } }

    /// Whether the transfer was cancelled before its start.
    var isUnused: Bool { if case .finished(.cancelled) = phase { !hasStarted } else { false } }

    /// Returns whether the chain's `send` takes the attempt that was started before the chain; false at every later
    /// call.
    mutating func takeFirst() -> Bool {
        defer { hasFirst = false }
        return hasFirst
    }

    /// Replaces the response, whose body a reader has taken or no reader will take, and returns the old one.
    mutating func replaceResponse(_ replaced: (Response) -> Response) -> Response? {
        switch phase {
        case .responded(let attempt, let response?):
            phase = .responded(attempt, replaced(response))
            return response
        case .finished(.attempt(let attempt, let response?)):
            phase = .finished(.attempt(attempt, replaced(response)))
            return response
        case .finished(.made(let response)):
            phase = .finished(.made(replaced(response)))
            return response
        default: return nil
        }
    }

    // MARK: The plan

    /// Whether there is a planned first attempt that was not started.
    var isPlanned: Bool { if case .idle(.some) = phase { true } else { false } }

    /// Replaces the planned first attempt of a transfer that was not started; returns false for others.
    ///
    /// - Parameter attempt: The new attempt; nil when the chain sends the first attempt.
    mutating func replan(_ attempt: Attempt?) -> Bool {
        guard isPlanned else { return false }
        phase = .idle(attempt)
        latest = attempt
        return true
    }

    // MARK: Inputs

    mutating func on(_ input: Input) -> Effects {
        var effects = Effects()
        switch input {
        case .start(let detaches):
            if detaches { isDetached = true }
            start(&effects)
        case .pause:
            isPaused = true
            changeAll(.pause, &effects)
        case .resume:
            isPaused = false
            changeAll(.resume, &effects)
        case .prioritise(let priority):
            self.priority = priority
            changeAll(.prioritise, &effects)
        case .cancel: cancel(&effects)
        // A paused transfer without holders can never be resumed.
        case .drop: if !isDetached || isPaused { cancel(&effects) }
        case .awaitFinish(let waiter):
            if case .finished = phase { effects.resumed.append(waiter) } else { waiters.append(waiter) }
            start(&effects)
        case .awaitResponse(let waiter): readers.append(waiter)
        case .awaitHead(let id, let waiter):
            attemptWaiters.append(AttemptWaiter(attempt: id, waiter: waiter, endsWithHead: true))
        case .awaitEnd(let id, let waiter):
            attemptWaiters.append(AttemptWaiter(attempt: id, waiter: waiter, endsWithHead: false))
        case .leave(let id): leave(id, &effects)
        case .read:
            changeAll(.stream, &effects)
            // A step that waits for the end of a collected body must not keep the reader waiting.
            resumeAttemptWaiters(&effects) { !$0.endsWithHead }
            start(&effects)
        case .head(let id, let isFinal):
            resumeAttemptWaiters(&effects) { $0.attempt == id && $0.endsWithHead }
            head(of: id, isFinal, &effects)
        case .end(let id, let isFinal):
            resumeAttemptWaiters(&effects) { $0.attempt == id }
            if latest?.id == id { hasLatestEnded = true } else { others.removeAll { $0.id == id } }
            end(of: id, isFinal, &effects)
        case .update: resumeReaders(&effects)
        case .sent(let attempt): sent(attempt, &effects)
        case .respond(let response, let attempt, let hasEnded): respond(response, attempt, hasEnded, &effects)
        case .fail(let error): if case .runningChain = phase { finish(.failed(error), &effects) }
        case .expire:
            guard case .runningChain = phase else { break }
            isExpired = true
            effects.cancelsChain = true
        }
        return effects
    }

    private mutating func start(_ effects: inout Effects) {
        guard case .idle(let planned) = phase else {
            if isEndDue { effects.finishes = true }
            return isEndDue = false
        }
        hasStarted = true
        if let planned {
            attempts = 1
            change(planned, initialChanges, &effects)
            effects.start = planned
        }
        if let planned, !startsChain {
            phase = .folded(planned)
        } else {
            phase = .runningChain
            hasFirst = planned != nil
            effects.runsChain = true
        }
    }

    /// The changes that a new attempt needs.
    private var initialChanges: Changes {
        var changes: Changes = []
        if isPaused { changes.insert(.pause) }
        if claim == .stream { changes.insert(.stream) }
        if priority != plannedPriority { changes.insert(.prioritise) }
        return changes
    }

    private func change(_ attempt: Attempt?, _ changes: Changes, _ effects: inout Effects) {
        if case .finished = phase { return }
        guard let attempt, !changes.isEmpty else { return }
        effects.changes = (attempt, changes.union(effects.changes?.what ?? []))
    }

    private func changeAll(_ changes: Changes, _ effects: inout Effects) {
        change(latest, changes, &effects)
        if effects.changes != nil { effects.others = others }
    }

    private mutating func cancel(_ effects: inout Effects) {
        switch phase {
        case .finished: return
        case .idle: finish(.cancelled, &effects)
        case .folded(let attempt), .responded(let attempt, _): effects.cancel = attempt
        case .runningChain:
            effects.cancel = latest
            effects.cancelsChain = true
        }
        effects.others = others
        isCancelled = true
    }

    private mutating func leave(_ id: UInt64, _ effects: inout Effects) {
        var left: Waiter?
        if hasFile {
            readers.removeAll { $0.id == id }.forEach { left = $0 }
            if let left { return effects.withdrawn = left }
        }
        // The end of the transfer resumes its reader.
        if readers.contains(where: { $0.id == id }) { return cancel(&effects) }
        waiters.removeAll { $0.id == id }.forEach { left = $0 }
        if let left {
            if !waiters.isEmpty || isDetached || fileReaders > 0 { return effects.withdrawn = left }
            // No other task waits or reads: cancel the transfer, and wait until it has ended before returning.
            waiters.append(left)
            cancel(&effects)
        }
    }

    private mutating func head(of id: UInt64, _ isFinal: Bool, _ effects: inout Effects) {
        guard case .folded(let attempt) = phase, attempt.id == id else { return }
        if !isFinal { return runChain(&effects) }
        guard claim == .stream else { return }
        phase = .responded(attempt, nil)
        resumeReaders(&effects)
    }

    private mutating func end(of id: UInt64, _ isFinal: Bool, _ effects: inout Effects) {
        switch phase {
        case .folded(let attempt) where attempt.id == id:
            if isFinal { return finish(.attempt(attempt, nil), &effects) }
            isCancelled ? finish(.cancelled, &effects) : runChain(&effects)
        case .responded(let attempt, let response) where attempt.id == id:
            finish(.attempt(attempt, response), &effects)
        default: break
        }
    }

    /// Runs the chain, whose first `send` takes the attempt.
    private mutating func runChain(_ effects: inout Effects) {
        // A cancelled attempt ends soon, and its end finishes the transfer.
        if isCancelled { return }
        phase = .runningChain
        hasFirst = true
        effects.runsChain = true
    }

    private mutating func sent(_ attempt: Attempt, _ effects: inout Effects) {
        attempts += 1
        effects.start = attempt
        effects.changes = initialChanges.isEmpty ? nil : (attempt, initialChanges)
        switch phase {
        case .idle, .folded, .finished: return
        case .runningChain: setLatest(attempt)
        case .responded: others.append(attempt)
        }
        if isCancelled { effects.cancel = attempt }
    }

    /// Calls a function with each attempt that may still run.
    func forEachAttempt(_ body: (Attempt) -> Void) {
        if let latest { body(latest) }
        others.forEach(body)
    }

    private mutating func setLatest(_ attempt: Attempt) {
        if latest?.id == attempt.id { return }
        others.removeAll { $0.id == attempt.id }
        if let latest, !hasLatestEnded { others.append(latest) }
        latest = attempt
        hasLatestEnded = false
    }

    private mutating func respond(
        _ response: Response, _ attempt: Attempt?, _ hasEnded: Bool, _ effects: inout Effects
    ) {
        guard case .runningChain = phase else { return }
        guard let attempt else { return finish(.made(response), &effects) }
        setLatest(attempt)
        if hasEnded { return finish(.attempt(attempt, response), &effects) }
        phase = .responded(attempt, response)
        if claim == .stream { change(attempt, .stream, &effects) }
        if isCancelled { effects.cancel = attempt }
        resumeReaders(&effects)
    }

    private mutating func finish(_ finish: Finish, _ effects: inout Effects) {
        phase = .finished(finish)
        others = []
        effects.finishes = true
        if !waiters.isEmpty { effects.resumed.append(contentsOf: waiters.removeAll()) }
        resumeReaders(&effects)
    }

    private mutating func resumeReaders(_ effects: inout Effects) {
        if !readers.isEmpty { effects.resumed.append(contentsOf: readers.removeAll()) }
    }

    private mutating func resumeAttemptWaiters(_ effects: inout Effects, where matches: (AttemptWaiter) -> Bool) {
        if attemptWaiters.isEmpty { return }
        for each in attemptWaiters where matches(each) { effects.resumed.append(each.waiter) }
        attemptWaiters.removeAll(where: matches)
    }
}
