// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CXML2
internal import Curlew
public import FoundationEssentials

/// An immutable XML document, parsed as a whole.
///
/// The parser does not expand entities that the document declares, does not load external resources, and uses only the
/// default attributes of the document type declaration. ``XMLLimits`` limit the size. If a file also imports
/// FoundationXML, write `CurlewXML.XMLDocument` for this class and `FoundationXML.XMLDocument` for the other.
///
/// ```swift
/// let feed = try XMLDocument(parsing: data)
/// for entry in try feed.nodes("//a:entry", namespaces: ["a": "http://www.w3.org/2005/Atom"]) {
///     print(try entry.string("a:title", namespaces: ["a": "http://www.w3.org/2005/Atom"]))
/// }
/// ```
public final class XMLDocument: @unchecked Sendable, CustomStringConvertible {
    // Safe because no code changes the tree after `init`. All our functions only read it, and so do the libxml2
    // functions that we call: each query has its own XPath context, and nodes are serialized one by one, because
    // serializing a whole document temporarily sets its encoding. Memory that a call allocates belongs to that call.
    // The tree is freed with the last reference, and each node holds a reference.
    let raw: xmlDocPtr

    private init(_ raw: xmlDocPtr) { self.raw = raw }

    /// Takes the ownership of a page's tree.
    init(_ page: HTMLTree) { raw = page.raw }

    deinit { xmlFreeDoc(raw) }

    /// Parses a complete document.
    ///
    /// The call runs in the calling task and takes time and memory in proportion to the document.
    /// - Parameters:
    ///   - data: The bytes, in the encoding of the byte order mark, of `charset` or of the document's declaration, in
    ///     this order of precedence; UTF-8 without any of them.
    ///   - charset: The encoding, if it is known from another source (RFC 7303 §3).
    ///   - limits: The limits for the document.
    /// - Throws: `XMLError`: `.malformed`, `.undefinedEntity`, `.limitExceeded`, `.unsupportedEncoding`,
    ///   `.invalidEncoding` or `.outOfMemory`.
    public convenience init(parsing data: Data, charset: String? = nil, limits: XMLLimits = XMLLimits())
        throws(XMLError)
    {
        let builder = try XMLDocumentBuilder(charset: charset, limits: limits)
        try builder.append(data)
        self.init(try builder.tree())
    }

    /// Parses a document while it arrives.
    ///
    /// - Parameters:
    ///   - chunks: The bytes, in chunks of any size.
    ///   - charset: The encoding, if it is known from another source.
    ///   - limits: The limits for the document.
    /// - Throws: `XMLError` like ``init(parsing:charset:limits:)``, or the error of the sequence.
    public convenience init<Chunks: AsyncSequence>(
        parsing chunks: Chunks, charset: String? = nil, limits: XMLLimits = XMLLimits()
    ) async throws where Chunks.Element: Sequence<UInt8> {
        let builder = try XMLDocumentBuilder(charset: charset, limits: limits)
        for try await chunk in chunks { try builder.append(chunk) }
        self.init(try builder.tree())
    }

    /// The root element.
    public var root: XMLNode { XMLNode(self, xmlDocGetRootElement(raw) ?? documentNode) }

    /// The document node, whose children are the root element and the comments and processing instructions beside it.
    public var node: XMLNode { XMLNode(self, documentNode) }

    private var documentNode: xmlNodePtr { UnsafeMutableRawPointer(raw).assumingMemoryBound(to: xmlNode.self) }

    /// The document in UTF-8, with an XML declaration and without its document type declaration.
    public var data: Data { Data(xml.utf8) }

    /// The document as text, with an XML declaration and without its document type declaration.
    public var xml: String {
        #"<?xml version="1.0" encoding="UTF-8"?>"# + "\n" + node.children.map { $0.xml + "\n" }.joined()
    }

    /// The name of the root element, without any content of the document.
    public var description: String { "XML document <\(root.name?.qualified ?? "")>" }
}

extension XMLDocument {
    /// Returns the nodes that an XPath expression selects, in document order; see ``XMLNode/nodes(_:namespaces:)``.
    ///
    /// - Parameters:
    ///   - path: An XPath 1.0 expression, evaluated from the document.
    ///   - namespaces: The URIs of the prefixes in the expression.
    /// - Throws: `XMLError` of kind `.invalidPath`.
    public func nodes(_ path: String, namespaces: [String: String] = [:]) throws(XMLError) -> [XMLNode] {
        try node.nodes(path, namespaces: namespaces)
    }

    /// Returns the result of an XPath expression; see ``XMLNode/evaluate(_:namespaces:)``.
    ///
    /// - Parameters:
    ///   - path: An XPath 1.0 expression, evaluated from the document.
    ///   - namespaces: The URIs of the prefixes in the expression.
    /// - Throws: `XMLError` of kind `.invalidPath`.
    public func evaluate(_ path: String, namespaces: [String: String] = [:]) throws(XMLError) -> XPathValue {
        try node.evaluate(path, namespaces: namespaces)
    }

    /// Returns the result of an XPath expression as text; see ``XMLNode/string(_:namespaces:)``.
    ///
    /// - Parameters:
    ///   - path: An XPath 1.0 expression, evaluated from the document.
    ///   - namespaces: The URIs of the prefixes in the expression.
    /// - Throws: `XMLError` of kind `.invalidPath`.
    public func string(_ path: String, namespaces: [String: String] = [:]) throws(XMLError) -> String {
        try node.string(path, namespaces: namespaces)
    }
}

/// A builder that makes a document from chunks of bytes.
final class XMLDocumentBuilder {
    private let context: TreeContext
    private let reader: DocumentReader

    init(charset: String?, limits: XMLLimits) throws(XMLError) {
        context = try TreeContext(limits)
        reader = DocumentReader(context, charset: charset)
    }

    func append(_ bytes: some Sequence<UInt8>) throws(XMLError) {
        // Parse in steps, so that only a small part is in memory twice.
        let bytes = Array(bytes)
        var start = 0
        while start < bytes.count {
            let end = min(bytes.count, start + parsingStep)
            reader.take(bytes[start..<end])
            try check()
            start = end
        }
    }

    /// Finishes the document and returns the tree, which the caller owns.
    func tree() throws(XMLError) -> xmlDocPtr {
        reader.finish()
        try check()
        guard let tree = context.takeTree() else { throw XMLError(.malformed, "There is no document.") }
        return tree
    }

    private func check() throws(XMLError) {
        if let failure = reader.failure { throw failure }
        if reader.count > context.limits.document.bytes {
            throw .limit("The document is longer than \(context.limits.document)", "document")
        }
    }
}
