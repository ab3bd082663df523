// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Reads an XML text up to the end of its first start tag, byte by byte (XML 1.0, §2.8 and §3.1).
///
/// The text is in UTF-8 or in another superset of ASCII, or in UTF-16 with a byte order mark. Bytes and units outside
/// of ASCII are parts of names and values.
struct SVGStart: Sendable {
    private enum State: Sendable {
        /// Between the parts of the prolog.
        case prolog
        /// Behind "<".
        case open
        case instruction, bang, comment
        case type(depth: Int, quote: UInt8?), typeComment(depth: Int)
        case name, tag, attribute, equals, beforeValue
        case value(quote: UInt8)
        case done, failed
    }

    private enum Encoding: Sendable {
        case unknown, bytes, utf16(ByteOrder)
    }

    /// The attributes that are kept, and the maximum length of a value.
    private static let names: Set<String> = ["width", "height", "viewBox"]
    private static let maximumLength = 128

    /// The values of `width`, `height` and `viewBox` of the element, without those that are too long.
    private(set) var attributes: [String: String] = [:]
    /// Whether the first element is `svg`, with any prefix.
    private(set) var isSVG = false
    private var state = State.prolog
    private var encoding = Encoding.unknown
    /// The bytes of a mark or of an incomplete unit.
    private var unit: [UInt8] = []
    /// The last four characters in markup.
    private var recent: UInt32 = 0
    /// A name or a value, and whether it is too long.
    private var text: [UInt8] = []
    private var attribute = ""

    var isDone: Bool { if case .done = state { true } else { false } }
    /// Whether the tag is complete, or the text is not SVG.
    var hasEnded: Bool {
        switch state {
        case .done, .failed: true
        default: false
        }
    }

    mutating func push(_ byte: UInt8) {
        switch encoding {
        case .bytes: read(byte)
        case .utf16(let order):
            unit.append(byte)
            guard unit.count == 2 else { return }
            let value = unit.number(at: 0, bytes: 2, order)
            unit = []
            read(value < 0x80 ? UInt8(value) : 0x80)
        case .unknown: detect(byte)
        }
    }

    /// Reads a byte that may be a part of the byte order mark.
    private mutating func detect(_ byte: UInt8) {
        unit.append(byte)
        switch unit {
        case [0xEF], [0xEF, 0xBB], [0xFE], [0xFF]: return
        case [0xEF, 0xBB, 0xBF]: encoding = .bytes
        case [0xFE, 0xFF]: encoding = .utf16(.big)
        case [0xFF, 0xFE]: encoding = .utf16(.little)
        default:
            encoding = .bytes
            if unit.count == 1 { read(byte) } else { state = .failed }
        }
        unit = []
    }

    private mutating func read(_ byte: UInt8) {
        if byte == 0 { state = .failed }
        recent = recent << 8 | UInt32(byte)
        switch state {
        case .prolog:
            if byte == UInt8(ascii: "<") { state = .open } else if !byte.isXMLSpace { state = .failed }
        case .open, .bang, .instruction, .comment, .type, .typeComment: readProlog(byte)
        case .name: readName(byte)
        case .done, .failed: break
        default: readTag(byte)
        }
    }

    private mutating func readProlog(_ byte: UInt8) {
        switch state {
        case .open:
            switch byte {
            case UInt8(ascii: "?"): (state, recent) = (.instruction, 0)
            case UInt8(ascii: "!"): (state, text) = (.bang, [])
            case _ where byte.isXMLNameStart: (state, text) = (.name, [byte])
            default: state = .failed
            }
        case .instruction:
            if recent & 0xFFFF == 0x3F3E { state = .prolog }
        case .bang:
            text.append(byte)
            if text.elementsEqual("--".utf8) {
                (state, recent) = (.comment, 0)
            } else if text.elementsEqual("DOCTYPE".utf8) {
                state = .type(depth: 0, quote: nil)
            } else if !"--".utf8.starts(with: text), !"DOCTYPE".utf8.starts(with: text) {
                state = .failed
            }
        case .comment:
            if recent & 0xFFFFFF == 0x2D2D3E { state = .prolog }
        case .typeComment(let depth):
            if recent & 0xFFFFFF == 0x2D2D3E { state = .type(depth: depth, quote: nil) }
        case .type(let depth, let quote?):
            if byte == quote { state = .type(depth: depth, quote: nil) }
        case .type(let depth, nil): readType(byte, depth)
        default: break
        }
    }

    /// Reads a document type outside of quotes, with its internal subset in brackets (§2.8).
    private mutating func readType(_ byte: UInt8, _ depth: Int) {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "'"): state = .type(depth: depth, quote: byte)
        case UInt8(ascii: "["): state = .type(depth: depth + 1, quote: nil)
        case UInt8(ascii: "]"): state = .type(depth: max(0, depth - 1), quote: nil)
        case UInt8(ascii: ">") where depth == 0: state = .prolog
        case _ where recent == 0x3C21_2D2D: (state, recent) = (.typeComment(depth: depth), 0)
        default: break
        }
    }

    private mutating func readName(_ byte: UInt8) {
        if byte.isXMLName {
            text.append(byte)
            if text.count > Self.maximumLength { state = .failed }
            return
        }
        let parts = text.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        guard parts.count <= 2, parts.last?.elementsEqual("svg".utf8) == true else {
            state = .failed
            return
        }
        state = .tag
        readTag(byte)
        if case .failed = state { return }
        isSVG = true
    }

    private mutating func readTag(_ byte: UInt8) {
        switch state {
        case .tag:
            switch byte {
            case UInt8(ascii: ">"), UInt8(ascii: "/"): state = .done
            case _ where byte.isXMLSpace: break
            case _ where byte.isXMLNameStart: (state, text) = (.attribute, [byte])
            default: state = .failed
            }
        case .attribute where byte.isXMLName:
            if text.count <= Self.maximumLength { text.append(byte) }
        case .attribute, .equals:
            if case .attribute = state { attribute = String(decoding: text, as: UTF8.self) }
            if byte == UInt8(ascii: "=") {
                state = .beforeValue
            } else if byte.isXMLSpace {
                state = .equals
            } else {
                state = .failed
            }
        case .beforeValue where byte.isXMLSpace: break
        case .beforeValue where byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'"):
            (state, text) = (.value(quote: byte), [])
        case .value(let quote): readValue(byte, quote)
        default: state = .failed
        }
    }

    private mutating func readValue(_ byte: UInt8, _ quote: UInt8) {
        guard byte == quote else {
            if byte == UInt8(ascii: "<") { state = .failed }
            if text.count <= Self.maximumLength { text.append(byte) }
            return
        }
        state = .tag
        guard Self.names.contains(attribute), attributes[attribute] == nil, text.count <= Self.maximumLength else {
            return
        }
        attributes[attribute] = String(decoding: text, as: UTF8.self)
    }
}

extension UInt8 {
    /// White space of XML (§2.3).
    var isXMLSpace: Bool { [0x20, 0x09, 0x0A, 0x0D].contains(self) }

    /// A letter, "_", ":", or a part of a character outside of ASCII (§2.3, NameStartChar).
    fileprivate var isXMLNameStart: Bool { 0x41...0x5A ~= self & 0xDF || self == 0x5F || self == 0x3A || self >= 0x80 }

    /// A further character of a name (§2.3, NameChar).
    fileprivate var isXMLName: Bool { isXMLNameStart || 0x30...0x39 ~= self || self == 0x2D || self == 0x2E }
}
