// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The errors of the attempts before a response, and the reason why a wanted retry did not happen.
final class AttemptHistory: Sendable {
    let earlier: [NetworkError]
    private let end: String?
    private let duration: Duration

    /// - Parameter end: The reason for no further attempt; nil if it is obvious, or if no attempt was wanted.
    init(earlier: [NetworkError], end: String?, duration: Duration) {
        self.earlier = earlier
        self.end = end
        self.duration = duration
    }

    /// Returns an error about the response with everything known about the attempts.
    func completing(_ error: NetworkError) -> NetworkError {
        let all = error.with(attempts: earlier.count + 1, earlier: earlier, duration: duration)
        return end.map { all.adding(hint: $0) } ?? all
    }
}

extension NetworkError {
    /// Returns a copy whose hint ends with another sentence.
    func adding(hint: String) -> NetworkError { with(hint: self.hint.map { "\($0) \(hint)" } ?? hint) }
}
