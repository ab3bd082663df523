// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import Glibc

/// One run of a plan: started once, ended once, watched by anyone.
///
/// Half of it is behind a lock, for those who wait on other threads; the other half (`wire`) belongs to the loop.
/// Every continuation is taken out of the locked half before it is resumed, so none is resumed twice, and `complete`
/// takes all that are left, so none is forgotten.
package final class EngineTransfer: UploadReader, @unchecked Sendable {
    // Safe because the constants never change, `shared` is behind its lock, and `wire` is touched by the loop alone.

    package struct Outcome: Sendable {
        private final class Facts: Sendable {
            let metrics: RawMetrics
            let failure: EngineFailure?
            let trailers: [UInt8]

            init(_ metrics: RawMetrics, _ failure: EngineFailure?, _ trailers: [UInt8]) {
                self.metrics = metrics
                self.failure = failure
                self.trailers = trailers
            }
        }

        package let head: RawHead?
        /// Apart and together, since outcomes are copied often; nil when there is nothing to tell.
        private let facts: Facts?
        /// Present when the body was collected; what had come, when the transfer failed.
        package internal(set) var body: CollectedBody?

        /// Empty when nobody wanted them.
        package var metrics: RawMetrics { facts?.metrics ?? RawMetrics() }
        package var failure: EngineFailure? { facts?.failure }
        /// Lines after the body (RFC 9110 §6.5), empty as a rule and after a failure.
        package var trailers: [UInt8] { facts?.trailers ?? [] }

        init(head: RawHead? = nil, metrics: RawMetrics?, failure: EngineFailure?, trailers: [UInt8] = []) {
            self.head = head
            if metrics == nil && failure == nil && trailers.isEmpty {
                facts = nil
            } else {
                facts = Facts(metrics ?? RawMetrics(), failure, failure == nil ? trailers : [])
            }
        }
    }

    /// What a reader of the stream gets next.
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

    struct Shared {
        var lifecycle = Lifecycle()
        var collects = true
        var priority: Int
        var informational: [RawHead] = []
        var head: RawHead?
        var isHeadTaken = false
        /// Nobody is to wait for the head alone.
        var isHeadRead = false
        var trailers: [UInt8] = []
        var areTrailersTaken = false
        var chunks: [Chunk] = []
        var firstChunk = 0
        /// Bytes in `chunks`, not yet taken.
        var buffered = 0
        /// The loop paused receiving because the reader is slow.
        var isFlowPaused = false
        var counters = Counters()
        var isProgressDue = false
        var outcome: Outcome?
        var reader: UnsafeContinuation<Step, Never>?
        var readerWantsProgress = false
        var endWaiters = Few<EndWaiter>()
        var progressWaiters: [(ticket: UInt64, continuation: UnsafeContinuation<Counters?, Never>)] = []
        var headWaiters: [UnsafeContinuation<Headed, Never>] = []
        var witness: (any EngineWitness)?
        /// The loop is held in its name.
        var hasHold = false
        /// The head names another place to ask, where whoever made the plan may go.
        var leadsElsewhere = false
        /// Nobody minds how it ends from now on.
        var isLetGo = false

        init(_ plan: borrowing TransferPlan) {
            priority = plan.priority
            counters.expectedToSend = plan.upload.length
        }
    }

    struct EndWaiter {
        var ticket: UInt64
        var continuation: UnsafeContinuation<Outcome?, Never>
        /// Whether a head that leads elsewhere is enough.
        var leaves: Bool
        /// Whether its task prefers an executor to the runtime's own pool of threads.
        let hasExecutor = withUnsafeCurrentTask { $0?.unownedTaskExecutor != nil }
    }

    /// Most informational heads that wait for a slow reader; later ones are dropped.
    package static let informationalKept = 16

    /// Names one run; larger for later ones.
    package let id: UInt64
    package let plan: TransferPlan
    package let loop: EventLoop
    /// What the loop alone touches.
    ///
    /// Through a pointer: in a class, each access of it would be checked at run time for others at the same time.
    var wire: Wire {
        @inline(__always) unsafeAddress { UnsafePointer(wireHalf) }
        @inline(__always) unsafeMutableAddress { wireHalf }
    }

    // Both halves are in one block of memory.
    let shared: LockedPointer<Shared>
    let wireHalf: UnsafeMutablePointer<Wire>

    package init(_ plan: consuming TransferPlan, on loop: EventLoop) {
        id = Self.nextID()
        self.loop = loop
        typealias SharedHalf = LockedMemory<Shared>
        let alignment = max(MemoryLayout<Wire>.alignment, MemoryLayout<SharedHalf>.alignment)
        let offset = (MemoryLayout<Wire>.size + alignment - 1) / alignment * alignment
        // Not what Swift offers for it, which asks for an alignment that any memory has, and pays for the question.
        guard let memory = malloc(offset + MemoryLayout<SharedHalf>.size) else {
            preconditionFailure("out of memory for a transfer")
        }
        wireHalf = memory.initializeMemory(as: Wire.self, to: Wire(plan))
        shared = LockedPointer(memory: (memory + offset).bindMemory(to: SharedHalf.self, capacity: 1))
        SharedHalf.initialize(shared.memory, to: Shared(plan))
        self.plan = plan
        if case .pipe(let pipe) = self.plan.upload { pipe.attach(to: self) }
    }

    /// A number that was never given before in this process.
    package static func nextID() -> UInt64 { curlew_next_id() }

    deinit {
        closePipes()
        if wire.leadsElsewhere && takeHold() { loop.release() }
        LockedMemory.deinitialize(shared.memory)
        wireHalf.deinitialize(count: 1)
        free(wireHalf)
    }

    /// Tells the producers of the body that nobody reads any more.
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

    /// Why it ended without success, nil while it runs and after success.
    package var failure: EngineFailure? { shared.withLock { $0.outcome?.failure } }

    package var hasFinished: Bool { shared.withLock { $0.outcome != nil } }

    /// How it ended, nil while it runs.
    package var outcome: Outcome? { shared.withLock { $0.outcome } }

    // MARK: Orders, from any thread

    /// Hands the transfer to the loop; does nothing the second time.
    package func start() {
        let mustStart = shared.withLock { shared in
            guard shared.lifecycle.on(.start) else { return false }
            shared.counters.startedAt = Monotonic.now()
            shared.counters.at = shared.counters.startedAt
            return true
        }
        if mustStart && !loop.post(.start(self)) { complete(failure: unreachable, witness: loop.witnessOfAll) }
    }

    /// Ends a transfer that cannot start.
    package func refuse(_ failure: EngineFailure) {
        complete(failure: failure, onlyIfIdle: true, witness: loop.witnessOfAll)
    }

    var unreachable: EngineFailure {
        // In a child of fork() another thread's lock may be held for ever, so the loop is not asked.
        let errno = loop.hasThread ? loop.startFailure : 0
        return EngineFailure(errno == 0 ? .closed : .noResources(errno: errno), phase: .preparing)
    }

    /// Ends the transfer; the loop takes it off the wire before anyone is told.
    package func cancel() {
        let state = shared.withLock { $0.lifecycle.state }
        if state == .finished { return }
        // Before the start nothing else knows the transfer; a start that comes later finds it finished.
        let early = EngineFailure(.cancelled, phase: .preparing)
        if state == .idle && complete(failure: early, onlyIfIdle: true, witness: loop.witnessOfAll) { return }
        if !loop.post(.cancel(self)) { complete(failure: unreachable, witness: loop.witnessOfAll) }
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

    /// Breaks off a response whose head is all that is wanted: it ends without failure.
    package func letGo() {
        shared.withLock { if $0.head != nil { $0.isLetGo = true } }
        cancel()
    }

    func uploadHasBytes() { loop.post(.adjust(self)) }

    // MARK: Reading the stream

    /// Makes the body go to a reader instead of being collected; what was collected so far comes first.
    package func claimStream() {
        let isRunning = shared.withLock { shared in
            guard shared.collects else { return false }
            shared.collects = false
            if let chunk = shared.outcome?.body?.takeChunk() {
                shared.chunks.append(chunk)
                shared.buffered += chunk.count
                shared.outcome?.body = nil
            }
            return shared.outcome == nil && shared.lifecycle.state != .idle
        }
        if isRunning { loop.post(.adjust(self)) }
    }

    /// The next step for the one reader; a cancelled task cancels the transfer and gets its end.
    package func next(withProgress: Bool) async -> Step {
        if let step = takeStep(withProgress: withProgress) { return step }
        defer { meetLoop() }
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
