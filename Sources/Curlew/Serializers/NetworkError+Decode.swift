// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

extension NetworkError {
    /// What the server said about a failure, read as a value: most explain a refused status in JSON.
    ///
    /// An error keeps the first 64 KiB of the body of a refused response, so a longer one cannot be decoded.
    ///
    /// ```swift
    /// if let problem = error.decode(ProblemDetails.self) { print(problem.title ?? "") }
    /// ```
    ///
    /// - Parameters:
    ///   - type: What to read; ``ProblemDetails`` is what RFC 9457 standardises.
    ///   - format: How it is written; JSON unless given.
    /// - Returns: Nil when there is no body, and when it is something else.
    public func decode<T: Decodable>(_ type: T.Type = T.self, by format: some ResponseFormat = JSON()) -> T? {
        guard let response, !body.isEmpty else { return nil }
        return try? format.decode(type, from: Data(body), of: response)
    }
}
