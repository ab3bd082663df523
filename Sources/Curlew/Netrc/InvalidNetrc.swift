// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// Why a `.netrc` file cannot be read: the line, and what is wrong there, never what stands there.
///
/// ```swift
/// if let flaw = error.cause as? InvalidNetrc { print("Look at line \(flaw.line).") }
/// ```
public struct InvalidNetrc: Error, Sendable, Hashable, CustomStringConvertible {
    /// What is wrong.
    public enum Reason: String, Sendable, Hashable, CaseIterable {
        /// A word that is no keyword stands where one has to.
        case unknownKeyword
        /// The file ends where something belongs to a keyword.
        case noValue
        /// A name or password comes before the first machine.
        case noMachine
        /// An entry follows the one for all others, so that it would never be found.
        case entryAfterDefault
        /// A quotation mark is not closed in its line.
        case unterminatedQuote
        /// A word is not UTF-8.
        case notUTF8
    }

    /// The line, from 1.
    public let line: Int
    /// What is wrong there.
    public let reason: Reason

    init(_ line: Int, _ reason: Reason) {
        self.line = line
        self.reason = reason
    }

    /// One sentence, without what stands in the file.
    public var description: String {
        switch reason {
        case .unknownKeyword: "Line \(line) has a word where a keyword should be."
        case .noValue: "Line \(line) has a keyword with nothing after it."
        case .noMachine: "Line \(line) says something before any machine is named."
        case .entryAfterDefault: "Line \(line) has an entry after “default”, which has to be the last."
        case .unterminatedQuote: "Line \(line) has a quotation mark that is not closed."
        case .notUTF8: "Line \(line) is not UTF-8."
        }
    }
}

extension InvalidNetrc: LocalizedError {
    /// The description, which is also `localizedDescription`.
    public var errorDescription: String? { description }
}
