// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import Glibc
internal import CurlewSupport

/// One run of a plan: it starts once, ends once, and can be observed from any thread.
///
/// One half is behind a lock, for callers on other threads; the other half (`loopState`) belongs to the loop. Every
/// continuation is removed from the locked half before it is resumed, so no continuation is resumed twice. `complete`
/// removes all that are left, so no continuation is lost.
package final class EngineTransfer: UploadReader, Identifiable, @unchecked Sendable {
    // Safe because the constants never change, `shared` is behind its lock, and only the loop touches `loopState`.

    package struct Outcome: Sendable {
        package final class Facts: Sendable {
            package let metrics: RawMetrics
            let failure: EngineFailure?
            let trailers: [UInt8]
            let excerpt: [UInt8]

            init(_ metrics: RawMetrics, _ failure: EngineFailure?, _ trailers: [UInt8], _ excerpt: [UInt8]) {
                self.metrics = metrics
                self.failure = failure
                self.trailers = trailers
                self.excerpt = excerpt
            }
        }

        /// The maximum number of bytes in an excerpt of a body.
        package static let excerptLimit = 4096

        package let head: RawHead?
        /// Whether the chain of interceptors need not see this end.
        package let isFinal: Bool
        /// Whether this end is the end of the whole transfer for observers; false if it is not final, and for a
        /// transfer with a sink, whose owner reports the end.
        package let endsTransfer: Bool
        /// The facts are in one separate object, because outcomes are copied often; nil if there are no facts.
        package let facts: Facts?
        /// The measurements; empty if they were not requested.
        package var metrics: RawMetrics { facts?.metrics ?? RawMetrics() }
        package var failure: EngineFailure? { facts?.failure }
        /// The lines after the body (RFC 9110 §6.5); empty after a failure, and for most responses.
        package var trailers: [UInt8] { facts?.trailers ?? [] }

        /// The start of a body that was collected before a failure.
        package var excerpt: [UInt8] { facts?.excerpt ?? [] }

        init(
            head: RawHead? = nil, metrics: RawMetrics?, failure: EngineFailure?, trailers: [UInt8] = [],
            isFinal: Bool = true, endsTransfer: Bool = true, excerpt: @autoclosure () -> [UInt8] = []
        ) {
            self.head = head
            self.isFinal = isFinal
            self.endsTransfer = endsTransfer
            if metrics == nil && failure == nil && trailers.isEmpty {
                facts = nil
            } else {
                let isFailure = failure != nil
                facts = Facts(
                    metrics ?? RawMetrics(), failure, isFailure ? [] : trailers, isFailure ? excerpt() : [])
            }
        }
    }

    /// A step of the response, in the order in which the reader of the stream gets them.
    package enum Step: Sendable {
        case informational(RawHead)
        case head(RawHead)
        case progress(Counters)
        case bytes(Chunk)
        case trailers([UInt8])
        case end(Outcome)
    }

    package struct Snapshot: Sendable {
        package var run: EngineTransfer
        package var id: UInt64
        package var state: Lifecycle.State
        package var counters: Counters
        package var label: String?
        package var hasBody: Bool
        package var isSaved: Bool
    }

    struct LockedState {
        var lifecycle = Lifecycle()
        var collects = true
        /// Whether a caller has claimed the collected body, so that no reader can stream it.
        var isCollectingClaimed = false
        var hasReader = false
        /// Whether the caller has discarded the body, so that a failure is suppressed.
        var isBodyDiscarded = false
        var priority: Int
        var informational: [RawHead] = []
        var head: RawHead?
        /// Whether the chain need not see the head; true before the head.
        var isHeadFinal = true
        var isHeadTaken = false
        var areTrailersTaken = false
        /// Whether the loop paused receiving because the reader is slow.
        var isFlowPaused = false
        var trailers: [UInt8] = []
        var chunks: [Chunk] = []
        var firstChunk = 0
        /// The number of bytes in `chunks` that were not taken yet.
        var buffered = 0
        var counters = Counters()
        var isProgressDue = false
        var readerWantsProgress = false
        var outcome: Outcome?
        /// The collected body from the end on, until a caller takes it; after a failure, the bytes that had arrived.
        var body = CollectedBody()
        var reader: UnsafeContinuation<Step, Never>?
        /// The task that waits for the end, or for a head that is not final.
        var endOrHeadWaiter: Waiter?
        var endWaiters = SmallList<Waiter>()
        var sink: (any TransferSink)?
        /// Whether the sink gets the head also when it is final, and whether it got the head.
        var isHeadWanted = false
        var isHeadReported = false
        /// Whether the sink gets reports of the progress.
        var isProgressWanted = false
        /// ``Outcome/endsTransfer`` of the end; false before the end.
        var endsTransfer = false
        var observer: (any EngineObserver)?
        /// Keeps the loop busy from a head or an end that the chain must see until the chain takes the hold.
        var hold: LoopHold?

        init(_ plan: borrowing TransferPlan) {
            priority = plan.priority
            counters.expectedToSend = plan.upload.length
        }
    }

    /// The maximum number of informational heads kept for a slow reader; later ones are dropped.
    package static let informationalKept = 16

    /// The identifier of the run; later runs have larger ones.
    package let id: UInt64
    package let plan: TransferPlan
    package let loop: EventLoop
    /// The half that only the loop touches.
    ///
    /// The half is behind a pointer, because each access to a stored property of a class would be checked for
    /// exclusivity at run time.
    var loopState: LoopState {
        @inline(__always) unsafeAddress { UnsafePointer(loopStatePointer) }
        @inline(__always) unsafeMutableAddress { loopStatePointer }
    }

    // Both halves are in one block of memory, and `malloc` is faster than Swift's allocation, which checks for an
    // alignment that all memory has.
    let shared: LockedPointer<LockedState>
    let loopStatePointer: UnsafeMutablePointer<LoopState>

    private typealias LockedHalf = LockedMemory<LockedState>

    /// The offset of the locked half in the block.
    private static var lockedOffset: Int {
        let alignment = max(MemoryLayout<LoopState>.alignment, MemoryLayout<LockedHalf>.alignment)
        return (MemoryLayout<LoopState>.size + alignment - 1) / alignment * alignment
    }

    static var blockSize: Int { lockedOffset + MemoryLayout<LockedHalf>.size }

    package init(_ plan: consuming TransferPlan, on loop: EventLoop) {
        id = Self.nextID()
        self.loop = loop
        guard let memory = malloc(Self.blockSize) else { preconditionFailure("out of memory for a transfer") }
        loopStatePointer = memory.initializeMemory(as: LoopState.self, to: LoopState(plan))
        shared = LockedPointer(memory: (memory + Self.lockedOffset).bindMemory(to: LockedHalf.self, capacity: 1))
        LockedHalf.initialize(shared.memory, to: LockedState(plan))
        self.plan = plan
        if case .pipe(let pipe) = self.plan.upload { pipe.attach(to: self) }
    }

    /// Returns a number that is unique in this process.
    package static func nextID() -> UInt64 { curlew_next_id() }

    deinit {
        closePipes()
        loopState.collected?.clear()
        LockedMemory.deinitialize(shared.memory) { $0.body.clear() }
        loopStatePointer.deinitialize(count: 1)
        free(loopStatePointer)
    }

    /// Notifies the producers of the body that its bytes are not needed any more.
    func closePipes() {
        if case .pipe(let pipe) = plan.upload { pipe.close() }
        if case .pipe(let pipe) = plan.alternative?.upload { pipe.close() }
    }

    package var snapshot: Snapshot {
        let hasBody = if case .none = plan.upload { false } else { true }
        return shared.withLock { shared in
            Snapshot(
                run: self, id: plan.transfer == 0 ? id : plan.transfer, state: shared.lifecycle.visibleState,
                counters: shared.counters, label: plan.label, hasBody: hasBody,
                isSaved: plan.isSaved)
        }
    }

    /// The failure that ended the run; nil while it runs and after success.
    package var failure: EngineFailure? { shared.withLock { $0.outcome?.failure } }

    /// The head of the final response; nil before it.
    package var head: RawHead? { shared.withLock { $0.head } }

    package var hasFinished: Bool { shared.withLock { $0.outcome != nil } }

    /// The outcome of the run; nil while it runs.
    package var outcome: Outcome? { shared.withLock { $0.outcome } }

    // MARK: Commands, from any thread

    /// Hands the transfer to the loop; a second call has no effect.
    package func start() {
        let mustStart = shared.withLock { shared in
            guard shared.lifecycle.on(.start) else { return false }
            shared.counters.startedAt = loop.clock.now()
            shared.counters.at = shared.counters.startedAt
            return true
        }
        if mustStart && !loop.post(.start(self)) { complete(failure: unreachable, observer: loop.observerOfAll) }
    }

    /// Ends a transfer that cannot start.
    package func refuse(_ failure: EngineFailure) {
        complete(failure: failure, onlyIfIdle: true, observer: loop.observerOfAll)
    }

    var unreachable: EngineFailure {
        // In a child process of fork(), the mutex of the loop may be locked forever, so do not lock it.
        let errno = loop.hasThread ? loop.startFailure : 0
        return EngineFailure(errno == 0 ? .closed : .noResources(errno: errno), phase: .preparing)
    }

    /// Cancels the transfer; the loop removes it from libcurl before callers are resumed.
    package func cancel() {
        let state = shared.withLock { $0.lifecycle.state }
        if state == .finished { return }
        // Before the start, no other code knows the transfer; a later start finds it finished.
        let early = EngineFailure(.cancelled, phase: .preparing)
        if state == .idle && complete(failure: early, onlyIfIdle: true, observer: loop.observerOfAll) { return }
        if !loop.post(.cancel(self)) { complete(failure: unreachable, observer: loop.observerOfAll) }
    }

    package func pause() { if shared.withLock({ $0.lifecycle.on(.pause) }) { loop.post(.adjust(self)) } }

    package func resume() { if shared.withLock({ $0.lifecycle.on(.resume) }) { loop.post(.adjust(self)) } }

    package var priority: Int {
        get { shared.withLock { $0.priority } }
        set {
            shared.withLock { $0.priority = newValue }
            loop.post(.adjust(self))
        }
    }

    /// Discards the rest of a response whose head is enough: the transfer ends without a failure.
    ///
    /// From now on the body has no reader. A body that another caller has claimed ends with a failure, so that its
    /// caller does not take the part that has arrived for the whole.
    /// - Parameter byReader: Whether the caller has claimed the body.
    package func discardBody(byReader: Bool = false) {
        shared.withLock { shared in
            guard shared.head != nil, shared.outcome == nil else { return }
            if byReader || !shared.hasReader && !shared.isCollectingClaimed { shared.isBodyDiscarded = true }
        }
        cancel()
    }

    func uploadHasBytes() { loop.post(.adjust(self)) }

    // MARK: Reading the stream

    /// Delivers the body to a reader instead of collecting it; the bytes collected so far come first.
    ///
    /// - Returns: Whether the body is delivered; false when a caller has claimed the collected body.
    @discardableResult
    package func claimStream() -> Bool {
        let (isRunning, isStreamed) = shared.withLock { shared in
            guard shared.collects, !shared.isCollectingClaimed else { return (false, !shared.collects) }
            shared.collects = false
            if let chunk = shared.body.takeChunk() {
                shared.chunks.append(chunk)
                shared.buffered += chunk.count
            }
            return (shared.outcome == nil && shared.lifecycle.state != .idle, true)
        }
        if isRunning { loop.post(.adjust(self)) }
        return isStreamed
    }

    /// Claims the stream for a reader, which alone may call ``next(withProgress:)``.
    ///
    /// - Returns: False when there is a reader already, a caller has claimed the collected body, or the body was
    ///   discarded.
    package func claimReader() -> Bool {
        guard claimStream() else { return false }
        return shared.withLock { shared in
            if shared.hasReader || shared.isBodyDiscarded { return false }
            shared.hasReader = true
            return true
        }
    }

    /// Removes and returns the memory of the collected body, which the caller must release with `free`; nil before the
    /// end, without a body, and after the first call.
    package func takeBody() -> (memory: UnsafeMutableRawPointer, count: Int)? {
        shared.withLock { $0.body.takeMemory() }
    }

    /// Returns the head and removes the body of a final response that needs no decoding; nil for all other ends, and
    /// before the end.
    package func takePlainResponse() -> (head: RawHead, body: (memory: UnsafeMutableRawPointer, count: Int)?)? {
        shared.withLock { shared in
            guard let outcome = shared.outcome, outcome.isFinal, outcome.failure == nil, let head = outcome.head,
                !head.fields.contains(.contentEncoding)
            else { return nil }
            return (head, shared.body.takeMemory())
        }
    }

    /// Removes and returns the collected body as a chunk; nil as for ``takeBody()``.
    package func takeBodyChunk() -> Chunk? { shared.withLock { $0.body.takeChunk() } }

    /// Claims the collected body, which no reader can stream from now on.
    ///
    /// - Returns: False when the body is streamed or was discarded.
    package func claimCollecting() -> Bool {
        shared.withLock { shared in
            guard shared.collects, !shared.isBodyDiscarded else { return false }
            shared.isCollectingClaimed = true
            return true
        }
    }

    /// Returns the next step for the only reader; a cancelled task cancels the transfer and gets its end.
    package func next(withProgress: Bool) async -> Step {
        if let step = takeStep(withProgress: withProgress) { return step }
        defer { synchronizeWithLoop() }
        return await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let step = shared.withLock { shared -> Step? in
                    if let step = shared.takeStep(withProgress: withProgress) { return step }
                    shared.reader = continuation
                    return nil
                }
                if let step {
                    resumeFlowIfDrained()
                    continuation.resume(returning: step)
                }
            }
        } onCancel: {
            cancel()
        }
    }

    private func takeStep(withProgress: Bool) -> Step? {
        if Task.isCancelled { cancel() }
        let step = shared.withLock { shared in
            shared.readerWantsProgress = withProgress
            return shared.takeStep(withProgress: withProgress)
        }
        if step != nil { resumeFlowIfDrained() }
        return step
    }

    private func resumeFlowIfDrained() {
        let isDrained = shared.withLock { shared in
            guard shared.isFlowPaused, shared.buffered <= loop.configuration.lowWater else { return false }
            shared.isFlowPaused = false
            return true
        }
        if isDrained { loop.post(.adjust(self)) }
    }
}
