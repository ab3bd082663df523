// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension Sequence where Element: Sendable {
    /// Runs a closure for each element, a limited number of them at once.
    ///
    /// Closures start in the order of the elements, each in a child task of the caller's, and the function returns when
    /// all have ended. The first error cancels those that run, keeps the others from starting, and is thrown when all
    /// have ended.
    ///
    /// ```swift
    /// try await urls.forEachConcurrent(limit: 4) { url in
    ///     try await store(session.data(for: Request(url)).0)
    /// }
    /// ```
    ///
    /// When the calling task is cancelled, so are the closures that run. No more are started, if their type of error can
    /// say so: `CancellationError` is thrown, or `NetworkError` of kind `cancelled` by closures that throw nothing else.
    /// Closures that throw nothing, or errors of another type, all run, in a cancelled task.
    /// - Parameters:
    ///   - limit: How many run at once; less than 1 counts as 1.
    ///   - isolation: Where the sequence is iterated: where the caller is.
    ///   - operation: What to do with an element.
    /// - Throws: The first error in time that `operation` throws, or that the task was cancelled, in any phase.
    public func forEachConcurrent<Failure: Error>(
        limit: Int, isolation: isolated (any Actor)? = #isolation,
        _ operation: @escaping @Sendable (Element) async throws(Failure) -> Void
    ) async throws(Failure) {
        _ = try await collectConcurrent(limit: limit, isolation: isolation, keepsResults: false, operation)
    }

    /// The results of a closure for each element, in the order of the elements, a limited number computed at once.
    ///
    /// Start, errors and cancellation are as with ``forEachConcurrent(limit:isolation:_:)``.
    ///
    /// ```swift
    /// let pages = try await urls.mapConcurrent(limit: 4) { try await session.data(for: Request($0)).0 }
    /// ```
    /// - Parameters:
    ///   - limit: How many run at once; less than 1 counts as 1.
    ///   - isolation: Where the sequence is iterated: where the caller is.
    ///   - operation: What makes a result of an element.
    /// - Throws: The first error in time that `operation` throws, or that the task was cancelled, in any phase.
    public func mapConcurrent<Output: Sendable, Failure: Error>(
        limit: Int, isolation: isolated (any Actor)? = #isolation,
        _ operation: @escaping @Sendable (Element) async throws(Failure) -> Output
    ) async throws(Failure) -> [Output] {
        try await collectConcurrent(limit: limit, isolation: isolation, keepsResults: true, operation)
    }

    private func collectConcurrent<Output: Sendable, Failure: Error>(
        limit: Int, isolation: isolated (any Actor)?, keepsResults: Bool,
        _ operation: @escaping @Sendable (Element) async throws(Failure) -> Output
    ) async throws(Failure) -> [Output] {
        let run = await withTaskGroup(of: Finished<Output, Failure>.self) { group in
            // A closure is isolated like its function only when it captures what says how.
            _ = isolation
            var run = ConcurrentRun<Output, Failure>(limit: limit, keepsResults: keepsResults)
            for element in self {
                while run.isFull, let finished = await group.next() { run.take(finished) }
                if Task.isCancelled { run.cancel() }
                guard run.failure == nil else { break }
                let index = run.start()
                group.addTask { await Finished(index, of: operation, for: element) }
            }
            while run.failure == nil, let finished = await group.next() { run.take(finished) }
            if run.failure != nil { group.cancelAll() }
            await group.waitForAll()
            return run
        }
        if let failure = run.failure { throw failure }
        return run.outputs.compactMap(\.self)
    }
}

extension AsyncSequence where Self: Sendable, Element: Sendable {
    /// Runs a closure for each element as it comes, a limited number of them at once.
    ///
    /// An element is asked for when there is room for its closure, in a task of its own. The first error, of a closure
    /// or of the sequence, cancels both and is thrown when all have ended. A cancelled caller gets what they throw, or
    /// `CancellationError`, since a sequence that ends then may not have given everything.
    ///
    /// ```swift
    /// try await lines.forEachConcurrent(limit: 8) { line in try await upload(line) }
    /// ```
    /// - Parameters:
    ///   - limit: How many run at once; less than 1 counts as 1.
    ///   - operation: What to do with an element.
    /// - Throws: The first error in time of `operation` or the sequence; `CancellationError`. In phases of theirs.
    public func forEachConcurrent(
        limit: Int, _ operation: @escaping @Sendable (Element) async throws -> Void
    ) async throws {
        try await collectConcurrent(limit: limit, keepsResults: false, operation)
    }

    /// The results of a closure for each element, in the order of the elements, a limited number computed at once.
    ///
    /// Start, errors and cancellation are as with ``forEachConcurrent(limit:_:)``.
    /// - Parameters:
    ///   - limit: How many run at once; less than 1 counts as 1.
    ///   - operation: What makes a result of an element.
    /// - Throws: The first error in time of `operation` or the sequence; `CancellationError`. In phases of theirs.
    public func mapConcurrent<Output: Sendable>(
        limit: Int, _ operation: @escaping @Sendable (Element) async throws -> Output
    ) async throws -> [Output] {
        try await collectConcurrent(limit: limit, keepsResults: true, operation)
    }

    /// Runs the loop in a child task, so that the failure of a closure can end its wait for the next element.
    @discardableResult
    private func collectConcurrent<Output: Sendable>(
        limit: Int, keepsResults: Bool, _ operation: @escaping @Sendable (Element) async throws -> Output
    ) async throws -> [Output] {
        let (failures, failed) = AsyncStream.makeStream(of: Never.self)
        let first = OnceBox<any Error>()
        let run = ConcurrentRun<Output, any Error>(limit: limit, keepsResults: keepsResults)
        let outputs = await withTaskGroup(of: [Output]?.self) { group in
            group.addTask {
                await iterate(run, first) { element in
                    do { return try await operation(element) } catch {
                        _ = first.value { error }
                        failed.finish()
                        throw error
                    }
                }
            }
            group.addTask {
                for await _ in failures {}
                return nil
            }
            // Whoever is first, the loop or a failure, ends the other.
            var outputs: [Output]?
            while let finished = await group.next() {
                outputs = outputs ?? finished
                group.cancelAll()
            }
            return outputs
        }
        if let failure = first.current { throw failure }
        return outputs ?? []
    }

    private func iterate<Output: Sendable>(
        _ prepared: ConcurrentRun<Output, any Error>, _ first: OnceBox<any Error>,
        _ operation: @escaping @Sendable (Element) async throws -> Output
    ) async -> [Output] {
        await withTaskGroup(of: Finished<Output, any Error>.self) { group in
            var run = prepared
            do {
                var iterator = makeAsyncIterator()
                while run.failure == nil, let element = try await iterator.next() {
                    let index = run.start()
                    group.addTask { await Finished(index, of: operation, for: element) }
                    while run.isFull, let finished = await group.next() { run.take(finished) }
                    try Task.checkCancellation()
                }
                try Task.checkCancellation()
            } catch {
                // What follows from the cancellation after a failure comes too late to be the first.
                _ = first.value { error }
                group.cancelAll()
            }
            for await finished in group { run.take(finished) }
            return run.outputs.compactMap(\.self)
        }
    }
}

/// How one closure ended.
private struct Finished<Output: Sendable, Failure: Error>: Sendable {
    let index: Int
    let result: Result<Output, Failure>

    init<Element: Sendable>(
        _ index: Int, of operation: @Sendable (Element) async throws(Failure) -> Output, for element: Element
    ) async {
        self.index = index
        do throws(Failure) {
            result = .success(try await operation(element))
        } catch {
            result = .failure(error)
        }
    }
}

/// What the loop knows of the closures it has started.
private struct ConcurrentRun<Output: Sendable, Failure: Error>: Sendable {
    let limit: Int
    let keepsResults: Bool
    private(set) var outputs: [Output?] = []
    private(set) var failure: Failure?
    private var running = 0

    init(limit: Int, keepsResults: Bool) {
        self.limit = limit
        self.keepsResults = keepsResults
    }

    var isFull: Bool { running >= max(1, limit) }

    /// Counts one that begins, and says where its result goes.
    mutating func start() -> Int {
        running += 1
        guard keepsResults else { return 0 }
        outputs.append(nil)
        return outputs.count - 1
    }

    mutating func take(_ finished: Finished<Output, Failure>) {
        running -= 1
        switch finished.result {
        case .success(let output): if keepsResults { outputs[finished.index] = output }
        case .failure(let error): failure = failure ?? error
        }
    }

    mutating func cancel() {
        let error = NetworkError(.cancelled, phase: .preparing, "The task was cancelled.")
        failure = failure ?? (CancellationError() as? Failure) ?? (error as? Failure)
    }
}
