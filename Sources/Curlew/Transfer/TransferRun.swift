// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// TransferRun: what the parts of one transfer share. A transfer that nothing intercepts is *direct*: one attempt, made
// with it, which everybody watches. When something intercepts it, when it is redirected or when its session keeps it, a
// *drive* passes the request through the chain in a task of its own, and attempts come and go.

internal import CurlewEngine
internal import FoundationEssentials
internal import CurlewSupport

final class TransferRun: Sendable {
    /// Who reads the body.
    ///
    /// Decided once, by the first who asks.
    enum Claim { case none, value, stream }

    struct State {
        var claim = Claim.none
        /// Whether the reader of the stream reads the direct attempt, and so finds out itself that it is redirected.
        var isReadDirectly = false
        /// Why the reader of the stream has ended before the body.
        var readerError: NetworkError?
        /// Whether the reader of the stream wants to hear of progress.
        var wantsProgress = false
        var startedAt: UInt64 = 0
        /// The latest time that a progress has told.
        var toldElapsed = Duration.zero
        var attempts = 0
        /// What is on the wire, or was there last.
        var current: EngineTransfer?
        /// What a drive begins with.
        var primed: Attempt?
        var drive: Drive?
        /// Whether the loop counts the transfer as one that goes on.
        var isHeld = false
        var isDetached = false
        var isCancelled = false
        var isPaused = false
        var priority: Int
        /// How many tasks await the value.
        var interested = 0
        var signal: Signal?
        var witness: TransferWitness?
        /// The request of the latest attempt that is not the first.
        var latest: Request?
        /// What the attempts of a chain know of its end.
        var course: TransferCourse?
        /// The next attempt follows a redirect.
        var isLedElsewhere = false
        /// What redirects to other origins have left behind.
        var withheld: [HeaderName] = []
        /// How a transfer of several attempts ended.
        var end: End?
    }

    let id: UInt64
    let request: Request
    let host: any TransferHost
    /// The attempt of a direct transfer, or why there can be none; nil when the chain makes the attempts.
    let first: Result<Attempt, NetworkError>?
    /// Who makes one thing of all attempts; nil when the last of them brings the result.
    let keeper: (any TransferKeeper)?
    let state: Lock<State>

    init(_ request: Request, on host: any TransferHost, for keeper: (any TransferKeeper)? = nil) {
        id = EngineTransfer.nextID()
        self.host = host
        self.keeper = keeper
        var state = State(priority: request.options.priority.rawValue)
        // Nobody is to collect what the keeper takes.
        if keeper != nil { state.claim = .stream }
        var request = request
        do throws(NetworkError) {
            request.body = try request.keptBody()
            if host.isIntercepted(request) {
                first = nil
            } else {
                let place = AttemptPlace(id: id, ordinal: 1, offset: 0, continues: false)
                let attempt = try host.attempt(request, at: place)
                state.current = attempt.engine
                first = .success(attempt)
            }
        } catch {
            first = .failure(error)
        }
        self.request = request
        self.state = Lock(state)
    }

    /// What can never be sent.
    init(_ request: Request, refusedBy error: NetworkError, on host: any TransferHost) {
        id = EngineTransfer.nextID()
        self.host = host
        self.request = request
        keeper = nil
        first = .failure(error)
        state = Lock(State(priority: request.options.priority.rawValue))
    }

    /// Takes over a request that is on the wire already, or was there.
    init(continuing attempt: Attempt, on host: any TransferHost) {
        id = attempt.engine.plan.transfer
        self.host = host
        request = attempt.request
        first = .success(attempt)
        keeper = nil
        var state = State(priority: request.options.priority.rawValue)
        state.current = attempt.engine
        let startedAt = attempt.engine.snapshot.counters.startedAt
        state.startedAt = startedAt == 0 ? Monotonic.now() : startedAt
        state.attempts = 1
        self.state = Lock(state)
    }

    var direct: Attempt? { try? first?.get() }

    // MARK: Orders

    /// Starts what was not started.
    func begin() {
        guard let first else { return _ = drive() }
        guard case .success(let attempt) = first else { return _ = refused() }
        noteStart()
        attempt.engine.startPrepared()
    }

    /// Why there never can be an attempt, which is the end as soon as somebody wants one.
    func refused() -> NetworkError? {
        guard case .failure(let error) = first else { return nil }
        finish(error)
        return error
    }

    private func noteStart() {
        state.withLock { state in
            guard state.startedAt == 0 else { return }
            state.startedAt = Monotonic.now()
            state.attempts = 1
        }
    }

    /// Starts it and lets it run to its end even when nobody holds it any more.
    func detach() {
        if refused() != nil { return }
        state.withLock { $0.isDetached = true }
        beginWatched()
    }

    /// Starts it for somebody who does not read it: there has to be a drive when a redirect comes.
    func beginWatched() {
        begin()
        guard let attempt = direct, !isOverDirectly, host.followsRedirects(of: request) else { return }
        driveUnlessRead(from: attempt)
    }

    func cancel() {
        let (drive, current) = state.withLock { state in
            state.isCancelled = true
            return (state.drive, state.current)
        }
        drive?.cancel()
        current?.cancel()
        giveUp()
    }

    // Under the lock, so that orders reach the wire in their order also while the attempt changes.

    func pause() {
        state.withLock { state in
            state.isPaused = true
            state.current?.pause()
        }
        keeper?.pauseChanged(self)
    }

    func resume() {
        state.withLock { state in
            state.isPaused = false
            state.current?.resume()
        }
        guard let keeper else { return }
        keeper.pauseChanged(self)
        notify()
    }

    var priority: Int {
        get { state.withLock { $0.priority } }
        set {
            state.withLock { state in
                state.priority = newValue
                state.current?.priority = newValue
            }
            keeper?.priorityChanged(self)
        }
    }

    // MARK: What is known

    var isDetached: Bool { state.withLock { $0.isDetached } }

    var isPaused: Bool { state.withLock { $0.isPaused } }

    var isStreamed: Bool { state.withLock { $0.claim == .stream } }

    var attempts: Int { state.withLock { $0.attempts } }

    /// The time since the start; zero before it.
    var elapsed: Duration { .nanoseconds(Int64(clamping: elapsedNanoseconds)) }

    var elapsedNanoseconds: UInt64 {
        let start = state.withLock { $0.startedAt }
        return start == 0 ? 0 : Monotonic.now() &- start
    }

    /// Where an interceptor stands when it fails.
    var phase: NetworkError.Phase { attempts == 0 ? .preparing : .validating }

    func context(for request: Request) -> InterceptorContext {
        InterceptorContext(self, total: host.totalTimeout(of: request))
    }

    /// Whether what came is a redirect that may be followed, or something after which the request is sent again, so that
    /// it is not the end.
    ///
    /// What becomes of its body does not matter, unless somebody wanted the end.
    func isProvisional(_ outcome: EngineTransfer.Outcome) -> Bool {
        if outcome.failure?.isOrdered == true { return false }
        if let head = outcome.head, head.isRedirect, host.followsRedirects(of: request) { return true }
        return host.mayRepeat(request, after: outcome)
    }

    /// Whether the direct attempt was all there is to the transfer.
    var isOverDirectly: Bool {
        guard let outcome = direct?.engine.outcome else { return false }
        return !isProvisional(outcome)
    }

    func isProvisional(_ head: ResponseHead) -> Bool {
        RedirectRules.redirecting.contains(head.status) && head[.location] != nil
            && host.followsRedirects(of: request)
    }

    // MARK: Claims

    /// Makes the body collected for `value`; an error when a stream took it.
    func claimValue() throws(NetworkError) {
        let isTaken = state.withLock { state in
            if state.claim == .none { state.claim = .value }
            return state.claim == .stream
        }
        if let error = refused() { throw error }
        guard isTaken, keeper == nil else { return }
        if let error = failureOfTakenBody { throw error }
        throw NetworkError(
            invalid: .usage, "The body was taken as a stream, so there is no value to wait for.",
            hint: "Await the value or iterate the stream, not both.", request: request, phase: .receiving)
    }

    /// Takes note of why the reader of the stream has ended before the body.
    func readerEnded(by error: NetworkError) {
        if keeper == nil { state.withLock { $0.readerError = error } }
    }

    /// Gives the body to one reader and starts the transfer; an error for the second, or when a value is awaited.
    ///
    /// - Returns: The attempt to read; nil when the answer of a drive is to be awaited.
    func claimStream(withProgress: Bool) throws(NetworkError) -> Attempt? {
        if let error = refused() { throw error }
        try refuseCancelledTask()
        if keeper != nil {
            begin()
            return nil
        }
        let isDirect = state.withLock { state -> Bool? in
            guard state.claim == .none else { return nil }
            state.claim = .stream
            state.wantsProgress = withProgress
            state.isReadDirectly = first != nil && state.drive == nil
            return state.isReadDirectly
        }
        guard let isDirect else {
            if let error = failureOfTakenBody, error.isCancellation { throw error }
            throw NetworkError(
                invalid: .usage, "The body has a reader already.",
                hint: "A body is read once: by one stream, or by awaiting the value.", request: request,
                phase: .receiving)
        }
        guard isDirect, let attempt = direct else {
            begin()
            // What comes before the head is for the reader.
            state.withLock { $0.current }?.supersedeHeaded()
            return nil
        }
        _ = attempt.reader
        begin()
        return attempt
    }

    /// A cancelled task starts nothing.
    func refuseCancelledTask() throws(NetworkError) {
        if Task.isCancelled && state.withLock({ $0.startedAt == 0 }) { throw .cancelled(.preparing, request) }
    }

    // MARK: Changes

    /// Tells whoever waits that something has changed: there is an attempt, an element or an answer.
    func notify() { state.withLock { $0.signal }?.send() }

    var signal: Signal {
        state.withLock { state in
            if let signal = state.signal { return signal }
            let signal = Signal()
            state.signal = signal
            return signal
        }
    }
}

extension TransferRun: CustomReflectable {
    /// The request alone: what lies below belongs to other threads.
    var customMirror: Mirror { Mirror(self, children: ["request": request.description]) }
}

extension Request {
    /// The body with a descriptor of its own: it may be sent again, when the number given for it belongs to another file.
    fileprivate func keptBody() throws(NetworkError) -> RequestBody {
        do throws(SourceFailure) { return try body.kept() } catch { throw .unusableBody(error, self) }
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
            invalid: .usage, "Two tasks read one body at the same time.",
            hint: "A body has one reader; hand its elements on from there.", request: request, phase: .receiving)
    }
}
