// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// What came before a response: why the tries before it failed, and why there was no other, where it was wanted.
final class TryHistory: Sendable {
    let earlier: [NetworkError]
    private let end: String?
    private let duration: Duration

    /// - Parameter end: Why there was no other try; nil where that is plain to see, or none was wanted.
    init(earlier: [NetworkError], end: String?, duration: Duration) {
        self.earlier = earlier
        self.end = end
        self.duration = duration
    }

    /// An error about the response, with everything that is known of the tries.
    func completing(_ error: NetworkError) -> NetworkError {
        let all = error.with(attempts: earlier.count + 1, earlier: earlier, duration: duration)
        return end.map { all.adding(hint: $0) } ?? all
    }
}

extension NetworkError {
    /// A copy whose hint has another sentence.
    func adding(hint: String) -> NetworkError { with(hint: self.hint.map { "\($0) \(hint)" } ?? hint) }
}
