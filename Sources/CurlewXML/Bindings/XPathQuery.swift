// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CXML2

/// The result of an XPath expression (XPath 1.0 §1).
public enum XPathValue: Sendable, Hashable {
    /// The selected nodes in document order, without namespace nodes.
    case nodes([XMLNode])
    /// A text.
    case string(String)
    /// A number, which may be infinite or NaN.
    case number(Double)
    /// True or false.
    case boolean(Bool)
}

extension XMLNode {
    /// Returns the nodes that an XPath expression selects, in document order.
    ///
    /// The result omits namespace nodes (`namespace::*`); see ``namespaces`` for them. A query fails with
    /// `.invalidPath` after fifty million steps, which take seconds.
    /// - Parameters:
    ///   - path: An XPath 1.0 expression, evaluated from this node.
    ///   - namespaces: The URIs of the prefixes in the expression; the prefixes of the document do not apply.
    /// - Throws: `XMLError` of kind `.invalidPath`, also if the result is a text, a number or a Boolean instead of
    ///   nodes.
    public func nodes(_ path: String, namespaces: [String: String] = [:]) throws(XMLError) -> [XMLNode] {
        guard case .nodes(let nodes) = try evaluate(path, namespaces: namespaces) else {
            throw XMLError(
                path: 0, "the result is not nodes. Use string(_:) for a text and evaluate(_:) for other values", path)
        }
        return nodes
    }

    /// Returns the result of an XPath expression.
    ///
    /// - Parameters:
    ///   - path: An XPath 1.0 expression, evaluated from this node.
    ///   - namespaces: The URIs of the prefixes in the expression.
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

    /// Returns the result of an XPath expression as text.
    ///
    /// If the expression selects nodes, the result is the text of the first node; without nodes it is empty
    /// (XPath 1.0 §4.2).
    ///
    /// - Parameters:
    ///   - path: An XPath 1.0 expression, evaluated from this node.
    ///   - namespaces: The URIs of the prefixes in the expression.
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
            // Skip namespace nodes: they are copies that libxml2 frees with the result.
            guard let node, node.pointee.type != XML_NAMESPACE_DECL else { return nil }
            return XMLNode(document, node)
        }
    }
}

/// One evaluation, with its own context, because contexts must not be shared.
private final class XPathQuery {
    private let node: XMLNode
    private let context: xmlXPathContextPtr
    private var refusal: (code: Int, text: String)?

    /// The maximum number of steps of a query.
    private static let maximumSteps: UInt = 50_000_000

    init(_ node: XMLNode, _ namespaces: [String: String]) throws(XMLError) {
        guard let context = xmlXPathNewContext(node.document.raw) else {
            throw XMLError(.outOfMemory, "There is not enough memory for a query.")
        }
        self.node = node
        self.context = context
        context.pointee.node = node.raw
        // The evaluation starts with a single context node (XPath 1.0 §1).
        context.pointee.contextSize = 1
        context.pointee.proximityPosition = 1
        context.pointee.opLimit = Self.maximumSteps
        context.pointee.userData = Unmanaged.passUnretained(self).toOpaque()
        // Use the error handler of the context, because libxml2's other error handler belongs to the thread.
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
