// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// An error that occurs while a server or a certificate is being made.
public struct TestingError: Error, Sendable, CustomStringConvertible {
    /// The failed action and the reason, in one line.
    public let description: String

    init(_ description: String) {
        self.description = description
    }

    static func system(_ call: String, _ code: Int32) -> TestingError {
        TestingError("\(call) failed with errno \(code).")
    }
}

extension TestingError: LocalizedError {
    /// The description, which is also `localizedDescription`.
    public var errorDescription: String? { description }
}
