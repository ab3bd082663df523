// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CXML2
internal import Curlew

/// A parser that builds a tree with libxml2's own functions.
final class TreeContext: ParserContext {
    private var nodes = 0
    private var textLength = 0
    /// The bytes of the current CDATA section.
    private var section: [UInt8]?

    /// The maximum length of a text in bytes; libxml2 does not store longer texts.
    private static let maximumTextLength = 10_000_000

    init(_ limits: XMLLimits) throws(XMLError) {
        // Without options, entities stay references, but no entities are defined, so there are no references either.
        try super.init(limits, options: xmlParserOption(0)) { handler in
            handler.startDocument = { state in TreeContext.of(state).map { xmlSAX2StartDocument($0.raw) } }
            handler.endDocument = { state in TreeContext.of(state).map { xmlSAX2EndDocument($0.raw) } }
            handler.startElementNs = {
                state, local, prefix, uri, namespaceCount, namespaces, count, defaulted, attributes in
                guard let local, let context = TreeContext.of(state) else { return }
                let tag = StartTag(
                    local: local, prefix: prefix, uri: uri, namespaceCount: Int(namespaceCount), namespaces: namespaces,
                    attributeCount: Int(count), defaultedCount: Int(defaulted), attributes: attributes)
                guard context.admit(tag), context.admit(nodes: 1 + tag.namespaceCount + 2 * tag.attributeCount) else {
                    return
                }
                // Pass 0 as the number of default attributes, because xmlSAX2StartElementNs omits default attributes.
                xmlSAX2StartElementNs(
                    context.raw, local, prefix, uri, namespaceCount, namespaces, count, 0, attributes)
            }
            handler.endElementNs = { state, local, prefix, uri in
                guard let context = TreeContext.of(state), context.leave() else { return }
                xmlSAX2EndElementNs(context.raw, local, prefix, uri)
            }
            handler.characters = { state, start, count in
                guard let context = TreeContext.of(state), context.admit(text: Int(count)) else { return }
                xmlSAX2Characters(context.raw, start, count)
            }
            handler.ignorableWhitespace = handler.characters
            handler.cdataBlock = { state, start, count in TreeContext.of(state)?.append(start, count) }
            handler.comment = { state, text in
                guard let context = TreeContext.of(state), context.admitCommentOrInstruction() else { return }
                xmlSAX2Comment(context.raw, text)
            }
            handler.processingInstruction = { state, target, content in
                guard let context = TreeContext.of(state), context.admitCommentOrInstruction() else { return }
                xmlSAX2ProcessingInstruction(context.raw, target, content)
            }
        }
    }

    private static func of(_ state: UnsafeMutableRawPointer?) -> TreeContext? {
        state.map { Unmanaged<TreeContext>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Returns the tree, which the caller then owns; nil if there is no tree.
    func takeTree() -> xmlDocPtr? {
        defer { raw.pointee.myDoc = nil }
        guard let tree = raw.pointee.myDoc else { return nil }
        // With this encoding, the serializer does not escape characters that UTF-8 can represent.
        if tree.pointee.encoding == nil { tree.pointee.encoding = UnsafePointer(xmlStrdup("UTF-8")) }
        return tree
    }

    private func admit(nodes more: Int) -> Bool {
        guard failure == nil else { return false }
        nodes += more
        if nodes > limits.nodes { refuse(.limit("The document has more than \(limits.nodes) nodes", "nodes")) }
        return failure == nil
    }

    /// Counts a comment or a processing instruction, and returns whether it becomes a node.
    ///
    /// A comment or an instruction inside a document type declaration becomes no node, because the tree has no parent
    /// for it.
    private func admitCommentOrInstruction() -> Bool { raw.pointee.inSubset == 0 && admit(nodes: 1) }

    private func admit(text count: Int) -> Bool {
        let last = raw.pointee.node?.pointee.last
        let isContinued = last?.pointee.type == XML_TEXT_NODE
        textLength = isContinued ? textLength + count : count
        if textLength > Self.maximumTextLength {
            refuse(XMLError(.limitExceeded, "A text is longer than 10 MB.", hint: "Read the document as events."))
        }
        return admit(nodes: isContinued ? 0 : 1)
    }

    // MARK: Sections

    /// Collects the parts of a section: libxml2 reports a long section in parts, which together form one node.
    private func append(_ start: UnsafePointer<xmlChar>?, _ count: Int32) {
        guard failure == nil else { return }
        section = section ?? []
        section? += UnsafeBufferPointer(start: start, count: Int(count))
        if section?.count ?? 0 > Self.maximumTextLength {
            refuse(XMLError(.limitExceeded, "A section is longer than 10 MB.", hint: "Read the document as events."))
        }
    }

    override func endSection() {
        guard let section else { return }
        self.section = nil
        // libxml2's own function would join adjacent sections.
        guard admit(nodes: 1), let parent = raw.pointee.node else { return }
        section.withUnsafeBufferPointer { bytes in
            _ = xmlAddChild(parent, xmlNewCDataBlock(raw.pointee.myDoc, bytes.baseAddress, Int32(bytes.count)))
        }
    }
}
