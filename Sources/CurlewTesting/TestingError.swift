// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// What went wrong while a server or a certificate was being made.
public struct TestingError: Error, Sendable, CustomStringConvertible {
    /// What was tried and why it failed, in one line.
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
