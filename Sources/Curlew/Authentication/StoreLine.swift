// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// Calls a store for one after the other, in the order they come, and to the end whatever becomes of those who wait: a
/// token that is not kept because its request was cancelled could be the only one that another can be got with.
final class StoreLine: Sendable {
    private let store: any TokenStore
    private let last = Lock<Task<Void, Never>?>(nil)

    init(_ store: any TokenStore) { self.store = store }

    /// Uses the store alone.
    ///
    /// - Throws: What the operation throws.
    func use<Value: Sendable>(
        _ operation: @escaping @Sendable (any TokenStore) async throws -> Value
    ) async throws -> Value {
        let turn = last.withLock { last in
            let turn = Task { [store, last] in
                await last?.value
                return try await operation(store)
            }
            last = Task { _ = await turn.result }
            return turn
        }
        return try await turn.value
    }
}
