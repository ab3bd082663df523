// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// An item of an XML document; events arrive in document order.
public enum XMLEvent: Sendable, Hashable {
    /// An element begins.
    case startElement(XMLStartTag)
    /// An element ends; an element without content, `<a/>`, has this event, too.
    case endElement(XMLName)
    /// Text of an element, with references expanded and line ends normalised to U+000A.
    ///
    /// The text between two other events is one event, unless it is longer than ``XMLLimits/textPiece``: then several
    /// events follow each other, and each except the last has that length or up to three bytes less. White space is
    /// text inside the root element; outside the root element it produces no events.
    case text(String)
    /// The content of a CDATA section, split like text if it is long; an empty section produces no event.
    case cdata(String)
    /// A comment outside a document type declaration.
    ///
    /// Comments and processing instructions inside a document type declaration produce no events.
    case comment(String)
    /// A processing instruction; the XML declaration does not count as one.
    case processingInstruction(target: String, content: String)
}

/// The start of an element.
public struct XMLStartTag: Sendable, Hashable {
    /// The element's name.
    public let name: XMLName
    /// The attributes in document order, followed by the default attributes from the document type declaration.
    public let attributes: [XMLAttribute]
    /// The namespaces that the element declares.
    public let namespaces: [XMLNamespace]

    /// Creates a start tag.
    ///
    /// - Parameters:
    ///   - name: The element's name.
    ///   - attributes: The element's attributes.
    ///   - namespaces: The namespaces that the element declares.
    public init(_ name: XMLName, attributes: [XMLAttribute] = [], namespaces: [XMLNamespace] = []) {
        self.name = name
        self.attributes = attributes
        self.namespaces = namespaces
    }

    /// The value of an attribute; nil if the element does not have the attribute.
    ///
    /// - Parameters:
    ///   - local: The attribute's name, without a prefix.
    ///   - namespace: The URI of the attribute's namespace; nil, the default, for no namespace.
    public subscript(local: String, namespace namespace: String? = nil) -> String? {
        attributes.first { $0.name.local == local && $0.name.namespace == namespace }?.value
    }
}
