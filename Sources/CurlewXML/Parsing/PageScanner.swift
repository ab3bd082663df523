// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A scanner that finds the ends of tags, comments and scripts in an HTML page, so that libxml2 gets only whole ones.
///
/// The scanner follows the rules of libxml2's HTML parser and does not interpret the markup. Without it, the result of
/// libxml2's push parser depends on the boundaries of the chunks, and a tag with many attributes takes quadratic time.
///
/// The scanner also changes bytes of the page, because libxml2 ends a document when its outermost element ends:
///
/// - `</body>` and `</html>` get a name that closes nothing, because content after them belongs to the body (HTML
///   §13.2.6.4.19).
/// - End tags before all content become blanks.
/// - `<html/>`, `<head/>` and `<body/>` lose their slashes.
/// - Quotes that enclose no value become other characters, because libxml2 would wait for their counterparts and then
///   read the rest of the page at once, without any limit.
struct PageScanner {
    /// The reason why scanning stopped.
    enum Stop {
        /// All bytes are scanned.
        case starved
        case tooManyAttributes
        /// A tag, a comment or other markup is longer than the limit.
        case tooLong
        /// A text or a script is longer than libxml2 stores.
        case tooLongText
    }

    /// The characters that replace `"` and `'` in a value without quotes; ``HTMLContext`` turns them back.
    static let (doubleQuote, singleQuote) = (UInt8(1), UInt8(2))

    private enum State {
        case text, open, bang, bangDash
        /// The number of scanned characters of "<!doctype".
        case word(Int)
        /// The number of "-" that precede, and whether "--!" precedes.
        case comment(Int, Bool)
        case documentType, question, instruction
        case endOpen, endName, tagName
        // Inside a start tag.
        case blank, name, afterName, beforeValue, value, junk
        case quoted(UInt8)
        case script, scriptOpen
        /// The number of scanned characters of the name in the end tag of a script.
        case scriptEnd(Int)
    }

    /// The maximum number of attributes of a tag.
    let maximumAttributes: Int
    /// The maximum length of a tag, a comment or other markup in bytes.
    let maximumMarkupLength: Int
    /// The maximum length of a text or a script in bytes.
    let maximumTextLength: Int
    /// The position up to which the bytes are scanned.
    private(set) var position = 0
    /// The position after the last complete tag or other markup.
    private(set) var complete = 0
    private var state = State.text
    /// The position of the "<" of the current markup.
    private var start = 0
    /// The start of the current tag's name in lower case.
    private var tagName: [UInt8] = []
    private var attributes = 0
    private var nameLength = 0
    /// The element whose content is not markup, "script" or "style".
    private var scriptName: [UInt8] = []
    /// Whether a start tag or a text has opened the root element.
    private var hasContent = false
    private var isInReference = false

    /// The number of characters after which libxml2 ends a name.
    private static let maximumNameLength = 100

    init(maximumAttributes: Int, maximumMarkupLength: Int, maximumTextLength: Int) {
        self.maximumAttributes = maximumAttributes
        self.maximumMarkupLength = maximumMarkupLength
        self.maximumTextLength = maximumTextLength
    }

    /// Adjusts the positions after the first bytes have been removed.
    mutating func drop(_ count: Int) {
        position -= count
        complete -= count
        start -= count
    }

    /// Scans the bytes from `position` on, and changes tags that would end the document.
    mutating func scan(_ bytes: inout [UInt8]) -> Stop {
        while position < bytes.count {
            let byte = bytes[position]
            position += 1
            switch state {
            case .text, .script, .scriptOpen, .scriptEnd:
                if position - complete > maximumTextLength { return .tooLongText }
            default:
                if position - start > maximumMarkupLength { return .tooLong }
            }
            step(byte, &bytes)
            if attributes > maximumAttributes { return .tooManyAttributes }
        }
        return .starved
    }

    private mutating func step(_ byte: UInt8, _ bytes: inout [UInt8]) {
        switch state {
        case .text: text(byte)
        case .open: open(byte)
        case .bang: state = byte == 0x2D ? .bangDash : byte | 0x20 == 0x64 ? .word(3) : text(after: byte)
        case .bangDash: state = byte == 0x2D ? .comment(0, false) : text(after: byte)
        case .word(let count):
            if byte | 0x20 != Self.doctype[count] {
                state = text(after: byte)
            } else {
                state = count + 1 == Self.doctype.count ? .documentType : .word(count + 1)
            }
        case .comment(let dashes, let isAfterBang):
            if byte == 0x3E, dashes == 2 || isAfterBang { return finish() }
            state = .comment(byte == 0x2D ? min(dashes + 1, 2) : 0, byte == 0x21 && dashes == 2)
        case .documentType:
            if Self.isQuote(byte) { bytes[position - 1] = 0x20 }
            if byte == 0x3E { finish() }
        case .question:
            // libxml2 reads "<?" before another character as text. Its rules for non-ASCII letters are not repeated
            // here, so "<?é" becomes "<!é", which is always text.
            if byte >= 0x80 { bytes[position - 2] = 0x21 }
            let isTarget = byte < 0x80 && Self.isNameStart(byte) && byte != 0x2E
            state = isTarget ? .instruction : text(after: byte)
        case .instruction: if byte == 0x3E { finish() }
        case .endOpen, .endName: endTag(byte, &bytes)
        case .script, .scriptOpen, .scriptEnd: script(byte)
        default: tag(byte, &bytes)
        }
    }

    private static let doctype = Array("<!doctype".utf8)

    private mutating func finish() {
        state = .text
        complete = position
    }

    // MARK: Text

    private mutating func text(_ byte: UInt8) {
        if byte == 0x3C {
            start = position - 1
            attributes = 0
            state = .open
        } else if !hasContent {
            // A reference may be invalid, and then it is no content.
            isInReference = byte == 0x26 || (isInReference && (Self.isName(byte) || byte == 0x23 || byte == 0x3B))
            hasContent = byte > 0x20 && !isInReference
        }
    }

    /// Returns the state after a "<" that begins no markup.
    private mutating func text(after byte: UInt8) -> State {
        state = .text
        text(byte)
        return state
    }

    private mutating func open(_ byte: UInt8) {
        switch byte {
        case 0x21: state = .bang
        case 0x2F: state = .endOpen
        case 0x3F: state = .question
        case 0x41...0x5A, 0x61...0x7A:
            tagName = [byte | 0x20]
            nameLength = 1
            state = .tagName
        default: state = text(after: byte)
        }
    }

    // MARK: Start tags

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || 0x09...0x0A ~= byte || byte == 0x0D }

    private static func isNameStart(_ byte: UInt8) -> Bool {
        0x61...0x7A ~= byte | 0x20 || byte == 0x5F || byte == 0x3A || byte == 0x2E
    }

    private static func isName(_ byte: UInt8) -> Bool { isNameStart(byte) || 0x30...0x39 ~= byte || byte == 0x2D }

    private mutating func tag(_ byte: UInt8, _ bytes: inout [UInt8]) {
        if case .quoted(let quote) = state {
            if byte == quote { state = .blank }
            if byte == Self.doubleQuote || byte == Self.singleQuote { bytes[position - 1] = 3 }
            return
        }
        if byte == 0x3E { return endOfTag(&bytes) }
        tag(byte)
        switch state {
        case .junk where Self.isQuote(byte): bytes[position - 1] = 0x21
        case .value where Self.isQuote(byte):
            bytes[position - 1] = byte == 0x22 ? Self.doubleQuote : Self.singleQuote
        case .value where byte == Self.doubleQuote || byte == Self.singleQuote: bytes[position - 1] = 3
        default: break
        }
    }

    private static func isQuote(_ byte: UInt8) -> Bool { byte == 0x22 || byte == 0x27 }

    private mutating func tag(_ byte: UInt8) {
        switch state {
        case .tagName, .name:
            if Self.isName(byte) {
                nameLength += 1
                if nameLength > Self.maximumNameLength {
                    between(byte)
                } else if case .tagName = state, tagName.count < 8 {
                    tagName.append(byte.asciiLowercase)
                }
            } else if case .name = state, byte == 0x3D {
                state = .beforeValue
            } else {
                state = !Self.isBlank(byte) ? .junk : isNameOfTag ? .blank : .afterName
            }
        case .blank: between(byte)
        case .afterName:
            if byte == 0x3D { state = .beforeValue } else { between(byte) }
        case .beforeValue:
            if Self.isQuote(byte) {
                state = .quoted(byte)
            } else if !Self.isBlank(byte) {
                state = .value
            }
        case .value, .junk: if Self.isBlank(byte) { state = .blank }
        default: break
        }
    }

    private var isNameOfTag: Bool { if case .tagName = state { true } else { false } }

    private mutating func between(_ byte: UInt8) {
        if Self.isBlank(byte) { return }
        if Self.isNameStart(byte) { attribute() } else { state = .junk }
    }

    private mutating func attribute() {
        attributes += 1
        nameLength = 1
        state = .name
    }

    private static let outerNames = ["html", "head", "body"].map { Array($0.utf8) }

    private mutating func endOfTag(_ bytes: inout [UInt8]) {
        let isValue = if case .value = state { true } else { false }
        let isClosed = bytes[position - 2] == 0x2F && !isValue
        hasContent = true
        if isClosed, Self.outerNames.contains(tagName) { bytes[position - 2] = 0x20 }
        finish()
        if !isClosed, tagName.elementsEqual("script".utf8) || tagName.elementsEqual("style".utf8) {
            scriptName = tagName
            state = .script
        }
    }

    // MARK: End tags

    private mutating func endTag(_ byte: UInt8, _ bytes: inout [UInt8]) {
        if case .endOpen = state {
            tagName = []
            state = .endName
            if !Self.isNameStart(byte) {
                // libxml2 reads "</" alone as the tag.
                if !hasContent { blank(from: start, to: start + 2, &bytes) }
                state = text(after: byte)
                return
            }
        }
        if byte != 0x3E {
            // Every name with another character ends the collection, because no known name follows it.
            if tagName.count < 8 { tagName.append(Self.isName(byte) ? byte.asciiLowercase : 0x20) }
            return
        }
        let name = tagName.prefix { $0 != 0x20 }
        if !hasContent {
            blank(from: start, to: position, &bytes)
        } else if name.elementsEqual("html".utf8) || name.elementsEqual("body".utf8) {
            // HTML has no elements "zody" and "ztml", so this tag closes nothing.
            bytes[start + 2] = 0x7A
        }
        let isInScript = !scriptName.isEmpty && !name.elementsEqual(scriptName)
        finish()
        if isInScript { state = .script } else { scriptName = [] }
    }

    private func blank(from start: Int, to end: Int, _ bytes: inout [UInt8]) {
        for index in start..<end where bytes[index] != 0x0A { bytes[index] = 0x20 }
    }

    // MARK: Scripts

    /// Scans the content of `<script>` and `<style>` up to an end tag whose name begins with that of the element.
    private mutating func script(_ byte: UInt8) {
        switch state {
        case .scriptOpen where byte == 0x2F: state = .scriptEnd(0)
        case .scriptEnd(let count) where byte.asciiLowercase == scriptName[count]:
            if count == 0 { tagName = [] }
            tagName.append(byte.asciiLowercase)
            state = count + 1 == scriptName.count ? .endName : .scriptEnd(count + 1)
        default:
            if byte == 0x3C { start = position - 1 }
            state = byte == 0x3C ? .scriptOpen : .script
        }
    }
}
