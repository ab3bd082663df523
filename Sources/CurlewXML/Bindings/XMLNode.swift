// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CXML2
internal import FoundationEssentials

/// A node of a document: an element, an attribute, a text and so on.
///
/// A node keeps its document alive. Nodes are equal if they are the same node of the same document.
///
/// ```swift
/// for item in document.root.elements where item["id"] != nil {
///     print(item.name?.local ?? "", item.text)
/// }
/// ```
public struct XMLNode: @unchecked Sendable, Hashable, CustomStringConvertible {
    // Safe because it points into an immutable document, which it keeps alive.

    /// The kind of a node.
    public enum Kind: Sendable, Hashable {
        /// The document itself, above its root.
        case document
        /// An element.
        case element
        /// An attribute of an element.
        case attribute
        /// Text.
        case text
        /// A CDATA section.
        case cdata
        /// A comment.
        case comment
        /// A processing instruction.
        case processingInstruction
    }

    /// The document that contains the node.
    public let document: XMLDocument
    let raw: xmlNodePtr

    init(_ document: XMLDocument, _ raw: xmlNodePtr) {
        self.document = document
        self.raw = raw
    }

    /// The kind of the node.
    public var kind: Kind {
        switch raw.pointee.type {
        case XML_DOCUMENT_NODE, XML_HTML_DOCUMENT_NODE: .document
        case XML_ELEMENT_NODE: .element
        case XML_ATTRIBUTE_NODE: .attribute
        case XML_CDATA_SECTION_NODE: .cdata
        case XML_COMMENT_NODE: .comment
        case XML_PI_NODE: .processingInstruction
        default: .text
        }
    }

    /// The name of an element or an attribute, or the target of a processing instruction; nil for other nodes.
    public var name: XMLName? {
        guard [.element, .attribute, .processingInstruction].contains(kind), let local = raw.pointee.name else {
            return nil
        }
        // Attributes have the same layout as elements up to this field; processing instructions do not have the field.
        let namespace = kind == .processingInstruction ? nil : raw.pointee.ns?.pointee
        return XMLName(local.text, prefix: namespace?.prefix?.text, namespace: namespace?.href?.text)
    }

    /// The text content: all text inside an element or a document, or the value of other nodes (XPath 1.0 §5).
    public var text: String {
        guard let content = xmlNodeGetContent(raw) else { return "" }
        defer { curlew_xml_free(content) }
        return String(cString: content)
    }

    // MARK: Related nodes

    /// The child nodes of an element or the document, without attributes; empty for other nodes.
    public var children: [XMLNode] {
        guard kind == .element || kind == .document else { return [] }
        return siblings(from: raw.pointee.children)
    }

    /// The child nodes that are elements.
    public var elements: [XMLNode] { children.filter { $0.kind == .element } }

    /// The element or document that contains the node; nil for the document.
    public var parent: XMLNode? { kind == .document ? nil : raw.pointee.parent.map { XMLNode(document, $0) } }

    /// An element's attributes in document order.
    public var attributes: [XMLAttribute] {
        attributeNodes.compactMap { node in node.name.map { XMLAttribute($0, node.text) } }
    }

    /// The namespaces that an element declares.
    public var namespaces: [XMLNamespace] {
        guard kind == .element else { return [] }
        var result: [XMLNamespace] = []
        var next = raw.pointee.nsDef
        while let found = next?.pointee {
            result.append(XMLNamespace(prefix: found.prefix?.text, uri: found.href?.text ?? ""))
            next = found.next
        }
        return result
    }

    /// The value of an element's attribute; nil if the element does not have the attribute.
    ///
    /// - Parameters:
    ///   - local: The attribute's name, without a prefix.
    ///   - namespace: The URI of the attribute's namespace; nil, the default, for no namespace.
    public subscript(local: String, namespace namespace: String? = nil) -> String? {
        attributeNodes.first { $0.name?.local == local && $0.name?.namespace == namespace }?.text
    }

    private var attributeNodes: [XMLNode] {
        guard kind == .element, let first = raw.pointee.properties else { return [] }
        return siblings(from: UnsafeMutableRawPointer(first).assumingMemoryBound(to: xmlNode.self))
    }

    private func siblings(from first: xmlNodePtr?) -> [XMLNode] {
        var result: [XMLNode] = []
        var next = first
        while let found = next {
            result.append(XMLNode(document, found))
            next = found.pointee.next
        }
        return result
    }

    // MARK: Text forms

    /// The node as XML text; the text does not declare prefixes that outer elements declare.
    public var xml: String {
        if kind == .document { return document.xml }
        guard let buffer = xmlAllocOutputBuffer(nil) else { return "" }
        defer { xmlOutputBufferClose(buffer) }
        xmlNodeDumpOutput(buffer, document.raw, raw, 0, 0, "UTF-8")
        let written = UnsafeBufferPointer(
            start: xmlOutputBufferGetContent(buffer), count: xmlOutputBufferGetSize(buffer))
        return String(decoding: written, as: UTF8.self)
    }

    /// The kind and name of the node, without its content.
    public var description: String { "\(kind)" + (name.map { " \($0)" } ?? "") }

    /// Returns whether both are the same node of the same document.
    public static func == (one: XMLNode, other: XMLNode) -> Bool { one.raw == other.raw }

    /// Hashes the identity of the node.
    public func hash(into hasher: inout Hasher) { hasher.combine(raw) }
}
