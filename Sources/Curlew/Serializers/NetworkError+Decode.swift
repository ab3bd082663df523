// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

extension NetworkError {
    /// Returns the body of the refused response as a value; most servers explain a failure in JSON.
    ///
    /// An error keeps the first 64 KiB of the body of a refused response, so a longer one cannot be decoded.
    ///
    /// ```swift
    /// if let problem = error.decode(ProblemDetails.self) { print(problem.title ?? "") }
    /// ```
    ///
    /// - Parameters:
    ///   - type: The type of the value; ``ProblemDetails`` is the format that RFC 9457 standardises.
    ///   - format: The format of the body; JSON unless given.
    /// - Returns: The value; nil when there is no body, or when it cannot be decoded.
    public func decode<T: Decodable>(_ type: T.Type = T.self, by format: some ResponseFormat = JSON()) -> T? {
        guard let response, !body.isEmpty else { return nil }
        return try? format.decode(type, from: Data(body), of: response)
    }
}
