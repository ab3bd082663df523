// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// What stands in a document, in its order.
public enum XMLEvent: Sendable, Hashable {
    /// An element begins.
    case startElement(XMLStartTag)
    /// An element ends; also one without content, `<a/>`.
    case endElement(XMLName)
    /// Text of an element, with references expanded and lines ended by U+000A.
    ///
    /// What stands between two of the other events comes in one piece, unless it is longer than
    /// ``XMLLimits/textPiece``: then in several, each as long as that or up to three bytes shorter. White space is text
    /// inside of the root element, and nothing outside of it.
    case text(String)
    /// The content of a CDATA section, in pieces as text; nothing for an empty section.
    case cdata(String)
    /// A comment; those in a document type declaration are left out, and so are instructions there.
    case comment(String)
    /// A processing instruction; the XML declaration is none.
    case processingInstruction(target: String, content: String)
}

/// The start of an element.
public struct XMLStartTag: Sendable, Hashable {
    /// The element's name.
    public let name: XMLName
    /// Its attributes in the order of the document, those that the document type declaration supplies last.
    public let attributes: [XMLAttribute]
    /// The namespaces it declares.
    public let namespaces: [XMLNamespace]

    /// Makes a start tag.
    ///
    /// - Parameters:
    ///   - name: The element's name.
    ///   - attributes: Its attributes.
    ///   - namespaces: What it declares.
    public init(_ name: XMLName, attributes: [XMLAttribute] = [], namespaces: [XMLNamespace] = []) {
        self.name = name
        self.attributes = attributes
        self.namespaces = namespaces
    }

    /// The value of an attribute; nil without it.
    ///
    /// - Parameters:
    ///   - local: Its name, without a prefix.
    ///   - namespace: The URI of its namespace; none unless given.
    public subscript(local: String, namespace namespace: String? = nil) -> String? {
        attributes.first { $0.name.local == local && $0.name.namespace == namespace }?.value
    }
}
