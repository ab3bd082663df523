// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CXML2
internal import FoundationEssentials

/// A part of a document: an element, an attribute, a text or the like.
///
/// A node keeps its document alive. Nodes are equal when they are the same part of the same document.
///
/// ```swift
/// for item in document.root.elements where item["id"] != nil {
///     print(item.name?.local ?? "", item.text)
/// }
/// ```
public struct XMLNode: @unchecked Sendable, Hashable, CustomStringConvertible {
    // Safe because it points into a document that is never changed and that it keeps alive.

    /// What a node is.
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

    /// The document it is part of.
    public let document: XMLDocument
    let raw: xmlNodePtr

    init(_ document: XMLDocument, _ raw: xmlNodePtr) {
        self.document = document
        self.raw = raw
    }

    /// What it is.
    public var kind: Kind {
        switch raw.pointee.type {
        case XML_DOCUMENT_NODE: .document
        case XML_ELEMENT_NODE: .element
        case XML_ATTRIBUTE_NODE: .attribute
        case XML_CDATA_SECTION_NODE: .cdata
        case XML_COMMENT_NODE: .comment
        case XML_PI_NODE: .processingInstruction
        default: .text
        }
    }

    /// The name of an element or an attribute, and the target of a processing instruction; nil for others.
    public var name: XMLName? {
        guard [.element, .attribute, .processingInstruction].contains(kind), let local = raw.pointee.name else {
            return nil
        }
        // Attributes begin as elements do, up to this field; instructions have none.
        let namespace = kind == .processingInstruction ? nil : raw.pointee.ns?.pointee
        return XMLName(local.text, prefix: namespace?.prefix?.text, namespace: namespace?.href?.text)
    }

    /// What it says: of an element and a document all text within, of others their value (XPath 1.0 §5).
    public var text: String {
        guard let content = xmlNodeGetContent(raw) else { return "" }
        defer { curlew_xml_free(content) }
        return String(cString: content)
    }

    // MARK: Around it

    /// What an element or the document consists of, without attributes.
    public var children: [XMLNode] {
        guard kind == .element || kind == .document else { return [] }
        return siblings(from: raw.pointee.children)
    }

    /// The elements among its children.
    public var elements: [XMLNode] { children.filter { $0.kind == .element } }

    /// What it is in: an element, or the document; nil for the document.
    public var parent: XMLNode? { kind == .document ? nil : raw.pointee.parent.map { XMLNode(document, $0) } }

    /// An element's attributes, in the order of the document.
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

    /// The value of an element's attribute; nil without it.
    ///
    /// - Parameters:
    ///   - local: Its name, without a prefix.
    ///   - namespace: The URI of its namespace; none unless given.
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

    // MARK: As text

    /// The node as it could stand in a document; prefixes that are declared around it stay undeclared.
    public var xml: String {
        if kind == .document { return document.xml }
        guard let buffer = xmlAllocOutputBuffer(nil) else { return "" }
        defer { xmlOutputBufferClose(buffer) }
        xmlNodeDumpOutput(buffer, document.raw, raw, 0, 0, "UTF-8")
        let written = UnsafeBufferPointer(
            start: xmlOutputBufferGetContent(buffer), count: xmlOutputBufferGetSize(buffer))
        return String(decoding: written, as: UTF8.self)
    }

    /// What it is, and never what it says.
    public var description: String { "\(kind)" + (name.map { " \($0)" } ?? "") }

    /// Whether both are the same part of the same document.
    public static func == (one: XMLNode, other: XMLNode) -> Bool { one.raw == other.raw }

    /// Hashes which part of which document it is.
    public func hash(into hasher: inout Hasher) { hasher.combine(raw) }
}
