// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

extension InterceptorContext {
    /// What an operation of the user's gives, awaited no longer than the transfer may go on.
    ///
    /// The operation runs in a task of its own, with this task's priority and task-local values. When the transfer is
    /// cancelled, or its session has closed, that task is cancelled and nobody waits for it.
    /// - Throws: What the operation throws; `CancellationError`; `.sessionClosed`.
    func abandonable<Value: Sendable>(
        _ operation: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let closing = run.host.closing
        return try await Abandonment.value(operation) {
            guard await closing.wait(after: 0) else { return nil }
            return .failure(NetworkError(EngineFailure(.closed, phase: .receiving), request: run.request))
        }
    }
}

/// One who waits for an operation, and may stop to.
final class Abandonment<Value: Sendable>: Sendable {
    typealias Waiting = UnsafeContinuation<Result<Value, any Error>, Never>

    private struct State {
        var continuation: Waiting?
        var tasks: [Task<Void, Never>] = []
        var result: Result<Value, any Error>?
    }

    private let state = Lock(State())

    /// What an operation gives, in a task of its own; or what another one gives, when that is first.
    ///
    /// Whoever is late is cancelled, and not waited for.
    /// - Parameter end: Gives what is to be had without the operation; nil for no end.
    /// - Throws: What the operation throws, or the other one gives; `CancellationError` when the task is cancelled.
    static func value(
        _ operation: @escaping @Sendable () async throws -> Value,
        unless end: @escaping @Sendable () async -> Result<Value, any Error>?
    ) async throws -> Value {
        let waiting = Abandonment<Value>()
        return try await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                waiting.begin(continuation) {
                    do { waiting.end(.success(try await operation())) } catch { waiting.end(.failure(error)) }
                } watch: {
                    if let result = await end() { waiting.end(result) }
                }
            }
        } onCancel: {
            waiting.end(.failure(CancellationError()))
        }.get()
    }

    private func begin(
        _ continuation: Waiting, operation: @escaping @Sendable () async -> Void,
        watch: @escaping @Sendable () async -> Void
    ) {
        let over = state.withLock { state in
            if state.result == nil { state.continuation = continuation }
            return state.result
        }
        if let over { return continuation.resume(returning: over) }
        let tasks = [Task(operation: operation), Task(operation: watch)]
        let isOver = state.withLock { state in
            if state.result == nil { state.tasks = tasks }
            return state.result != nil
        }
        if isOver { for task in tasks { task.cancel() } }
    }

    /// The first result counts; then both tasks are told to stop.
    private func end(_ result: Result<Value, any Error>) {
        let (continuation, tasks) = state.withLock { state in
            guard state.result == nil else { return (nil as Waiting?, [Task<Void, Never>]()) }
            state.result = result
            defer {
                state.continuation = nil
                state.tasks = []
            }
            return (state.continuation, state.tasks)
        }
        for task in tasks { task.cancel() }
        continuation?.resume(returning: result)
    }
}
