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
        let waiting = Abandonment<Value>()
        let closing = run.host.closing
        return try await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                waiting.begin(continuation) {
                    do { waiting.end(.success(try await operation())) } catch { waiting.end(.failure(error)) }
                } watch: {
                    guard await closing.wait(after: 0) else { return }
                    waiting.end(.failure(NetworkError(EngineFailure(.closed, phase: .receiving), request: run.request)))
                }
            }
        } onCancel: {
            waiting.end(.failure(CancellationError()))
        }.get()
    }
}

/// One who waits for an operation, and may stop to.
private final class Abandonment<Value: Sendable>: Sendable {
    typealias Waiting = UnsafeContinuation<Result<Value, any Error>, Never>

    private struct State {
        var continuation: Waiting?
        var tasks: [Task<Void, Never>] = []
        var result: Result<Value, any Error>?
    }

    private let state = Lock(State())

    func begin(
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
    func end(_ result: Result<Value, any Error>) {
        let (continuation, tasks) = state.withLock { state in
            guard state.result == nil else {
                return (nil as Waiting?, [Task<Void, Never>]())
            }
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
