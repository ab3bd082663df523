// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CXML2
internal import Curlew
public import FoundationEssentials

/// An XML document, read as a whole; nothing can change it.
///
/// Entities that the document declares are not expanded, nothing it names is read, and of its document type declaration
/// only the attributes by default are taken. ``XMLLimits`` say how large it may be. Where FoundationXML is imported too,
/// its class of the same name is `FoundationXML.XMLDocument`, and this one `CurlewXML.XMLDocument`.
///
/// ```swift
/// let feed = try XMLDocument(parsing: data)
/// for entry in try feed.nodes("//a:entry", namespaces: ["a": "http://www.w3.org/2005/Atom"]) {
///     print(try entry.string("a:title", namespaces: ["a": "http://www.w3.org/2005/Atom"]))
/// }
/// ```
public final class XMLDocument: @unchecked Sendable, CustomStringConvertible {
    // Safe because the tree is never written after `init`: all our functions read it alone, libxml2's are those that do
    // the same (an XPath context is made for each query, and nodes are written one by one, since writing a document as
    // a whole sets its encoding for a moment), and what they allocate belongs to the call. It is freed with the last
    // reference, and each node holds one.
    let raw: xmlDocPtr

    private init(_ raw: xmlDocPtr) { self.raw = raw }

    deinit { xmlFreeDoc(raw) }

    /// Parses a document that is at hand.
    ///
    /// Takes time and memory in proportion to it, in the calling task.
    /// - Parameters:
    ///   - data: The bytes, in the encoding that a byte order mark, `charset` or the document names, in this order; UTF-8
    ///     when none does.
    ///   - charset: The encoding, where it is known from elsewhere (RFC 7303 §3).
    ///   - limits: What the document may ask for.
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
    ///   - chunks: The bytes, in pieces of any size.
    ///   - charset: The encoding, where it is known from elsewhere.
    ///   - limits: What the document may ask for.
    /// - Throws: `XMLError` as ``init(parsing:charset:limits:)``, or what the sequence throws.
    public convenience init<Chunks: AsyncSequence>(
        parsing chunks: Chunks, charset: String? = nil, limits: XMLLimits = XMLLimits()
    ) async throws where Chunks.Element: Sequence<UInt8> {
        let builder = try XMLDocumentBuilder(charset: charset, limits: limits)
        for try await chunk in chunks { try builder.append(chunk) }
        self.init(try builder.tree())
    }

    /// The element that holds all others.
    public var root: XMLNode { XMLNode(self, xmlDocGetRootElement(raw) ?? documentNode) }

    /// The document as the node above its root, with the comments and processing instructions beside that.
    public var node: XMLNode { XMLNode(self, documentNode) }

    private var documentNode: xmlNodePtr { UnsafeMutableRawPointer(raw).assumingMemoryBound(to: xmlNode.self) }

    /// The document in UTF-8, with an XML declaration and without its document type declaration.
    public var data: Data { Data(xml.utf8) }

    /// The same as text.
    public var xml: String {
        #"<?xml version="1.0" encoding="UTF-8"?>"# + "\n" + node.children.map { $0.xml + "\n" }.joined()
    }

    /// What it is, and never what it says.
    public var description: String { "XML document <\(root.name?.qualified ?? "")>" }
}

extension XMLDocument {
    /// The nodes that an XPath expression selects, in the order of the document; see ``XMLNode/nodes(_:namespaces:)``.
    ///
    /// - Parameters:
    ///   - path: An expression of XPath 1.0, evaluated from the document.
    ///   - namespaces: The URIs that its prefixes stand for.
    /// - Throws: `XMLError` of kind `.invalidPath`.
    public func nodes(_ path: String, namespaces: [String: String] = [:]) throws(XMLError) -> [XMLNode] {
        try node.nodes(path, namespaces: namespaces)
    }

    /// What an XPath expression gives; see ``XMLNode/evaluate(_:namespaces:)``.
    ///
    /// - Parameters:
    ///   - path: An expression of XPath 1.0, evaluated from the document.
    ///   - namespaces: The URIs that its prefixes stand for.
    /// - Throws: `XMLError` of kind `.invalidPath`.
    public func evaluate(_ path: String, namespaces: [String: String] = [:]) throws(XMLError) -> XPathValue {
        try node.evaluate(path, namespaces: namespaces)
    }

    /// What an XPath expression gives, as text; see ``XMLNode/string(_:namespaces:)``.
    ///
    /// - Parameters:
    ///   - path: An expression of XPath 1.0, evaluated from the document.
    ///   - namespaces: The URIs that its prefixes stand for.
    /// - Throws: `XMLError` of kind `.invalidPath`.
    public func string(_ path: String, namespaces: [String: String] = [:]) throws(XMLError) -> String {
        try node.string(path, namespaces: namespaces)
    }
}

/// Makes a document of its bytes, piece by piece.
final class XMLDocumentBuilder {
    private let context: TreeContext
    private let reader: DocumentReader

    init(charset: String?, limits: XMLLimits) throws(XMLError) {
        context = try TreeContext(limits)
        reader = DocumentReader(context, charset: charset)
    }

    func append(_ bytes: some Sequence<UInt8>) throws(XMLError) {
        // In steps, so that little is held twice.
        let bytes = Array(bytes)
        var start = 0
        while start < bytes.count {
            let end = min(bytes.count, start + parsingStep)
            reader.take(bytes[start..<end])
            try check()
            start = end
        }
    }

    /// The whole tree, which is the caller's.
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
