// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CXML2

/// What an XPath expression gives (XPath 1.0 §1).
public enum XPathValue: Sendable, Hashable {
    /// The nodes it selects, in the order of the document, without namespace nodes.
    case nodes([XMLNode])
    /// A text.
    case string(String)
    /// A number, which may be infinite or none.
    case number(Double)
    /// True or false.
    case boolean(Bool)
}

extension XMLNode {
    /// The nodes that an XPath expression selects, in the order of the document.
    ///
    /// Namespace nodes (`namespace::*`) are left out; ``namespaces`` has them. A query ends as `.invalidPath` after fifty
    /// million steps, which takes seconds.
    /// - Parameters:
    ///   - path: An expression of XPath 1.0, evaluated from this node.
    ///   - namespaces: The URIs that its prefixes stand for; those of the document mean nothing to it.
    /// - Throws: `XMLError` of kind `.invalidPath`, also when it gives no nodes but a text, a number or a truth.
    public func nodes(_ path: String, namespaces: [String: String] = [:]) throws(XMLError) -> [XMLNode] {
        guard case .nodes(let nodes) = try evaluate(path, namespaces: namespaces) else {
            throw XMLError(
                path: 0, "It gives no nodes. For texts there is string(_:), for the rest evaluate(_:)", path)
        }
        return nodes
    }

    /// What an XPath expression gives.
    ///
    /// - Parameters:
    ///   - path: An expression of XPath 1.0, evaluated from this node.
    ///   - namespaces: The URIs that its prefixes stand for.
    /// - Throws: `XMLError` of kind `.invalidPath`.
    public func evaluate(_ path: String, namespaces: [String: String] = [:]) throws(XMLError) -> XPathValue {
        try XPathQuery(self, namespaces).evaluate(path) { result in
            switch result.pointee.type {
            case XPATH_STRING: .string(result.pointee.stringval.map { String(cString: $0) } ?? "")
            case XPATH_NUMBER: .number(result.pointee.floatval)
            case XPATH_BOOLEAN: .boolean(result.pointee.boolval != 0)
            default: .nodes(nodes(of: result.pointee.nodesetval))
            }
        }
    }

    /// What an XPath expression gives, as text: of nodes that of the first, empty without one (XPath 1.0 §4.2).
    ///
    /// - Parameters:
    ///   - path: An expression of XPath 1.0, evaluated from this node.
    ///   - namespaces: The URIs that its prefixes stand for.
    /// - Throws: `XMLError` of kind `.invalidPath`.
    public func string(_ path: String, namespaces: [String: String] = [:]) throws(XMLError) -> String {
        try XPathQuery(self, namespaces).evaluate(path) { result in
            guard let text = xmlXPathCastToString(result) else { return "" }
            defer { curlew_xml_free(text) }
            return String(cString: text)
        }
    }

    private func nodes(of set: xmlNodeSetPtr?) -> [XMLNode] {
        guard let set, let first = set.pointee.nodeTab else { return [] }
        xmlXPathNodeSetSort(set)
        return UnsafeBufferPointer(start: first, count: Int(set.pointee.nodeNr)).compactMap { node in
            // Namespace nodes are copies that end with the result.
            guard let node, node.pointee.type != XML_NAMESPACE_DECL else { return nil }
            return XMLNode(document, node)
        }
    }
}

/// One evaluation, with a context of its own: they are not to be shared.
private final class XPathQuery {
    private let node: XMLNode
    private let context: xmlXPathContextPtr
    private var refusal: (code: Int, text: String)?

    /// How many steps a query may take.
    private static let mostSteps: UInt = 50_000_000

    init(_ node: XMLNode, _ namespaces: [String: String]) throws(XMLError) {
        guard let context = xmlXPathNewContext(node.document.raw) else {
            throw XMLError(.outOfMemory, "There is no memory for a query.")
        }
        self.node = node
        self.context = context
        context.pointee.node = node.raw
        // An expression begins with one node, the first (XPath 1.0 §1).
        context.pointee.contextSize = 1
        context.pointee.proximityPosition = 1
        context.pointee.opLimit = Self.mostSteps
        context.pointee.userData = Unmanaged.passUnretained(self).toOpaque()
        // Of the context, since libxml2's other place for errors belongs to the thread.
        context.pointee.error = { state, error in
            guard let state, let error = error?.pointee else { return }
            let query = Unmanaged<XPathQuery>.fromOpaque(state).takeUnretainedValue()
            if query.refusal == nil {
                query.refusal = (Int(error.code), error.message.map { String(cString: $0) } ?? "")
            }
        }
        for (prefix, uri) in namespaces { xmlXPathRegisterNs(context, prefix, uri) }
    }

    deinit { xmlXPathFreeContext(context) }

    func evaluate<Value>(_ path: String, _ read: (xmlXPathObjectPtr) -> Value) throws(XMLError) -> Value {
        let result = path.utf8.contains(0) ? nil : xmlXPathEvalExpression(path, context)
        defer { xmlXPathFreeObject(result) }
        guard let result, refusal == nil else {
            throw XMLError(path: refusal?.code ?? 0, refusal?.text ?? "", path)
        }
        return read(result)
    }
}
