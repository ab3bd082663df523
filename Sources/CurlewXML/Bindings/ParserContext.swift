// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Bindings: where libxml2 is called, and memory it owns is read.

internal import CXML2
internal import Curlew
internal import Glibc

/// A push parser of libxml2's with callbacks of our own, fed by one thread at a time.
///
/// The handler is empty but for our callbacks, and they get this object and not libxml2's context. Each of the two alone
/// keeps entities from being defined, since libxml2 falls back on its own tables only where that context is passed. So
/// nothing that a document declares is expanded or loaded, with whatever options. Variables of the process, which
/// FoundationXML shares, are neither read nor written: every option is set for the context.
class ParserContext {
    let limits: XMLLimits
    let raw: xmlParserCtxtPtr
    /// Why the document is refused; callbacks do nothing afterwards.
    private(set) var failure: XMLError?
    private var namespacesByDepth: [Int] = []
    private var namespacesInScope = 0
    private var defaults = 0
    private var defaultedBytes = 0
    private var elements = 0

    /// What attributes by default may add to a document: so many are declared, with so many bytes of values, and so many
    /// bytes come into being, beside some for each element.
    private static let mostDefaults = 64
    private static let longestDefaults = 4096
    private static let mostDefaultedBytes = 1 << 20
    private static let defaultedBytesOfElement = 64
    /// libxml2 looks for a prefix among all that are in scope.
    private static let mostNamespaces = 1024

    /// In bytes, of all names together: libxml2 keeps each until the end.
    private static let mostNames = 10_000_000

    private static let isReady: Void = xmlInitParser()

    /// - Parameters:
    ///   - options: Of `xmlParserOption`, beside those that are always set.
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
            throw XMLError(.outOfMemory, "There is no memory for a parser.")
        }
        self.limits = limits
        self.raw = raw
        let always = XML_PARSE_NONET.rawValue | XML_PARSE_IGNORE_ENC.rawValue | XML_PARSE_COMPACT.rawValue
        xmlCtxtUseOptions(raw, Int32(bitPattern: always | options.rawValue))
        // It gets nothing else, so it need not guess.
        xmlSwitchEncoding(raw, XML_CHAR_ENCODING_UTF8)
        raw.pointee.userData = Unmanaged.passUnretained(self).toOpaque()
    }

    deinit {
        // Also without a tree of ours: libxml2 makes one for entities that it never looks up.
        xmlFreeDoc(raw.pointee.myDoc)
        xmlFreeParserCtxt(raw)
    }

    private static func of(_ state: UnsafeMutableRawPointer?) -> ParserContext? {
        state.map { Unmanaged<ParserContext>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Gives libxml2 whole pieces of markup.
    ///
    /// - Returns: How many lines ended in them, and at which column of the last line they end.
    func feed(_ bytes: [UInt8], _ count: Int, isLast: Bool) -> (lines: Int, column: Int) {
        bytes.withUnsafeBytes { buffer in
            let text = UnsafeRawBufferPointer(rebasing: buffer.prefix(count))
            let start = text.assumingMemoryBound(to: CChar.self).baseAddress
            xmlParseChunk(raw, start, Int32(count), isLast ? 1 : 0)
            if xmlDictGetUsage(raw.pointee.dict) > Self.mostNames {
                refuse(XMLError(.limitExceeded, "The document has more than 10 MB of different names."))
            }
            var lines = 0
            for byte in text where byte == 0x0A { lines += 1 }
            let last = text[(text.lastIndex(of: 0x0A).map { $0 + 1 } ?? 0)...]
            return (lines, last.count { $0 & 0xC0 != 0x80 } + 1)
        }
    }

    /// Told where a mistake follows.
    func endText() {}

    /// Told where a CDATA section or a document type declaration has ended.
    func endSection() {}

    // MARK: For callbacks

    /// Refuses the document, here.
    func refuse(_ error: XMLError) {
        guard failure == nil else { return }
        endText()
        failure = error.at(line: Int(xmlSAX2GetLineNumber(raw)), column: Int(xmlSAX2GetColumnNumber(raw)))
    }

    private func report(_ error: xmlError?) {
        guard let error, failure == nil, error.level.rawValue >= XML_ERR_ERROR.rawValue else { return }
        // Validity is nobody's concern: an odd xml:id is no mistake of form.
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
        if defaults > Self.mostDefaults || defaultedBytes > Self.longestDefaults {
            refuse(
                XMLError(.limitExceeded, "More than 64 attributes or 4 KiB of their values are declared by default."))
        }
    }

    /// Whether the next element may begin.
    final func admits(_ tag: StartTag) -> Bool {
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
        } else if tag.attributeCount + tag.namespaceCount > limits.attributes + Self.mostDefaults {
            refuse(.limit("An element has more than \(limits.attributes) attributes", "attributes"))
        } else if namespacesInScope > Self.mostNamespaces {
            refuse(XMLError(.limitExceeded, "More than \(Self.mostNamespaces) namespaces are in scope."))
        } else if tag.hasName(longerThan: longest) {
            refuse(.limit("A name is longer than \(limits.name)", "name"))
        } else if defaultedBytes > Self.mostDefaultedBytes + Self.defaultedBytesOfElement * elements {
            refuse(XMLError(.limitExceeded, "Attributes by default make more of the document than there is."))
        }
        return failure == nil
    }

    /// Says that an element has ended.
    ///
    /// - Returns: Whether anybody wants to know.
    final func leave() -> Bool {
        guard failure == nil, let last = namespacesByDepth.popLast() else { return false }
        namespacesInScope -= last
        return true
    }
}

/// What libxml2 says of the start of an element; valid while its callback runs.
struct StartTag {
    let local: UnsafePointer<xmlChar>
    let prefix: UnsafePointer<xmlChar>?
    let uri: UnsafePointer<xmlChar>?
    let namespaceCount: Int
    /// Prefix and URI of each.
    let namespaces: UnsafeMutablePointer<UnsafePointer<xmlChar>?>?
    let attributeCount: Int
    /// How many of them the document type declaration supplies; they are the last.
    let defaultedCount: Int
    /// Local name, prefix, URI, start and end of the value of each.
    let attributes: UnsafeMutablePointer<UnsafePointer<xmlChar>?>?

    func attribute(_ index: Int, _ part: Int) -> UnsafePointer<xmlChar>? { attributes?[5 * index + part] }

    /// How long the value of an attribute is.
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
    /// Whether a text that ends with zero has more bytes than `most`.
    fileprivate func isLonger(than most: Int) -> Bool {
        strnlen(UnsafeRawPointer(self).assumingMemoryBound(to: CChar.self), most + 1) > most
    }

    /// The text that ends with zero.
    var text: String { String(cString: self) }
}
