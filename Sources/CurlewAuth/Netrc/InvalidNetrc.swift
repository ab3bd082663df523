// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew
public import FoundationEssentials

/// The reason why a `.netrc` file cannot be read: the line and the kind of error, but never the text of the file.
///
/// ```swift
/// if let flaw = error.cause as? InvalidNetrc { print("Look at line \(flaw.line).") }
/// ```
public struct InvalidNetrc: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of error.
    public enum Reason: String, Sendable, Hashable, CaseIterable {
        /// A word that is not a keyword occurs in the position of a keyword.
        case unknownKeyword
        /// The file ends before the value of a keyword.
        case noValue
        /// A name or password precedes the first machine.
        case noMachine
        /// An entry follows the `default` entry, so it would never be found.
        case entryAfterDefault
        /// A quotation mark is not closed on its line.
        case unterminatedQuote
        /// A word is not UTF-8.
        case notUTF8
    }

    /// The number of the line, from 1.
    public let line: Int
    /// The kind of error on that line.
    public let reason: Reason

    init(_ line: Int, _ reason: Reason) {
        self.line = line
        self.reason = reason
    }

    /// One sentence, without text of the file.
    public var description: String {
        switch reason {
        case .unknownKeyword: "Line \(line) has an unknown word in the position of a keyword."
        case .noValue: "Line \(line) has a keyword without a value."
        case .noMachine: "Line \(line) has a value before the first “machine”."
        case .entryAfterDefault: "Line \(line) has an entry after “default”, which must be the last entry."
        case .unterminatedQuote: "Line \(line) has a quotation mark that is not closed."
        case .notUTF8: "Line \(line) is not UTF-8."
        }
    }
}

extension InvalidNetrc: LocalizedError {
    /// The description, which is also `localizedDescription`.
    public var errorDescription: String? { description }
}
