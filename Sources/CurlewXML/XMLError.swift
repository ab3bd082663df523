// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew
public import FoundationEssentials

/// An error that occurs while a document is parsed or an XPath expression is evaluated.
///
/// The error has the position and a message. The message may contain names from the document, but never its text or
/// values.
///
/// ```swift
/// do {
///     _ = try XMLDocument(parsing: data)
/// } catch {
///     print(error.kind, error.line ?? 0, error.message)
/// }
/// ```
public struct XMLError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The kind of an error.
    public enum Kind: String, Sendable, Hashable, CaseIterable {
        /// The document is not well-formed or not namespace-well-formed, or it ends too early.
        case malformed
        /// A reference names an entity other than XML's five predefined ones; entities of the document are never
        /// expanded.
        case undefinedEntity
        /// The document exceeds the ``XMLLimits``.
        case limitExceeded
        /// The document or the server names an encoding that is not supported.
        case unsupportedEncoding
        /// A byte is invalid in the document's encoding.
        case invalidEncoding
        /// An XPath expression is invalid or takes too long.
        case invalidPath
        /// There is not enough memory.
        case outOfMemory
    }

    /// The kind of the error.
    public let kind: Kind
    /// libxml2's error code (`xmlParserErrors`); 0 if Curlew detected the error.
    public let code: Int
    /// The description of the error in one sentence.
    public let message: String
    /// A suggestion for fixing the error.
    public let hint: String?
    /// The line, from 1; nil if the error has no line, such as an error in a path.
    public let line: Int?
    /// The column, from 1; nil if the error has no column.
    ///
    /// The column may be inexact in lines with non-ASCII characters.
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

    /// One line with position, message and libxml2's error code.
    public var description: String {
        let place = line.map { line in "line \(line)" + (column.map { ", column \($0)" } ?? "") + ": " } ?? ""
        return place + message + (code == 0 ? "" : " (libxml2 \(code))")
    }

    /// Returns the error with a position, unless it already has one.
    func at(line: Int, column: Int?) -> XMLError {
        self.line == nil ? XMLError(kind, code: code, message, hint: hint, line: line, column: column) : self
    }

    static func limit(_ what: String, _ option: String) -> XMLError {
        XMLError(.limitExceeded, "\(what).", hint: "If the document is correct, raise limits.\(option).")
    }
}

extension XMLError {
    /// Creates an error from an error of libxml2's parser, with a message that quotes no values of the document.
    ///
    /// - Parameters:
    ///   - code: One of `xmlParserErrors`.
    ///   - text: libxml2's message, which may quote the document.
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
                    "Only &lt; &gt; &amp; &quot; &apos; and numbers such as &#160; are expanded, never entities that a "
                    + "document declares.", line: line, column: column)
        case 81:
            self.init(
                .invalidEncoding, code: code, "The document is not in the encoding it declares.", line: line,
                column: column)
        case 1 where text.contains("Huge"):
            self.init(
                .limitExceeded, code: code, "A part of the document is longer than libxml2 can read at once.",
                line: line,
                column: column)
        case 4:
            self.init(
                .malformed, code: code, "The document does not begin with an element.",
                hint: "The document is empty or not XML: check its first bytes.", line: line, column: column)
        case 80:
            // Replace libxml2's message, because it quotes the comment.
            self.init(.malformed, code: code, "A comment contains “--”.", line: line, column: column)
        default: self.init(.malformed, code: code, Self.brief(text), line: line, column: column)
        }
    }

    /// Creates an error for a path that cannot be evaluated, with libxml2's message.
    init(path code: Int, _ text: String, _ path: String) {
        let message = Self.brief(text.isEmpty ? "It cannot be evaluated" : text)
        self.init(
            .invalidPath, code: code, "The path “\(Self.brief(path, end: ""))” cannot be evaluated: \(message)",
            hint: code == 1219 ? "Pass the prefixes of the path: namespaces: [\"prefix\": \"URI\"]." : nil)
    }

    /// Returns the first line of a text, shortened and as a sentence.
    private static func brief(_ text: String, end: String = ".") -> String {
        let line = text.unicodeScalars.prefix { $0 != "\n" }
        let shown = line.prefix(160).map { $0.value < 0x20 || $0.value == 0x7F ? "?" : Character($0) }
        let sentence = String(shown) + (line.count > 160 ? "…" : "")
        return sentence.hasSuffix(".") || sentence.hasSuffix("…") ? sentence : sentence + end
    }
}

extension NetworkError {
    /// Wraps a parser's error for the caller of a request.
    init(_ error: XMLError, format: String = "XML") {
        self.init(
            .decodingFailed, phase: .decoding, "The body cannot be parsed as \(format): \(error)", hint: error.hint,
            cause: error)
    }
}

extension XMLError: LocalizedError {
    /// The description, which is also `localizedDescription`: position, message and libxml2's error code.
    public var errorDescription: String? { description }

    /// The hint, or nil without a hint.
    public var recoverySuggestion: String? { hint }
}
