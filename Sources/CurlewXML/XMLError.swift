// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew
public import FoundationEssentials

/// Why something is no XML that can be read, or no path that can be evaluated.
///
/// It says where and what, with names of the document where they help, and never its text or values.
///
/// ```swift
/// do {
///     _ = try XMLDocument(parsing: data)
/// } catch {
///     print(error.kind, error.line ?? 0, error.message)
/// }
/// ```
public struct XMLError: Error, Sendable, Equatable, CustomStringConvertible {
    /// What went wrong.
    public enum Kind: String, Sendable, Hashable, CaseIterable {
        /// The document is not well-formed, with its namespaces, or ends too early.
        case malformed
        /// A reference to an entity that is none of XML's five: those a document declares are never expanded.
        case undefinedEntity
        /// The document asks for more than ``XMLLimits`` allow.
        case limitExceeded
        /// Nobody here can read the encoding that the document or the server names.
        case unsupportedEncoding
        /// A byte is no character of the document's encoding.
        case invalidEncoding
        /// An XPath expression makes no sense, or takes too long.
        case invalidPath
        /// There is not enough memory.
        case outOfMemory
    }

    /// What went wrong.
    public let kind: Kind
    /// libxml2's number of the mistake (`xmlParserErrors`); 0 where Curlew has found it.
    public let code: Int
    /// What is wrong, in a sentence.
    public let message: String
    /// What to try.
    public let hint: String?
    /// The line, from 1; nil where there is none, as in a path.
    public let line: Int?
    /// The column, from 1; nil where there is none.
    ///
    /// It may be off in lines with characters beyond ASCII.
    public let column: Int?

    init(
        _ kind: Kind, code: Int = 0, _ message: String, hint: String? = nil, line: Int? = nil, column: Int? = nil
    ) {
        self.kind = kind
        self.code = code
        self.message = message
        self.hint = hint
        self.line = line
        self.column = column
    }

    /// One line: place, message and libxml2's number.
    public var description: String {
        let place = line.map { line in "line \(line)" + (column.map { ", column \($0)" } ?? "") + ": " } ?? ""
        return place + message + (code == 0 ? "" : " (libxml2 \(code))")
    }

    /// The same at a place, unless it has one.
    func at(line: Int, column: Int?) -> XMLError {
        self.line == nil ? XMLError(kind, code: code, message, hint: hint, line: line, column: column) : self
    }

    static func limit(_ what: String, _ option: String) -> XMLError {
        XMLError(.limitExceeded, "\(what).", hint: "Raise limits.\(option), if the document is meant to be so.")
    }
}

extension XMLError {
    /// What libxml2's parser says, in words that quote no values.
    ///
    /// - Parameters:
    ///   - code: One of `xmlParserErrors`.
    ///   - text: Its message, which may quote the document.
    init(parser code: Int, _ text: String, line: Int, column: Int) {
        switch code {
        case 2:
            self.init(
                .outOfMemory, code: code, "libxml2 has no memory left, or the document has too many different names.",
                line: line, column: column)
        case 26, 27:
            self.init(
                .undefinedEntity, code: code, Self.brief(text),
                hint:
                    "Only &lt; &gt; &amp; &quot; &apos; and numbers such as &#160; are expanded, never what a document "
                    + "declares.", line: line, column: column)
        case 81:
            self.init(
                .invalidEncoding, code: code, "The document is not in the encoding it declares.", line: line,
                column: column)
        case 1 where text.contains("Huge"):
            self.init(
                .limitExceeded, code: code, "Something in the document is longer than libxml2 reads at once.",
                line: line,
                column: column)
        case 4:
            self.init(
                .malformed, code: code, "The document does not begin with an element.",
                hint: "It is empty, or no XML: look at its first bytes.", line: line, column: column)
        case 80:
            // Its message quotes the comment.
            self.init(.malformed, code: code, "There is “--” inside of a comment.", line: line, column: column)
        default: self.init(.malformed, code: code, Self.brief(text), line: line, column: column)
        }
    }

    /// A path that cannot be evaluated, in libxml2's words.
    init(path code: Int, _ text: String, _ path: String) {
        let message = Self.brief(text.isEmpty ? "It cannot be evaluated" : text)
        self.init(
            .invalidPath, code: code, "The path “\(Self.brief(path, end: ""))” cannot be evaluated: \(message)",
            hint: code == 1219 ? "Give its prefixes: namespaces: [\"prefix\": \"URI\"]." : nil)
    }

    /// Its first line, not too long, and as a sentence.
    private static func brief(_ text: String, end: String = ".") -> String {
        let line = text.unicodeScalars.prefix { $0 != "\n" }
        let shown = line.prefix(160).map { $0.value < 0x20 || $0.value == 0x7F ? "?" : Character($0) }
        let sentence = String(shown) + (line.count > 160 ? "…" : "")
        return sentence.hasSuffix(".") || sentence.hasSuffix("…") ? sentence : sentence + end
    }
}

extension NetworkError {
    /// What an error of XML means to whoever asked for the response.
    init(_ error: XMLError) {
        self.init(
            .decodingFailed, phase: .decoding, "The body is no XML that can be read: \(error)", hint: error.hint,
            cause: error)
    }
}

extension XMLError: LocalizedError {
    /// The description, which is also `localizedDescription`: place, message and libxml2's number.
    public var errorDescription: String? { description }

    /// The hint, if there is one.
    public var recoverySuggestion: String? { hint }
}
