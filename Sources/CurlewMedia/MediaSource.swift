// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew
internal import CurlewEngine
internal import CurlewSupport

/// One file that is in use: its stored bytes, the transfers that fetch others, and the readers.
///
/// `FetchPlan` decides; this class performs its actions and reports the results.
final class MediaSource: Sendable {
    /// How many bytes may be received before the record of the file is written again.
    static let saveInterval: Int64 = 16 << 20

    struct State {
        var plan: FetchPlan
        /// The facts of the current file; nil before the first response.
        var facts: MediaFacts?
        /// The facts of the file that was discarded last.
        var discarded: MediaFacts?
        var file: PartialFile?
        var name = ""
        var tasks: [Int: Task<Void, Never>] = [:]
        var readers: [Int: UnsafeContinuation<NetworkError?, Never>] = [:]
        /// Errors of readers that do not wait yet.
        var failures: [Int: NetworkError] = [:]
        var held: [Int: UnsafeContinuation<Void, Never>] = [:]
        var factsWaiters: [Int: UnsafeContinuation<NetworkError?, Never>] = [:]
        var lastWaiter = 0
        var unsaved: Int64 = 0
        var hasChanged = false
        var isSaving = false
        /// Whether the stored record was looked up.
        var isLoaded = false
        var confirmedAt: Int64 = 0
    }

    /// Effects that happen after the lock is released.
    struct Effects {
        var resumed: [(UnsafeContinuation<NetworkError?, Never>, NetworkError?)] = []
        var continued: [UnsafeContinuation<Void, Never>] = []
        var cancelled: [Task<Void, Never>] = []
        /// The names of discarded files; nil if no file is discarded.
        var discarded: [String]?
    }

    let key: MediaKey
    let request: Request
    let session: Session
    let store: MediaStore
    let state: Lock<State>
    let delayedSave = DelayedSave<MediaSource>(
        hasChanges: { $0.isWorthSaving },
        save: { source in
            await source.save()
            return !source.isWorthSaving
        })
    /// Sent when a save has ended, or the record was looked up.
    let saved = Signal()

    init(_ key: MediaKey, _ request: Request, _ session: Session, _ store: MediaStore, _ limits: FetchPlan.Limits) {
        (self.key, self.request, self.session, self.store) = (key, request, session, store)
        state = Lock(State(plan: FetchPlan(limits)))
    }

    /// Changes the state, performs the actions of the plan, and returns the result.
    ///
    /// - Parameter error: The error for readers that an action fails.
    func update<Value>(
        _ error: NetworkError? = nil, _ body: (inout State) -> (Value, [FetchPlan.Action])
    ) -> Value {
        var effects = Effects()
        let value = state.withLock { state in
            let (value, actions) = body(&state)
            for action in actions { perform(action, &state, &effects, error) }
            return value
        }
        for (continuation, error) in effects.resumed { continuation.resume(returning: error) }
        for continuation in effects.continued { continuation.resume() }
        for task in effects.cancelled { task.cancel() }
        if let names = effects.discarded { store.discard(key, names) }
        return value
    }

    private func perform(
        _ action: FetchPlan.Action, _ state: inout State, _ effects: inout Effects, _ error: NetworkError?
    ) {
        switch action {
        case .start(let id, let from, let to):
            let question = MediaAnswer.Question(
                from: from, to: to, facts: state.facts, canRange: state.plan.mode == .ranged)
            let generation = state.plan.generation
            state.tasks[id] = Task { await self.run(id, question, generation) }
        case .stop(let id):
            if let task = state.tasks.removeValue(forKey: id) { effects.cancelled.append(task) }
            if let held = state.held.removeValue(forKey: id) { effects.continued.append(held) }
        case .resume(let id):
            if let held = state.held.removeValue(forKey: id) { effects.continued.append(held) }
        case .wake(let id):
            if let waiter = state.readers.removeValue(forKey: id) { effects.resumed.append((waiter, nil)) }
        case .fail(let id):
            if let waiter = state.readers.removeValue(forKey: id) {
                effects.resumed.append((waiter, error))
            } else {
                state.failures[id] = error
            }
        case .discard:
            if let facts = state.facts { state.discarded = facts }
            effects.discarded = (effects.discarded ?? []) + (state.name.isEmpty ? [] : [state.name])
            (state.facts, state.file, state.name) = (nil, nil, "")
            (state.unsaved, state.hasChanged, state.confirmedAt) = (0, false, 0)
        }
    }

    // MARK: Opening

    /// Looks up the stored record, once.
    private func load() async {
        let count = saved.count
        let (isFirst, isLoaded) = state.withLock { state in
            defer { if !state.isLoaded, !state.isSaving { state.isSaving = true } }
            return (!state.isLoaded && !state.isSaving, state.isLoaded)
        }
        if isLoaded { return }
        guard isFirst else {
            await saved.waitUncancelled(after: count)
            return await load()
        }
        if let record = store.record(key) {
            let store = store
            let opened = await DiskThread.media.value(at: store.jobPath(key)) { store.open(record) }
            if let file = opened ?? nil, let intervals = record.intervals {
                state.withLock { state in
                    state.plan = FetchPlan(
                        state.plan.limits, mode: record.mode, length: record.facts.length, cached: intervals)
                    (state.facts, state.file, state.name) = (record.facts, file, record.name)
                    state.confirmedAt = record.confirmedAt
                }
            } else {
                store.discard(key, [record.name])
            }
        }
        state.withLock { state in
            state.isLoaded = true
            state.isSaving = false
        }
        saved.send()
    }

    /// Waits until the facts of the file are known, from the record or from a response.
    ///
    /// - Parameter validAfter: A stored file that the server confirmed before is validated first; in seconds since
    ///   1970.
    func open(validAfter: Int64) async throws(NetworkError) {
        await load()
        if state.withLock({ $0.facts != nil && $0.plan.readers.isEmpty && $0.confirmedAt < validAfter }) {
            await validate()
        }
        let id = state.withLock { state in
            state.lastWaiter += 1
            return state.lastWaiter
        }
        if Task.isCancelled { throw cancelled() }
        let error = await withTaskCancellationHandler {
            await withUnsafeContinuation { (waiter: UnsafeContinuation<NetworkError?, Never>) in
                let known = update { state -> (NetworkError??, [FetchPlan.Action]) in
                    if state.facts != nil || Task.isCancelled { return (.some(nil), []) }
                    if state.plan.isShutDown { return (.some(closed()), []) }
                    state.factsWaiters[id] = waiter
                    return (nil, state.plan.wantFacts())
                }
                if let known { waiter.resume(returning: known) }
            }
        } onCancel: {
            let waiter = state.withLock { $0.factsWaiters.removeValue(forKey: id) }
            waiter?.resume(returning: cancelled())
        }
        if let error { throw error }
        if Task.isCancelled { throw cancelled() }
    }

    /// The last handle and the last reader have left.
    func lastUseEnded() { update { state in ((), state.plan.release()) } }

    // MARK: Reading

    func addReader(from start: Int64, to end: Int64?, isGreedy: Bool) -> Int {
        update { $0.plan.add(from: start, to: end, isGreedy: isGreedy) }
    }

    func removeReader(_ id: Int) {
        let waiter = update { state in
            state.failures[id] = nil
            return (state.readers.removeValue(forKey: id), state.plan.remove(reader: id))
        }
        waiter?.resume(returning: nil)
    }

    /// Waits until bytes at the reader's position are stored, and returns their range and their file; nil at the end.
    ///
    /// - Throws: The error of the transfer that was to deliver the bytes, `.contentChanged` or `.cancelled`.
    nonisolated(nonsending) func next(
        _ id: Int, atMost most: Int64
    ) async throws(NetworkError) -> (range: Range<Int64>, file: PartialFile, generation: UInt64)? {
        while true {
            if Task.isCancelled { throw cancelled() }
            let (step, file, generation) = update { state in
                state.failures[id] = nil
                // The last bytes of a reader may end the generation.
                let generation = state.plan.generation
                let (step, actions) = state.plan.take(id, atMost: most)
                return ((step, state.file, generation), actions)
            }
            switch step {
            case .bytes(let range):
                guard let file else { throw changed() }
                return (range, file, generation)
            case .end: return nil
            case .changed: throw changed()
            case .wait: if let error = await wait(id) { throw error }
            }
        }
    }

    private func wait(_ id: Int) async -> NetworkError? {
        await withTaskCancellationHandler {
            await withUnsafeContinuation { (waiter: UnsafeContinuation<NetworkError?, Never>) in
                let isOver = state.withLock { state -> NetworkError?? in
                    if let failure = state.failures.removeValue(forKey: id) { return .some(failure) }
                    if state.plan.isShutDown { return .some(closed()) }
                    guard state.plan.readers[id]?.waitsSince != nil else { return .some(nil) }
                    if Task.isCancelled {
                        state.plan.stopWaiting(id)
                        return .some(cancelled())
                    }
                    state.readers[id] = waiter
                    return nil
                }
                if let isOver { waiter.resume(returning: isOver) }
            }
        } onCancel: {
            let waiter = state.withLock { state in
                state.plan.stopWaiting(id)
                return state.readers.removeValue(forKey: id)
            }
            waiter?.resume(returning: cancelled())
        }
    }

    /// The stored bytes of a generation cannot be read.
    func damaged(_ generation: UInt64) {
        update { state in
            ((), state.plan.generation == generation ? state.plan.changed(keeping: nil) : [])
        }
    }

    // MARK: Errors

    func cancelled() -> NetworkError {
        NetworkError(.cancelled, phase: .receiving, "The reader was cancelled.", request: request)
    }

    func closed() -> NetworkError {
        NetworkError(.sessionClosed, phase: .receiving, "The media cache was closed.", request: request)
    }

    private func changed() -> NetworkError {
        NetworkError(
            .contentChanged, phase: .receiving,
            "The file on the server has changed, or the rest of its bytes cannot be joined to those already read.",
            hint: "Start again with a new reader; it reads the new file.", request: request)
    }
}
