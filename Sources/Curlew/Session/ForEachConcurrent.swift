// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewSupport

extension Sequence where Element: Sendable {
    /// Runs a closure for each element, with a limit for concurrent closures.
    ///
    /// Closures start in the order of the elements, each in a child task of the calling task, and the function returns
    /// when all have ended. The first error cancels the running closures, keeps the others from starting, and is thrown
    /// when all have ended.
    ///
    /// ```swift
    /// try await urls.forEachConcurrent(limit: 4) { url in
    ///     try await store(session.data(for: Request(url)).0)
    /// }
    /// ```
    ///
    /// When the calling task is cancelled, the running closures are cancelled. No more closures start if their error
    /// type can express the cancellation: the function throws `CancellationError`, or `NetworkError` of kind
    /// `cancelled` if `Failure` is `NetworkError`. Closures that throw nothing, or errors of another type, all run, in
    /// a cancelled task.
    /// - Parameters:
    ///   - limit: The number of concurrent closures; less than 1 counts as 1.
    ///   - isolation: The actor on which the sequence is iterated; the caller's.
    ///   - operation: The closure to run for an element.
    /// - Throws: The first error in time that `operation` throws, or the cancellation of the task, in any phase.
    public func forEachConcurrent<Failure: Error>(
        limit: Int, isolation: isolated (any Actor)? = #isolation,
        _ operation: @escaping @Sendable (Element) async throws(Failure) -> Void
    ) async throws(Failure) {
        _ = try await collectConcurrent(limit: limit, isolation: isolation, keepsResults: false, operation)
    }

    /// Returns the results of a closure for each element, in the order of the elements, computed concurrently.
    ///
    /// Start, errors and cancellation work as in ``forEachConcurrent(limit:isolation:_:)``.
    ///
    /// ```swift
    /// let pages = try await urls.mapConcurrent(limit: 4) { try await session.data(for: Request($0)).0 }
    /// ```
    /// - Parameters:
    ///   - limit: The number of concurrent closures; less than 1 counts as 1.
    ///   - isolation: The actor on which the sequence is iterated; the caller's.
    ///   - operation: The closure that computes the result for an element.
    /// - Throws: The first error in time that `operation` throws, or the cancellation of the task, in any phase.
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
            // A closure has its function's isolation only if it captures the `isolation` parameter.
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
    /// Runs a closure for each element as it arrives, with a limit for concurrent closures.
    ///
    /// The next element is requested when the limit allows another closure; each closure runs in a task of its own. The
    /// first error, of a closure or of the sequence, cancels both and is thrown when all have ended. If the caller is
    /// cancelled, the function throws that error or `CancellationError`, since a sequence that ends upon cancellation
    /// may not have delivered all elements.
    ///
    /// ```swift
    /// try await lines.forEachConcurrent(limit: 8) { line in try await upload(line) }
    /// ```
    /// - Parameters:
    ///   - limit: The number of concurrent closures; less than 1 counts as 1.
    ///   - operation: The closure to run for an element.
    /// - Throws: The first error in time of `operation` or the sequence, in its phase; `CancellationError`.
    public func forEachConcurrent(
        limit: Int, _ operation: @escaping @Sendable (Element) async throws -> Void
    ) async throws {
        try await collectConcurrent(limit: limit, keepsResults: false, operation)
    }

    /// Returns the results of a closure for each element, in the order of the elements, computed concurrently.
    ///
    /// Start, errors and cancellation work as in ``forEachConcurrent(limit:_:)``.
    /// - Parameters:
    ///   - limit: The number of concurrent closures; less than 1 counts as 1.
    ///   - operation: The closure that computes the result for an element.
    /// - Throws: The first error in time of `operation` or the sequence, in its phase; `CancellationError`.
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
            // The loop and the wait for a failure end each other: the first to finish cancels the group.
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
                // Errors caused by the cancellation after a failure arrive too late to be the first.
                _ = first.value { error }
                group.cancelAll()
            }
            for await finished in group { run.take(finished) }
            return run.outputs.compactMap(\.self)
        }
    }
}

/// The result of one closure.
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

/// The state of the loop about the closures it has started.
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

    /// Counts a starting closure, and returns the index for its result.
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
