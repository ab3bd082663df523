// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

extension Interception.Context {
    /// Returns the value of a user's operation, and stops waiting for it when the transfer ends.
    ///
    /// The operation runs in a separate task, with this task's priority and task-local values. When the transfer is
    /// cancelled, or its session closes, that task is cancelled and the caller does not wait for its end.
    /// - Throws: The error that the operation throws; `CancellationError`; `.sessionClosed`.
    package func cancellable<Value: Sendable>(
        _ operation: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let closed = run.session.closed
        return try await race(operation) {
            guard await closed.wait(after: 0) else { return nil }
            return .failure(NetworkError(EngineFailure(.closed, phase: .receiving), request: run.request))
        }
    }
}

/// Returns the result of an operation in a separate task, or the result of `end` when that is first.
///
/// The later task is cancelled and not awaited.
/// - Parameter end: Returns a result that replaces that of the operation; nil lets the operation continue.
/// - Throws: The error that the operation or `end` gives; `CancellationError` when the task is cancelled.
func race<Value: Sendable>(
    _ operation: @escaping @Sendable () async throws -> Value,
    against end: @escaping @Sendable () async -> Result<Value, any Error>?
) async throws -> Value {
    let race = Race<Value>()
    return try await withTaskCancellationHandler {
        await withUnsafeContinuation { continuation in
            race.begin(continuation) {
                do { race.end(.success(try await operation())) } catch { race.end(.failure(error)) }
            } watch: {
                if let result = await end() { race.end(result) }
            }
        }
    } onCancel: {
        race.end(.failure(CancellationError()))
    }.get()
}

/// A wait for an operation, which can end before the operation does.
private final class Race<Value: Sendable>: Sendable {
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

    /// Keeps the first result, and cancels both tasks.
    func end(_ result: Result<Value, any Error>) {
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
