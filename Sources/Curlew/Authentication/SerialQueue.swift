// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewSupport

/// Calls a token store serially, in the order of the calls.
///
/// A call runs to its end even when its caller is cancelled: the token of a cancelled request must still be saved,
/// because it may be the only one that can fetch another token.
final class SerialQueue: Sendable {
    private let store: any TokenStore
    private let last = Lock<Task<Void, Never>?>(nil)

    init(_ store: any TokenStore) { self.store = store }

    /// Calls the operation after all earlier operations have ended.
    ///
    /// - Throws: The error that the operation throws.
    func use<Value: Sendable>(
        _ operation: @escaping @Sendable (any TokenStore) async throws -> Value
    ) async throws -> Value {
        let nonceUse = last.withLock { last in
            let nonceUse = Task { [store, last] in
                await last?.value
                return try await operation(store)
            }
            last = Task { _ = await nonceUse.result }
            return nonceUse
        }
        return try await nonceUse.value
    }
}
