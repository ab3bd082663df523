// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CXML2
internal import Curlew
internal import Glibc

/// libxml2's HTML push parser with our own callbacks, used by one thread at a time.
///
/// As in ``ParserContext``, the argument of the callbacks is this object, and every option is set for the context. The
/// parser has only the fixed entities of HTML and loads nothing.
final class HTMLContext {
    let limits: XMLLimits
    private let raw: htmlParserCtxtPtr
    private var failure: XMLError?
    private var nodes = 0
    private var textLength = 0

    /// The maximum length of a text in bytes; libxml2 does not store longer texts.
    static let maximumTextLength = 10_000_000
    /// The maximum size of all names together in bytes, because libxml2 keeps each name until the end.
    private static let maximumNameBytes = 10_000_000

    /// Creates a parser.
    ///
    /// - Throws: `.outOfMemory`.
    init(_ limits: XMLLimits) throws(XMLError) {
        _ = ParserContext.isReady
        var handler = Self.handler()
        guard let raw = htmlCreatePushParserCtxt(&handler, nil, nil, 0, nil, XML_CHAR_ENCODING_UTF8) else {
            throw XMLError(.outOfMemory, "There is not enough memory for a parser.")
        }
        self.limits = limits
        self.raw = raw
        let options = [
            HTML_PARSE_RECOVER, HTML_PARSE_NODEFDTD, HTML_PARSE_NOERROR, HTML_PARSE_NOWARNING, HTML_PARSE_NONET,
            HTML_PARSE_COMPACT, HTML_PARSE_IGNORE_ENC,
        ]
        htmlCtxtUseOptions(raw, Int32(bitPattern: options.reduce(0) { $0 | $1.rawValue }))
        raw.pointee.keepBlanks = 1
        raw.pointee.userData = Unmanaged.passUnretained(self).toOpaque()
    }

    deinit {
        xmlFreeDoc(raw.pointee.myDoc)
        htmlFreeParserCtxt(raw)
    }

    private static func of(_ state: UnsafeMutableRawPointer?) -> HTMLContext? {
        state.map { Unmanaged<HTMLContext>.fromOpaque($0).takeUnretainedValue() }
    }

    private static func handler() -> htmlSAXHandler {
        var handler = htmlSAXHandler()
        // With this marker, errors go to the empty function and not to a handler of the process.
        handler.initialized = curlew_xml_sax2()
        handler.serror = { _, _ in }
        handler.startDocument = { state in HTMLContext.of(state).map { xmlSAX2StartDocument($0.raw) } }
        handler.startElement = { state, name, attributes in
            guard let context = HTMLContext.of(state), context.admit(name, attributes) else { return }
            xmlSAX2StartElement(context.raw, name, attributes)
        }
        handler.endElement = { state, name in
            guard let context = HTMLContext.of(state), context.failure == nil else { return }
            xmlSAX2EndElement(context.raw, name)
        }
        // Scripts also arrive here, because there is no callback for CDATA sections.
        handler.characters = { state, start, count in
            guard let context = HTMLContext.of(state), context.admit(text: Int(count)) else { return }
            xmlSAX2Characters(context.raw, start, count)
        }
        handler.comment = { state, text in
            guard let context = HTMLContext.of(state), context.admit(nodes: 1) else { return }
            xmlSAX2Comment(context.raw, text)
        }
        handler.processingInstruction = { state, target, content in
            guard let context = HTMLContext.of(state), context.admit(nodes: 1) else { return }
            xmlSAX2ProcessingInstruction(context.raw, target, content)
        }
        return handler
    }

    /// Passes complete tags and other markup to libxml2.
    ///
    /// - Returns: The number of line ends in the bytes, and the error if the page exceeds a limit.
    func feed(_ bytes: [UInt8], _ count: Int, isLast: Bool) -> (lines: Int, failure: XMLError?) {
        bytes.withUnsafeBytes { buffer in
            let text = UnsafeRawBufferPointer(rebasing: buffer.prefix(count))
            htmlParseChunk(
                raw, text.assumingMemoryBound(to: CChar.self).baseAddress, Int32(count), isLast ? 1 : 0)
            if xmlDictGetUsage(raw.pointee.dict) > Self.maximumNameBytes {
                refuse(XMLError(.limitExceeded, "The page has more than 10 MB of different names."))
            }
            var lines = 0
            for byte in text where byte == 0x0A { lines += 1 }
            return (lines, failure)
        }
    }

    /// The number of bytes, from the first "<" on, that libxml2 has received and not read.
    var unreadCount: Int {
        guard let input = raw.pointee.input?.pointee else { return 0 }
        let unread = UnsafeBufferPointer(start: input.cur, count: input.end - input.cur)
        return unread.firstIndex(of: 0x3C).map { unread.count - $0 } ?? 0
    }

    /// Returns the tree, which has at least the root element.
    ///
    /// - Throws: `.outOfMemory`.
    func takeTree() throws(XMLError) -> HTMLTree {
        guard let tree = raw.pointee.myDoc ?? htmlNewDocNoDtD(nil, nil) else {
            throw XMLError(.outOfMemory, "There is not enough memory for a document.")
        }
        raw.pointee.myDoc = nil
        if xmlDocGetRootElement(tree) == nil { xmlDocSetRootElement(tree, xmlNewDocNode(tree, nil, "html", nil)) }
        // With this encoding, the serializer does not escape characters that UTF-8 can represent.
        if tree.pointee.encoding == nil { tree.pointee.encoding = UnsafePointer(xmlStrdup("UTF-8")) }
        return HTMLTree(raw: tree)
    }

    // MARK: Limits

    private func refuse(_ error: XMLError) {
        guard failure == nil else { return }
        failure = error.at(line: Int(xmlSAX2GetLineNumber(raw)), column: nil)
    }

    private func admit(nodes more: Int) -> Bool {
        guard failure == nil else { return false }
        nodes += more
        if nodes > limits.nodes { refuse(.limit("The page has more than \(limits.nodes) nodes", "nodes")) }
        return failure == nil
    }

    private func admit(_ name: UnsafePointer<xmlChar>?, _ attributes: UnsafeMutablePointer<UnsafePointer<xmlChar>?>?)
        -> Bool
    {
        guard failure == nil else { return false }
        let longest = Int(clamping: limits.name.bytes)
        var hasLongName = name?.isLonger(than: longest) ?? false
        var count = 0
        while let attribute = attributes?[2 * count] {
            hasLongName = hasLongName || attribute.isLonger(than: longest)
            Self.restoreQuotes(in: attributes?[2 * count + 1])
            count += 1
        }
        if Int(raw.pointee.nodeNr) >= limits.depth {
            refuse(.limit("Elements are nested more than \(limits.depth) deep", "depth"))
        } else if hasLongName {
            refuse(.limit("A name is longer than \(limits.name)", "name"))
        }
        return admit(nodes: 1 + 2 * count)
    }

    /// Turns the replacements of ``PageScanner`` back into quotes, in a value that libxml2 has allocated for this call.
    private static func restoreQuotes(in value: UnsafePointer<xmlChar>?) {
        guard var next = value.map({ UnsafeMutablePointer(mutating: $0) }) else { return }
        while next.pointee != 0 {
            if next.pointee == PageScanner.doubleQuote { next.pointee = 0x22 }
            if next.pointee == PageScanner.singleQuote { next.pointee = 0x27 }
            next += 1
        }
    }

    private func admit(text count: Int) -> Bool {
        // libxml2 drops text outside the root element.
        guard failure == nil, let parent = raw.pointee.node else { return false }
        let isContinued = parent.pointee.last?.pointee.type == XML_TEXT_NODE
        textLength = isContinued ? textLength + count : count
        if textLength > Self.maximumTextLength {
            refuse(XMLError(.limitExceeded, "A text or a script is longer than 10 MB."))
        }
        return admit(nodes: isContinued ? 0 : 1)
    }
}

/// A tree of libxml2 that has no owner yet.
struct HTMLTree {
    let raw: xmlDocPtr
}
