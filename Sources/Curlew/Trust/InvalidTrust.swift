// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// Why certificates, pins, lists, keys or patterns cannot be used: what is wrong with them, said when they are given.
public struct InvalidTrust: Error, Hashable, Sendable, CustomStringConvertible {
    /// What is wrong, in one sentence without secrets.
    public let message: String
    /// What to try, if there is something.
    public let hint: String?

    /// Makes an error.
    ///
    /// - Parameters:
    ///   - message: What is wrong, in one sentence without secrets.
    ///   - hint: What to try; nothing unless given.
    public init(_ message: String, hint: String? = nil) {
        self.message = message
        self.hint = hint
    }

    /// The message and the hint.
    public var description: String { hint.map { "\(message) \($0)" } ?? message }
}

extension InvalidTrust: LocalizedError {
    /// The message, which is also `localizedDescription`.
    public var errorDescription: String? { message.escapingControls }

    /// The hint, if there is one.
    public var recoverySuggestion: String? { hint?.escapingControls }
}
