// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Bindings: only this folder calls libxml2 and reads memory that libxml2 owns.

internal import CXML2
internal import Curlew
internal import Glibc

/// A libxml2 push parser with our own callbacks, used by one thread at a time.
///
/// The handler contains only our callbacks, and their argument is this object instead of libxml2's context. Each of
/// these two facts alone prevents entity definitions, because libxml2 uses its own tables only if the context is
/// passed. So no declaration of a document is expanded or loaded, regardless of the options. The parser neither reads
/// nor writes variables of the process, which FoundationXML shares: every option is set for the context.
class ParserContext {
    let limits: XMLLimits
    let raw: xmlParserCtxtPtr
    /// The reason why the document is refused; once it is set, callbacks do nothing.
    private(set) var failure: XMLError?
    private var namespacesByDepth: [Int] = []
    private var namespacesInScope = 0
    private var defaults = 0
    private var defaultedBytes = 0
    private var elements = 0

    // Limits for default attributes: the number of declarations, the bytes of their declared values, and the bytes that
    // they add to the document (a fixed number and a number for each element).
    private static let maximumDefaults = 64
    private static let maximumDefaultValueBytes = 4096
    private static let maximumDefaultedBytes = 1 << 20
    private static let defaultedBytesOfElement = 64
    /// The maximum number of namespaces in scope, because libxml2 searches all of them for each prefix.
    private static let maximumNamespaces = 1024

    /// The maximum size of all names together in bytes, because libxml2 keeps each name until the end.
    private static let maximumNameBytes = 10_000_000

    /// Initialises libxml2 once.
    static let isReady: Void = xmlInitParser()

    /// Creates a parser.
    ///
    /// - Parameters:
    ///   - options: Options in addition to the ones that are always set.
    ///   - callbacks: Sets callbacks; their first argument is this object.
    init(_ limits: XMLLimits, options: xmlParserOption, _ callbacks: (inout xmlSAXHandler) -> Void) throws(XMLError) {
        _ = Self.isReady
        var handler = xmlSAXHandler()
        handler.initialized = curlew_xml_sax2()
        handler.serror = { state, error in ParserContext.of(state)?.report(error.map { $0.pointee }) }
        handler.attributeDecl = { state, _, _, _, _, value, choices in
            xmlFreeEnumeration(choices)
            ParserContext.of(state)?.declareDefault(value)
        }
        callbacks(&handler)
        guard let raw = xmlCreatePushParserCtxt(&handler, nil, nil, 0, nil) else {
            throw XMLError(.outOfMemory, "There is not enough memory for a parser.")
        }
        self.limits = limits
        self.raw = raw
        let always = XML_PARSE_NONET.rawValue | XML_PARSE_IGNORE_ENC.rawValue | XML_PARSE_COMPACT.rawValue
        xmlCtxtUseOptions(raw, Int32(bitPattern: always | options.rawValue))
        // The input is always UTF-8, so libxml2 need not detect the encoding.
        xmlSwitchEncoding(raw, XML_CHAR_ENCODING_UTF8)
        raw.pointee.userData = Unmanaged.passUnretained(self).toOpaque()
    }

    deinit {
        // Free the document even without our own tree, because libxml2 creates one for entities that it never looks up.
        xmlFreeDoc(raw.pointee.myDoc)
        xmlFreeParserCtxt(raw)
    }

    private static func of(_ state: UnsafeMutableRawPointer?) -> ParserContext? {
        state.map { Unmanaged<ParserContext>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Passes complete units of markup to libxml2.
    ///
    /// - Returns: The number of line ends in the bytes, and the column of the last line at which they end.
    func feed(_ bytes: [UInt8], _ count: Int, isLast: Bool) -> (lines: Int, column: Int) {
        bytes.withUnsafeBytes { buffer in
            let text = UnsafeRawBufferPointer(rebasing: buffer.prefix(count))
            let start = text.assumingMemoryBound(to: CChar.self).baseAddress
            xmlParseChunk(raw, start, Int32(count), isLast ? 1 : 0)
            if xmlDictGetUsage(raw.pointee.dict) > Self.maximumNameBytes {
                refuse(XMLError(.limitExceeded, "The document has more than 10 MB of different names."))
            }
            var lines = 0
            for byte in text where byte == 0x0A { lines += 1 }
            let last = text[(text.lastIndex(of: 0x0A).map { $0 + 1 } ?? 0)...]
            return (lines, last.count { $0 & 0xC0 != 0x80 } + 1)
        }
    }

    /// Called when the text ends because a mistake follows.
    func endText() {}

    /// Called when a CDATA section or a document type declaration has ended.
    func endSection() {}

    // MARK: For callbacks

    /// Refuses the document at the current position.
    func refuse(_ error: XMLError) {
        guard failure == nil else { return }
        endText()
        failure = error.at(line: Int(xmlSAX2GetLineNumber(raw)), column: Int(xmlSAX2GetColumnNumber(raw)))
    }

    private func report(_ error: xmlError?) {
        guard let error, failure == nil, error.level.rawValue >= XML_ERR_ERROR.rawValue else { return }
        // Ignore validity errors: an invalid xml:id does not make the document malformed.
        let domain = UInt32(bitPattern: error.domain)
        if domain == XML_FROM_DTD.rawValue || domain == XML_FROM_VALID.rawValue { return }
        endText()
        failure = XMLError(
            parser: Int(error.code), error.message.map { String(cString: $0) } ?? "", line: Int(error.line),
            column: Int(error.int2))
    }

    private func declareDefault(_ value: UnsafePointer<xmlChar>?) {
        guard let value else { return }
        defaults += 1
        defaultedBytes += Int(xmlStrlen(value))
        if defaults > Self.maximumDefaults || defaultedBytes > Self.maximumDefaultValueBytes {
            refuse(
                XMLError(.limitExceeded, "The document declares more than 64 default attributes or 4 KiB of values."))
        }
    }

    /// Counts the next element and returns whether the limits admit it.
    final func admit(_ tag: StartTag) -> Bool {
        guard failure == nil else { return false }
        elements += 1
        namespacesByDepth.append(tag.namespaceCount)
        namespacesInScope += tag.namespaceCount
        for index in (tag.attributeCount - tag.defaultedCount)..<tag.attributeCount {
            defaultedBytes += tag.length(at: index) + Self.defaultedBytesOfElement / 4
        }
        let longest = Int(clamping: limits.name.bytes)
        if namespacesByDepth.count > limits.depth {
            refuse(.limit("Elements are nested more than \(limits.depth) deep", "depth"))
        } else if tag.attributeCount + tag.namespaceCount > limits.attributes + Self.maximumDefaults {
            refuse(.limit("An element has more than \(limits.attributes) attributes", "attributes"))
        } else if namespacesInScope > Self.maximumNamespaces {
            refuse(XMLError(.limitExceeded, "More than \(Self.maximumNamespaces) namespaces are in scope."))
        } else if tag.hasName(longerThan: longest) {
            refuse(.limit("A name is longer than \(limits.name)", "name"))
        } else if defaultedBytes > Self.maximumDefaultedBytes + Self.defaultedBytesOfElement * elements {
            refuse(XMLError(.limitExceeded, "Default attributes make the document too large."))
        }
        return failure == nil
    }

    /// Counts the end of an element.
    ///
    /// - Returns: Whether the context should process the end.
    final func leave() -> Bool {
        guard failure == nil, let last = namespacesByDepth.popLast() else { return false }
        namespacesInScope -= last
        return true
    }
}

/// The start of an element as libxml2 reports it; valid while the callback runs.
struct StartTag {
    let local: UnsafePointer<xmlChar>
    let prefix: UnsafePointer<xmlChar>?
    let uri: UnsafePointer<xmlChar>?
    let namespaceCount: Int
    /// The prefix and URI of each namespace.
    let namespaces: UnsafeMutablePointer<UnsafePointer<xmlChar>?>?
    let attributeCount: Int
    /// The number of default attributes from the document type declaration, which are the last ones.
    let defaultedCount: Int
    /// The local name, prefix, URI, start of the value and end of the value of each attribute.
    let attributes: UnsafeMutablePointer<UnsafePointer<xmlChar>?>?

    func attribute(_ index: Int, _ part: Int) -> UnsafePointer<xmlChar>? { attributes?[5 * index + part] }

    /// Returns the length of an attribute's value in bytes.
    func length(at index: Int) -> Int {
        guard let start = attribute(index, 3), let end = attribute(index, 4) else { return 0 }
        return end - start
    }

    func hasName(longerThan most: Int) -> Bool {
        if local.isLonger(than: most) || prefix?.isLonger(than: most) == true { return true }
        return (0..<attributeCount).contains { index in
            attribute(index, 0)?.isLonger(than: most) == true || attribute(index, 1)?.isLonger(than: most) == true
        } || (0..<namespaceCount).contains { namespaces?[2 * $0]?.isLonger(than: most) == true }
    }
}

extension UnsafePointer<xmlChar> {
    /// Returns whether a zero-terminated text has more than `most` bytes.
    func isLonger(than most: Int) -> Bool {
        strnlen(UnsafeRawPointer(self).assumingMemoryBound(to: CChar.self), most + 1) > most
    }

    /// The zero-terminated text.
    var text: String { String(cString: self) }
}
