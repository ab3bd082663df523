// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Runs only the newest of several operations for one slot, such as a cell of a list, so that a late result never
/// replaces a newer one.
///
/// ```swift
/// let slot = LatestOnly()
/// if let image = try await slot.run(url, { try await loader.image(Request(url)).image }) {
///     show(image)
/// }
/// ```
///
/// A new operation cancels the task of the one before it, whose call returns nil. An operation with the identity of the
/// one that runs does not start, and its call returns nil at once, because the running one delivers the result.
/// Copies share their state.
public struct LatestOnly: Sendable {
    private let slots = Keyed<Bool>()

    /// Creates a slot without an operation.
    public init() {}

    /// Whether an operation runs.
    public var isRunning: Bool { get async { await slots.isRunning(true) } }

    /// Runs an operation unless one with the same identity runs, and cancels any other one.
    ///
    /// - Parameters:
    ///   - identity: The identity of the result, such as a URL; equal identities are the same operation.
    ///   - operation: The operation, which runs in a task of its own with the priority of the caller.
    /// - Returns: The result; nil if a newer operation began or ``cancel()`` was called before the result, or if the
    ///   same operation runs already.
    /// - Throws: The error of the operation, if it is the newest one; `CancellationError` if the caller was cancelled.
    public func run<Value: Sendable>(
        _ identity: some Hashable & Sendable, _ operation: @escaping @Sendable () async throws -> Value
    ) async throws -> Value? {
        try await slots.run(true, identity, operation)
    }

    /// Cancels the operation; its call returns nil.
    public func cancel() async { await slots.cancel(true) }
}

extension LatestOnly {
    /// Several slots with keys, such as the states of a button, each with its own newest operation.
    ///
    /// ```swift
    /// let slots = LatestOnly.Keyed<String>()
    /// let image = try await slots.run("background", url) { try await loader.image(Request(url)).image }
    /// ```
    public actor Keyed<Key: Hashable & Sendable> {
        private struct Operation {
            let number: UInt64
            let identity: AnyHashable
            let isCancelled: () -> Bool
            let cancel: () -> Void
        }

        private var running: [Key: Operation] = [:]
        private var last: UInt64 = 0

        /// Creates slots without operations.
        public init() {}

        /// Returns whether an operation runs for a key.
        ///
        /// - Parameter key: The key of the slot.
        public func isRunning(_ key: Key) -> Bool { running[key] != nil }

        /// Runs an operation unless one with the same key and identity runs, and cancels any other one of the key.
        ///
        /// - Parameters:
        ///   - key: The key of the slot.
        ///   - identity: The identity of the result, such as a URL; equal identities are the same operation.
        ///   - operation: The operation, which runs in a task of its own with the priority of the caller.
        /// - Returns: The result; nil if a newer operation of the key began or ``cancel(_:)`` was called before the
        ///   result, or if the same operation runs already.
        /// - Throws: The error of the operation, if it is the newest one; `CancellationError` if the caller was
        ///   cancelled.
        public func run<Value: Sendable>(
            _ key: Key, _ identity: some Hashable & Sendable, _ operation: @escaping @Sendable () async throws -> Value
        ) async throws -> Value? {
            try Task.checkCancellation()
            let identity = AnyHashable(identity)
            if let current = running[key], current.identity == identity, !current.isCancelled() { return nil }
            cancel(key)
            last += 1
            let number = last
            let task = Task { try await operation() }
            running[key] = Operation(
                number: number, identity: identity, isCancelled: { task.isCancelled }, cancel: { task.cancel() })
            let result = await withTaskCancellationHandler {
                await task.result
            } onCancel: {
                task.cancel()
            }
            guard running[key]?.number == number else { return nil }
            running[key] = nil
            if Task.isCancelled { throw CancellationError() }
            return try result.get()
        }

        /// Cancels the operation of a key; its call returns nil.
        ///
        /// - Parameter key: The key of the slot.
        public func cancel(_ key: Key) { running.removeValue(forKey: key)?.cancel() }

        /// Cancels all operations; their calls return nil.
        public func cancelAll() {
            for operation in running.values { operation.cancel() }
            running = [:]
        }
    }
}
