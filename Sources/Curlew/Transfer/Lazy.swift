// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewSupport

/// A value that is made once, at the first call, and shared by all callers.
package final class Lazy<Output: Sendable>: Sendable {
    private let task = Lock<Task<Result<Output, NetworkError>, Never>?>(nil)
    private let keepsFailure: Bool

    /// Creates an empty value.
    ///
    /// - Parameter keepsFailure: Whether a failure is kept; if false, the next call after a failure makes the value
    ///   again.
    package init(keepsFailure: Bool = true) { self.keepsFailure = keepsFailure }

    /// Returns the value or throws the error; concurrent callers get the same one.
    ///
    /// - Parameter make: Makes the value, in a task of its own, so that it does not depend on any of the calling tasks.
    package func value(
        _ make: @escaping @Sendable () async throws(NetworkError) -> Output
    ) async throws(NetworkError) -> Output {
        let task = task.withLock { task in
            if let task { return task }
            let made = Task { () async -> Result<Output, NetworkError> in
                do throws(NetworkError) {
                    return .success(try await make())
                } catch {
                    if !self.keepsFailure { self.task.withLock { $0 = nil } }
                    return .failure(error)
                }
            }
            task = made
            return made
        }
        return try await task.value.get()
    }
}
