// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewSupport

/// What is made once, by the first who asks, for all who ask.
final class OnceMade<Output: Sendable>: Sendable {
    private let task = Lock<Task<Result<Output, NetworkError>, Never>?>(nil)
    private let keepsFailure: Bool

    /// - Parameter keepsFailure: Whether a failure is the end of it; if not, whoever asks later has it made again.
    init(keepsFailure: Bool = true) { self.keepsFailure = keepsFailure }

    /// The output, or why there is none: the same for all who ask at the same time.
    ///
    /// - Parameter make: Makes it, in a task of its own, so that no one of those who ask carries it for the others.
    func value(
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
