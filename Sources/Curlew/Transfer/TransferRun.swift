// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// TransferRun: the state that the parts of one transfer share. A transfer without interceptors is *direct*: it has one
// attempt, created with the transfer, which all readers and observers use. When a transfer is intercepted or
// redirected, or when its session keeps it, a *drive* passes the request through the chain in a task of its own, and
// the chain creates the attempts.

internal import CurlewEngine
internal import FoundationEssentials
internal import CurlewSupport

final class TransferRun: Sendable {
    /// The use of the body, which the first caller decides.
    enum Claim { case none, value, stream }

    struct State {
        var claim = Claim.none
        /// Whether the reader of the stream reads the direct attempt, and therefore detects a redirect itself.
        var hasDirectReader = false
        /// The error that stopped the reader of the stream before the end of the body.
        var readerError: NetworkError?
        /// Whether the reader of the stream wants progress elements.
        var wantsProgress = false
        var startedAt: UInt64 = 0
        /// The latest time that a progress has reported.
        var reportedElapsed = Duration.zero
        var attempts = 0
        /// The current or last attempt.
        var current: EngineTransfer?
        /// The first attempt of a drive.
        var firstAttempt: Attempt?
        var drive: Drive?
        /// Whether the loop counts the transfer as running.
        var isHeld = false
        var isDetached = false
        var isCancelled = false
        var isPaused = false
        var priority: Int
        /// The number of tasks that await the value.
        var waitingTasks = 0
        var signal: Signal?
        var distributor: EventDistributor?
        /// The request of the latest attempt; nil for the first one.
        var latest: Request?
        /// The state about the end of a chain that its attempts share.
        var course: TransferCourse?
        /// Whether the next attempt follows a redirect.
        var followsRedirect = false
        /// The names of fields that redirects to other origins have removed.
        var withheld: [HeaderName] = []
        /// The end of a transfer with several attempts.
        var end: End?
    }

    let id: UInt64
    let request: Request
    let host: SessionCore
    /// The attempt of a direct transfer, or the error that prevents it; nil when the chain creates the attempts.
    let first: Result<Attempt, NetworkError>?
    /// The consumer that combines the bodies of all attempts; nil when the last attempt has the result.
    let download: DownloadRun?
    let state: Lock<State>

    init(_ request: Request, on host: SessionCore, for download: DownloadRun? = nil) {
        id = EngineTransfer.nextID()
        self.host = host
        self.download = download
        var state = State(priority: request.options.priority.rawValue)
        // The download takes the bodies, so they must not be collected.
        if download != nil { state.claim = .stream }
        var request = request
        do throws(NetworkError) {
            request.body = try request.keptBody()
            if host.isIntercepted(request) {
                first = nil
            } else {
                let position = AttemptPosition(id: id, ordinal: 1, offset: 0, continues: false)
                let attempt = try host.attempt(request, at: position)
                state.current = attempt.engine
                first = .success(attempt)
            }
        } catch {
            first = .failure(error)
        }
        self.request = request
        self.state = Lock(state)
    }

    /// Creates the run of a request that cannot be sent.
    init(_ request: Request, refusedBy error: NetworkError, on host: SessionCore) {
        id = EngineTransfer.nextID()
        self.host = host
        self.request = request
        download = nil
        first = .failure(error)
        state = Lock(State(priority: request.options.priority.rawValue))
    }

    /// Creates a run for an attempt that was already started, and may have ended.
    init(continuing attempt: Attempt, on host: SessionCore) {
        id = attempt.engine.plan.transfer
        self.host = host
        request = attempt.request
        first = .success(attempt)
        download = nil
        var state = State(priority: request.options.priority.rawValue)
        state.current = attempt.engine
        let startedAt = attempt.engine.snapshot.counters.startedAt
        state.startedAt = startedAt == 0 ? Monotonic.now() : startedAt
        state.attempts = 1
        self.state = Lock(state)
    }

    var direct: Attempt? { try? first?.get() }

    // MARK: Control

    /// Starts the transfer, unless it was started.
    func begin() {
        guard let first else { return _ = drive() }
        guard case .success(let attempt) = first else { return _ = refused() }
        recordStart()
        attempt.engine.startPrepared()
    }

    /// Returns the error that prevents any attempt, and ends the transfer with it; nil when an attempt is possible.
    func refused() -> NetworkError? {
        guard case .failure(let error) = first else { return nil }
        finish(error)
        return error
    }

    private func recordStart() {
        state.withLock { state in
            guard state.startedAt == 0 else { return }
            state.startedAt = Monotonic.now()
            state.attempts = 1
        }
    }

    /// Starts the transfer and lets it run to its end even without further references to it.
    func detach() {
        if refused() != nil { return }
        state.withLock { $0.isDetached = true }
        startObserved()
    }

    /// Starts the transfer for an observer that does not read the body, with a drive that can follow a redirect.
    func startObserved() {
        begin()
        guard let attempt = direct, !isOverDirectly, host.followsRedirects(of: request) else { return }
        startDriveUnlessRead(from: attempt)
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

    // `pause` and `resume` hold the lock, so that calls reach the attempts in their order, even while the attempt
    // changes.

    func pause() {
        state.withLock { state in
            state.isPaused = true
            state.current?.pause()
        }
        download?.pauseChanged(self)
    }

    func resume() {
        state.withLock { state in
            state.isPaused = false
            state.current?.resume()
        }
        guard let download else { return }
        download.pauseChanged(self)
        notify()
    }

    var priority: Int {
        get { state.withLock { $0.priority } }
        set {
            state.withLock { state in
                state.priority = newValue
                state.current?.priority = newValue
            }
            download?.priorityChanged(self)
        }
    }

    // MARK: State

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

    /// The phase for the error of an interceptor.
    var phase: NetworkError.Phase { attempts == 0 ? .preparing : .validating }

    func context(for request: Request) -> Interception.Context {
        Interception.Context(self, total: host.totalTimeout(of: request))
    }

    /// Returns whether an attempt's outcome is not the end of the transfer, but a redirect to follow or a cause to
    /// retry.
    ///
    /// A failure in the body of a redirect does not matter, unless the transfer was cancelled or the session was
    /// closed.
    func isProvisional(_ outcome: EngineTransfer.Outcome) -> Bool {
        if outcome.failure?.isRequested == true { return false }
        if let head = outcome.head, head.isRedirect, host.followsRedirects(of: request) { return true }
        return host.mayRepeat(request, after: outcome)
    }

    /// Whether the transfer has ended with its direct attempt.
    var isOverDirectly: Bool {
        guard let outcome = direct?.engine.outcome else { return false }
        return !isProvisional(outcome)
    }

    func isProvisional(_ head: ResponseHead) -> Bool {
        head.status.redirects && head[.location] != nil
            && host.followsRedirects(of: request)
    }

    // MARK: Claims

    /// Claims the body for `value`, so that it is collected.
    ///
    /// - Throws: An error when a stream has taken the body.
    func claimValue() throws(NetworkError) {
        let isTaken = state.withLock { state in
            if state.claim == .none { state.claim = .value }
            return state.claim == .stream
        }
        if let error = refused() { throw error }
        guard isTaken, download == nil else { return }
        if let error = failureOfTakenBody { throw error }
        throw NetworkError(
            invalid: .usage, "A stream has taken the body, so the transfer has no value.",
            hint: "Await the value or iterate the stream, not both.", request: request, phase: .receiving)
    }

    /// Records the error that stopped the reader of the stream before the end of the body.
    func recordReaderError(by error: NetworkError) {
        if download == nil { state.withLock { $0.readerError = error } }
    }

    /// Claims the body for a stream and starts the transfer.
    ///
    /// - Returns: The attempt to read; nil when the reader must wait for the response of a drive.
    /// - Throws: An error when the body has another reader, or its value is awaited.
    func claimStream(withProgress: Bool) throws(NetworkError) -> Attempt? {
        if let error = refused() { throw error }
        try refuseCancelledTask()
        if download != nil {
            begin()
            return nil
        }
        let isDirect = state.withLock { state -> Bool? in
            guard state.claim == .none else { return nil }
            state.claim = .stream
            state.wantsProgress = withProgress
            state.hasDirectReader = first != nil && state.drive == nil
            return state.hasDirectReader
        }
        guard let isDirect else {
            if let error = failureOfTakenBody, error.isCancellation { throw error }
            throw NetworkError(
                invalid: .usage, "The body already has a reader.",
                hint: "A body is read once: by one stream, or by awaiting the value.", request: request,
                phase: .receiving)
        }
        guard isDirect, let attempt = direct else {
            begin()
            // The elements before the head are for the reader.
            state.withLock { $0.current }?.switchToSteps()
            return nil
        }
        _ = attempt.reader
        begin()
        return attempt
    }

    /// Throws if the task was cancelled before the transfer was started.
    func refuseCancelledTask() throws(NetworkError) {
        if Task.isCancelled && state.withLock({ $0.startedAt == 0 }) { throw .cancelled(.preparing, request) }
    }

    // MARK: Changes

    /// Wakes the waiting tasks after a change: a new attempt, element or response.
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
    /// A mirror with the request only, since the other properties belong to other threads.
    var customMirror: Mirror { Mirror(self, children: ["request": request.description]) }
}

extension Request {
    /// Returns the body with a duplicated file descriptor.
    ///
    /// The body may be sent again after the caller has closed its descriptor, whose number may then be another file's.
    fileprivate func keptBody() throws(NetworkError) -> RequestBody {
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
            hint: "A body has one reader; pass its elements on from there.", request: request, phase: .receiving)
    }
}
