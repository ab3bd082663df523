// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

extension TrustFailure {
    /// The error thrown by initializers for unusable certificates, pins, lists, keys or patterns.
    public struct InvalidPolicy: Error, Hashable, Sendable, CustomStringConvertible {
        /// The problem, in one sentence without secrets.
        public let message: String
        /// A suggestion for a fix, if there is one.
        public let hint: String?

        /// Creates an error.
        ///
        /// - Parameters:
        ///   - message: The problem, in one sentence without secrets.
        ///   - hint: A suggestion for a fix; nil by default.
        public init(_ message: String, hint: String? = nil) {
            self.message = message
            self.hint = hint
        }

        /// The message and the hint.
        public var description: String { hint.map { "\(message) \($0)" } ?? message }
    }
}

extension TrustFailure.InvalidPolicy: LocalizedError {
    /// The message, which is also `localizedDescription`.
    public var errorDescription: String? { message.escapingControls }

    /// The hint, if there is one.
    public var recoverySuggestion: String? { hint?.escapingControls }
}
