// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// An immutable HTML page, parsed as a whole by libxml2's tolerant HTML parser.
///
/// Mistakes in the markup are no errors: missing end tags are added, wrong ones are ignored, and `<html>` and `<body>`
/// are added where they are missing. Names of elements and attributes are in lower case and have no namespace; elements
/// also lose a prefix such as that of `<o:p>`. The ``XMLNode/document`` of a node is the same tree as an
/// ``XMLDocument``. The parser runs no script and loads nothing. ``XMLLimits`` limit the size.
///
/// ```swift
/// let page = try HTMLDocument(parsing: data)
/// for heading in try page.nodes("//h2[@id]") { print(heading["id"] ?? "", heading.text) }
/// ```
public struct HTMLDocument: Sendable, CustomStringConvertible {
    private let tree: XMLDocument

    /// Parses a complete page.
    ///
    /// The call runs in the calling task and takes time and memory in proportion to the page.
    /// - Parameters:
    ///   - data: The bytes, in the encoding of the byte order mark, of `charset`, or of the `<meta>` element in the
    ///     first 1024 bytes, in this order of precedence (HTML §13.2.3.2). Without any of them, the first character
    ///     outside ASCII decides: UTF-8 if it is valid in UTF-8, otherwise windows-1252. Invalid bytes and U+0000
    ///     become U+FFFD.
    ///   - charset: The encoding, if it is known from another source, as a label of the WHATWG Encoding Standard; an
    ///     unknown label has no effect.
    ///   - limits: The limits for the page.
    /// - Throws: `XMLError`: `.limitExceeded`, `.unsupportedEncoding` if glibc's table of the encoding is not
    ///   installed, or `.outOfMemory`.
    public init(parsing data: Data, charset: String? = nil, limits: XMLLimits = XMLLimits()) throws(XMLError) {
        let reader = try PageReader(charset: charset, limits: limits)
        try reader.append(data)
        self.init(try reader.finish())
    }

    /// Parses a page while it arrives; the sizes of the chunks do not affect the result.
    ///
    /// - Parameters:
    ///   - chunks: The bytes, in chunks of any size.
    ///   - charset: The encoding, if it is known from another source.
    ///   - limits: The limits for the page.
    /// - Throws: `XMLError` like ``init(parsing:charset:limits:)``, or the error of the sequence.
    public init<Chunks: AsyncSequence>(
        parsing chunks: Chunks, charset: String? = nil, limits: XMLLimits = XMLLimits()
    ) async throws where Chunks.Element: Sequence<UInt8> {
        let reader = try PageReader(charset: charset, limits: limits)
        for try await chunk in chunks { try reader.append(chunk) }
        self.init(try reader.finish())
    }

    init(_ tree: HTMLTree) { self.tree = XMLDocument(tree) }

    /// The root element, `<html>`.
    public var root: XMLNode { tree.root }

    /// The document node, whose children are the root element and the comments and processing instructions beside it.
    public var node: XMLNode { tree.node }

    /// The page as HTML text in the form of the HTML standard (§13.3); see ``XMLNode/html``.
    ///
    /// The text begins with `<!DOCTYPE html>`, also if the page has another document type.
    public var html: String { node.html }

    /// The text of the first `<title>` without white space at its ends, and with one blank for other white space; nil
    /// without a title (HTML §3.1.5).
    public var title: String? {
        guard let title = try? nodes("(//title[not(ancestor::svg)])[1]").first else { return nil }
        return title.text.split { " \t\n\u{C}\r".contains($0) }.joined(separator: " ")
    }

    /// Returns the targets of the links, which are the `href` of `<a>` and `<area>`, in document order.
    ///
    /// Relative targets are resolved against the first `<base href>`, or against the page's URL without one
    /// (HTML §2.4.3). Targets that are not URLs are omitted; targets of any scheme, such as `mailto`, are included.
    /// - Parameter page: The URL of the page, such as that of the response after redirects.
    public func links(at page: URL) -> [URL] {
        let base = (try? string("(//base/@href)[1]")).flatMap { $0.isEmpty ? nil : Self.resolve($0, page) } ?? page
        let targets = (try? nodes("//*[self::a or self::area]/@href")) ?? []
        return targets.compactMap { Self.resolve($0.text, base) }
    }

    /// Resolves a reference without the white space that URLs may not contain (WHATWG URL §4.4).
    private static func resolve(_ reference: String, _ base: URL) -> URL? {
        let bytes = reference.utf8.filter { ![0x09, 0x0A, 0x0D].contains($0) }
        let trimmed = bytes.drop { $0 <= 0x20 }.reversed().drop { $0 <= 0x20 }.reversed()
        // Foundation has no URL for an empty reference, which means the page itself.
        if trimmed.isEmpty { return base }
        return URL(string: String(decoding: Array(trimmed), as: UTF8.self), relativeTo: base)?.absoluteURL
    }

    /// The kind of the document, without any content of the page.
    public var description: String { "HTML document" }
}

extension HTMLDocument {
    /// Returns the nodes that an XPath expression selects, in document order; see ``XMLNode/nodes(_:namespaces:)``.
    ///
    /// - Parameter path: An XPath 1.0 expression, evaluated from the document, with names in lower case.
    /// - Throws: `XMLError` of kind `.invalidPath`.
    public func nodes(_ path: String) throws(XMLError) -> [XMLNode] { try node.nodes(path) }

    /// Returns the result of an XPath expression; see ``XMLNode/evaluate(_:namespaces:)``.
    ///
    /// - Parameter path: An XPath 1.0 expression, evaluated from the document, with names in lower case.
    /// - Throws: `XMLError` of kind `.invalidPath`.
    public func evaluate(_ path: String) throws(XMLError) -> XPathValue { try node.evaluate(path) }

    /// Returns the result of an XPath expression as text; see ``XMLNode/string(_:namespaces:)``.
    ///
    /// - Parameter path: An XPath 1.0 expression, evaluated from the document, with names in lower case.
    /// - Throws: `XMLError` of kind `.invalidPath`.
    public func string(_ path: String) throws(XMLError) -> String { try node.string(path) }
}
