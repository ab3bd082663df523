// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import FoundationEssentials
internal import CurlewSupport

/// One run of a request.
///
/// A `RunMachine` behind a lock decides what happens; this class carries out its effects.
///
/// The engine reports to the run, which is the sink of its attempts. Locks are taken in this order: that of the run,
/// that of an attempt, those of the loop. The run calls observers, resumes tasks and starts attempts without its lock.
final class TransferRun: Sendable {
    typealias Machine = RunMachine<EngineTransfer, ChainResponse, Waiter>

    /// The response of the chain, as an object, because the values of the machine are copied often.
    final class ChainResponse: Sendable {
        let value: IncomingResponse

        init(_ value: IncomingResponse) { self.value = value }

        /// Returns the response without its body, which may hold the transfer.
        func withoutBody() -> ChainResponse { ChainResponse(value.withoutBody()) }
    }

    struct State {
        var machine: Machine
        /// The attempt of a transfer that folds, until the chain takes it.
        var first: Attempt?
        /// The revision of the chain, and the time of the loop, at which that attempt was planned; the time is 0 if the
        /// plan cannot become too old.
        var planned: (revision: UInt64, at: UInt64) = (0, 0)
        /// The outcome of the attempt that finished the transfer.
        var outcome: EngineTransfer.Outcome?
        /// The task that runs the chain; nil if the caller's task runs it.
        var chainTask: Task<Void, Never>?
        /// The priority of the task that started the transfer.
        var startPriority: TaskPriority?
        /// Keeps the loop from being idle while the chain runs.
        var hold: LoopHold?
        var startedAt: UInt64 = 0
        /// The largest `elapsed` that a progress has reported.
        var reportedElapsed = Duration.zero
        /// The elements before the response for the reader of the stream, and the number of notifications to waiting
        /// readers.
        var preview: [TransferElement] = []
        var notifications = 0
        /// The rate of the bytes before the response.
        var meter = RateMeter()
        /// Whether the reader of the stream wants progress elements, and whether attempts report their progress.
        var wantsProgress = false
        var reportsProgress = false
        /// The error that stopped the reader of the stream before the end of the body.
        var readerError: NetworkError?
        var signal: Signal?
        var distributor: EventDistributor?
        /// The request of the latest attempt that the chain has started; nil before such an attempt.
        var latestRequest: Request?
        /// Whether the next attempt follows a redirect.
        var followsRedirect = false
        /// The certificate errors of hosts that require https; no later attempt may override them.
        var certificateErrors: [String: NetworkError] = [:]
        /// The names of fields that redirects to other origins have removed.
        var withheld: [HeaderName] = []
        /// Whether no holder is left to read a response.
        var isDropped = false
        /// Whether the transfer has waited for a retry.
        var isRetrying = false
        /// Whether the observers of the session know the end already.
        var isEndReported = false
    }

    let id: UInt64
    let request: Request
    let session: SessionCore
    let chain: Chain
    /// The download that combines the bodies of all attempts; nil for a transfer that is not a download.
    let download: DownloadRun?
    let state: Lock<State>

    /// Creates the run of a request; its first attempt is planned now if the request folds.
    ///
    /// - Parameter chain: The chain of the request, if it is known.
    init(_ request: Request, by chain: Chain? = nil, on session: SessionCore, for download: DownloadRun? = nil) {
        id = EngineTransfer.nextID()
        self.session = session
        self.download = download
        let chain = chain ?? session.chain(for: request)
        self.chain = chain
        var request = request
        var plan: (attempt: Attempt, startsChain: Bool)?
        var refusal: NetworkError?
        let planned = Self.planStamp(of: chain, on: session)
        do throws(NetworkError) {
            if request.body.needsOwnDescriptor { request.body = try request.bodyWithOwnDescriptor() }
            if download == nil { plan = try Self.firstAttempt(of: request, by: chain, on: session, id) }
        } catch {
            refusal = error
        }
        self.request = request
        let priority = request.options.priority.rawValue
        let machine =
            refusal.map { Machine(refusedBy: $0, priority: priority) }
            ?? Machine(plan?.attempt.engine, startsChain: plan?.startsChain ?? false, priority: priority)
        state = Lock(State(machine: machine, first: plan?.attempt, planned: planned))
        // The download takes the bodies, so they must not be collected.
        if download != nil { state.withLock { $0.machine.claimFile() } }
    }

    /// Creates the run of a request that cannot be sent.
    init(_ request: Request, refusedBy error: NetworkError, on session: SessionCore) {
        id = EngineTransfer.nextID()
        self.session = session
        self.request = request
        chain = session.chain(for: request)
        download = nil
        state = Lock(State(machine: Machine(refusedBy: error, priority: request.options.priority.rawValue)))
    }

    /// Creates a run for an attempt that was started without it, and whose head or end the chain must see.
    init(_ request: Request, by chain: Chain, continuing attempt: Attempt, on session: SessionCore) {
        id = attempt.engine.plan.transfer
        self.session = session
        self.request = request
        self.chain = chain
        download = nil
        var state = State(
            machine: Machine(continuing: attempt.engine, priority: request.options.priority.rawValue), first: attempt)
        _ = state.machine.claimValue()
        let startedAt = attempt.engine.snapshot.counters.startedAt
        state.startedAt = startedAt == 0 ? session.loop.clock.now() : startedAt
        state.hold = attempt.engine.takeHold()
        self.state = Lock(state)
        if !attempt.engine.attach(self) { self.state.withLock { $0.isEndReported = true } }
    }

    /// Whether the attempt had ended before this run became its sink, and observers got that end as the end of the
    /// transfer.
    var hasEndedBefore: Bool { state.withLock { $0.isEndReported && !$0.machine.isFinished } }

    // MARK: Inputs of the machine

    /// Gives an input to the machine and carries out its effects.
    func on(_ input: Machine.Input) { carryOut(accept(input)) { $0.resume() } }

    /// The effects of an input, with the signal and the distributor that they use.
    struct Consequences {
        var effects: Machine.Effects
        let signal: Signal?
        let distributor: EventDistributor?
    }

    func accept(_ input: Machine.Input, outcome: EngineTransfer.Outcome? = nil) -> Consequences {
        state.withLock { accept(input, outcome: outcome, &$0) }
    }

    func accept(
        _ input: Machine.Input, outcome: EngineTransfer.Outcome?, _ state: inout State
    ) -> Consequences {
        let effects = state.machine.on(input)
        if let (engine, changes) = effects.changes {
            state.apply(changes, to: engine)
            for other in effects.others { state.apply(changes, to: other) }
        }
        state.noteStart(by: session.loop.clock)
        // Attach the sink under the lock: otherwise another thread could cancel the attempt first, and its end would be
        // lost.
        if let engine = effects.start {
            engine.attach(self)
            if state.reportsProgress { engine.reportProgress() }
        }
        if effects.finishes { state.outcome = outcome }
        return Consequences(effects: effects, signal: state.signal, distributor: state.distributor)
    }

    /// Gives the response of the chain to the machine, together with the end of its attempt if that has happened.
    ///
    /// - Returns: False when the attempt is about to end; then the caller waits for the end and tries again.
    func respond(_ response: IncomingResponse, receivedBy attempt: Attempt) -> Bool {
        let response = ChainResponse(response)
        let consequences = state.withLock { state -> Consequences? in
            switch attempt.engine.endStatus {
            case .isEnding: nil
            case .isKnown:
                accept(.respond(response, attempt.engine, hasEnded: true), outcome: attempt.engine.outcome, &state)
            case .isPending: accept(.respond(response, attempt.engine, hasEnded: false), outcome: nil, &state)
            }
        }
        guard let consequences else { return false }
        carryOut(consequences) { $0.resume() }
        if state.withLock({ $0.isDropped }) { forgetBody() }
        return true
    }

    /// Carries out effects without a lock: starts and cancellations, then events, then resumptions.
    func carryOut(_ consequences: consuming Consequences, resume: (Waiter) -> Void) {
        let effects = consequences.effects
        if let engine = effects.start {
            if let distributor = consequences.distributor { engine.watch(distributor) }
            engine.startPrepared()
        }
        if let engine = effects.cancel {
            engine.cancel()
            for other in effects.others { other.cancel() }
        }
        if effects.runsChain { runChain() }
        if effects.cancelsChain { state.withLock { $0.chainTask }?.cancel() }
        if effects.finishes { reportFinish() }
        consequences.distributor?.updateActivity(of: self)
        effects.resumed.forEach(resume)
        effects.withdrawn?.resume(false)
        consequences.signal?.send()
    }

    private func reportFinish() {
        let (hold, attemptHold, isEndReported, isUnused, isDropped, isRetrying, bypassed) = state.withLock { state in
            defer {
                state.hold = nil
                state.chainTask = nil
                state.isEndReported = true
            }
            var bypassed: (Request, RawHead, isComplete: Bool)?
            if case .attempt(_, nil) = state.machine.finish, let outcome = state.outcome,
                let first = state.first, let head = outcome.head
            {
                bypassed = (first.request, head, outcome.failure == nil)
            }
            return (
                state.hold, state.machine.latest?.takeHold(), state.isEndReported, state.machine.isUnused,
                state.isDropped, state.isRetrying, bypassed
            )
        }
        if let (request, head, isComplete) = bypassed { chain.didBypass(request, head, isComplete: isComplete) }
        if !isEndReported { emitEnd(toSession: !isUnused) }
        if isRetrying { session.relay.forget(retrying: self) }
        if isDropped { forgetBody() }
        withExtendedLifetime((hold, attemptHold)) {}
    }

    // MARK: Control

    /// Starts the transfer, unless it was started.
    func start() {
        refold()
        on(.start(detaches: false))
    }

    /// Starts the transfer and lets it run to its end even without further references to it.
    func detach() {
        refold()
        on(.start(detaches: true))
    }

    func cancel() { on(.cancel) }

    /// Called when the last holder is released: cancels the transfer, unless it is detached and not paused.
    func drop() {
        let (consequences, response) = state.withLock { state in
            state.isDropped = true
            let consequences = state.machine.isFinished ? nil : accept(.drop, outcome: nil, &state)
            return (consequences, state.forgetBody())
        }
        if let consequences { carryOut(consequences) { $0.resume() } }
        withExtendedLifetime(response) {}
    }

    /// Releases the response's body, because no holder is left to read it.
    ///
    /// The body's sources may hold the transfer, which holds the response.
    private func forgetBody() {
        // The body is released without the lock, because its release may run code of the user.
        let response = state.withLock { $0.forgetBody() }
        withExtendedLifetime(response) {}
    }

    func pause() {
        on(.pause)
        session.observedRelay?.pauseChanged(of: self)
        download?.pauseChanged(self)
    }

    func resume() {
        on(.resume)
        session.observedRelay?.pauseChanged(of: self)
        download?.pauseChanged(self)
    }

    var priority: Int {
        get { state.withLock { $0.machine.priority } }
        set {
            on(.prioritise(newValue))
            download?.priorityChanged(self)
        }
    }

    /// Whether the total timeout has stopped the chain, and no holder has cancelled the transfer.
    var isOverdue: Bool { state.withLock { $0.machine.isExpired && !$0.machine.isCancelled } }

    var isPaused: Bool { state.withLock { $0.machine.isPaused } }

    /// Waits until the transfer is not paused any more; false when the task was cancelled first.
    func waitWhilePaused() async -> Bool {
        while true {
            let seen = signal.count
            if !isPaused { return true }
            guard await signal.wait(after: seen) else { return false }
        }
    }

    /// Cancels the attempts but not the transfer, whose chain can send another attempt.
    func cancelAttempts() { for engine in state.withLock({ $0.engines }) { engine.cancel() } }

    // MARK: Changes

    /// Makes the attempts report their progress to the run.
    func reportProgress() {
        let engines = state.withLock { state -> [EngineTransfer] in
            defer { state.reportsProgress = true }
            return state.reportsProgress || !state.machine.hasStarted ? [] : state.engines
        }
        for engine in engines { engine.reportProgress() }
    }

    /// Wakes the tasks that wait for a change: a new element or response.
    func notify() {
        let consequences = state.withLock { state in
            state.notifications += 1
            return accept(.update, outcome: nil, &state)
        }
        carryOut(consequences) { $0.resume() }
    }

    var signal: Signal {
        state.withLock { state in
            if let signal = state.signal { return signal }
            let signal = Signal()
            state.signal = signal
            return signal
        }
    }
}

extension TransferRun.State {
    /// The engine's transfers that may still run.
    var engines: [EngineTransfer] {
        var engines: [EngineTransfer] = []
        machine.forEachAttempt { engines.append($0) }
        return engines
    }

    /// Replaces the response by one without a body, and returns the old one.
    mutating func forgetBody() -> TransferRun.ChainResponse? { machine.replaceResponse { $0.withoutBody() } }

    /// Removes and returns the attempt that was started before the chain, at the first call of the chain.
    mutating func takeFirst() -> Attempt? {
        guard machine.takeFirst() else { return nil }
        defer { first = nil }
        return first
    }

    /// Starts a transfer without a planned attempt, whose chain the caller then runs; returns false for others.
    mutating func beginChain(by clock: LoopClock) -> Bool {
        defer { noteStart(by: clock) }
        return machine.beginChain()
    }

    /// Records the time of the start, and the priority of the task that starts the transfer.
    fileprivate mutating func noteStart(by clock: LoopClock) {
        guard startedAt == 0, machine.hasStarted else { return }
        startedAt = clock.now()
        startPriority = Task.currentPriority
    }

    fileprivate func apply(_ changes: TransferRun.Machine.Changes, to engine: EngineTransfer) {
        if changes.contains(.pause) { engine.pause() }
        if changes.contains(.resume) { engine.resume() }
        if changes.contains(.prioritise) { engine.priority = machine.priority }
        if changes.contains(.stream) { engine.claimStream() }
    }
}

extension TransferRun: CustomReflectable {
    /// A mirror with the request only, since the other properties belong to other threads.
    var customMirror: Mirror { Mirror(self, children: ["request": request.description]) }
}

extension Request {
    /// Returns the body with a duplicated file descriptor.
    ///
    /// The body may be sent again after the caller has closed its descriptor, whose number may then be another file's.
    fileprivate func bodyWithOwnDescriptor() throws(NetworkError) -> RequestBody {
        do throws(SourceFailure) { return try body.withOwnDescriptor() } catch { throw .unusableBody(error, self) }
    }
}

extension NetworkError {
    static func cancelled(_ phase: Phase, _ request: Request) -> NetworkError {
        NetworkError(.cancelled, phase: phase, "The transfer was cancelled.", request: request)
    }

    static func unusableBody(_ failure: SourceFailure, _ request: Request) -> NetworkError {
        NetworkError(
            invalid: .body, "The request body is unusable: \(failure).", cause: failure, request: request)
    }

    static func secondReader(of request: Request) -> NetworkError {
        NetworkError(
            invalid: .usage, "Two tasks read the same body at the same time.",
            hint: "A body has one reader; that task can forward the elements to others.", request: request,
            phase: .receiving)
    }
}
