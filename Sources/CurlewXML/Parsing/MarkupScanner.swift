// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A scanner that finds the ends of markup, so that libxml2 gets only complete tags, comments and other markup.
///
/// The scanner does not interpret the markup. Without it, libxml2 searches incomplete markup from its start again for
/// each chunk, which takes quadratic time, and its result for some documents depends on the chunk boundaries.
struct MarkupScanner {
    /// The reason why scanning stopped.
    enum Stop {
        /// All bytes are scanned.
        case starved
        /// A CDATA section or a document type declaration ends at `complete`.
        case section
        /// The markup is malformed; libxml2 reports the error if it gets the bytes up to `position` as the last ones.
        case malformed
        case tooManyAttributes
        /// Some markup is longer than the limit.
        case tooLong
    }

    private enum State {
        case text, reference, open, bang, bangDash, tag
        case quoted(UInt8)
        /// The number of scanned characters of "[CDATA[".
        case sectionStart(Int)
        /// The number of scanned characters of "]]>", "-->" or "?>".
        case section(Int)
        case comment(Int)
        case instruction(Int)
        // States inside a document type declaration.
        case declaration, declarationOpen, declarationBang, declarationBangDash
        case declarationQuoted(UInt8)
        case declarationComment(Int)
        case declarationInstruction(Int)
    }

    /// The maximum number of quoted values in a tag.
    let maximumAttributes: Int
    /// The maximum length of a tag, a comment or other markup in bytes.
    let maximumMarkupLength: Int
    /// The position up to which the bytes are scanned.
    private(set) var position = 0
    /// The position up to which all markup is complete.
    private(set) var complete = 0
    private var state = State.text
    private var isInSubset = false
    private var attributes = 0
    private var commentRanges: [Range<Int>] = []
    private var commentStart = 0

    init(maximumAttributes: Int, maximumMarkupLength: Int) {
        self.maximumAttributes = maximumAttributes
        self.maximumMarkupLength = maximumMarkupLength
    }

    /// Adjusts the positions after the first bytes have been removed.
    mutating func drop(_ count: Int) {
        position -= count
        complete -= count
        commentStart -= count
        commentRanges = commentRanges.map { $0.lowerBound - count..<$0.upperBound - count }
    }

    /// Returns and clears the ranges of comments and instructions in the document type declaration that has just ended.
    mutating func takeCommentRanges() -> [Range<Int>] {
        defer { commentRanges = [] }
        return commentRanges
    }

    /// Scans the bytes from `position` on.
    mutating func scan(_ bytes: [UInt8]) -> Stop {
        while position < bytes.count {
            if case .text = state {
                skipText(bytes)
                continue
            }
            let byte = bytes[position]
            position += 1
            if position - complete > maximumMarkupLength, !isInSection { return .tooLong }
            if let stop = step(byte) { return stop }
        }
        if case .section(let found) = state { complete = max(complete, position - found) }
        return .starved
    }

    private var isInSection: Bool {
        if case .section = state { true } else { false }
    }

    /// Skips text up to "<" or "&"; "]]>" in text is a mistake and must reach libxml2 whole.
    private mutating func skipText(_ bytes: [UInt8]) {
        while position < bytes.count {
            let byte = bytes[position]
            position += 1
            if byte == 0x3C || byte == 0x26 {
                complete = position - 1
                state = byte == 0x3C ? .open : .reference
                return
            }
        }
        let least = max(complete, position - 2)
        complete = position
        while complete > least, bytes[complete - 1] == 0x5D { complete -= 1 }
    }

    private mutating func step(_ byte: UInt8) -> Stop? {
        switch state {
        case .text: break
        case .reference: return reference(byte)
        case .open: return open(byte)
        case .bang: state = byte == 0x2D ? .bangDash : byte == 0x5B ? .sectionStart(1) : startDeclaration(byte)
        case .bangDash: state = byte == 0x2D ? .comment(0) : startDeclaration(byte)
        case .tag: return tag(byte)
        case .quoted(let quote):
            if byte == 0x3C { return .malformed }
            if byte == quote { state = .tag }
        case .sectionStart(let found): return sectionStart(byte, found)
        case .section(let found):
            if byte == 0x3E, found == 2 { return end(.section) }
            state = .section(byte == 0x5D ? min(found + 1, 2) : 0)
        case .comment(let found):
            if byte == 0x3E, found == 2 { return end(nil) }
            state = .comment(byte == 0x2D ? min(found + 1, 2) : 0)
        case .instruction(let found):
            if byte == 0x3E, found == 1 { return end(nil) }
            state = .instruction(byte == 0x3F ? 1 : 0)
        default: return declaration(byte)
        }
        return nil
    }

    private mutating func end(_ stop: Stop?) -> Stop? {
        state = .text
        complete = position
        return stop
    }

    private mutating func reference(_ byte: UInt8) -> Stop? {
        if byte == 0x3B { return end(nil) }
        let isName = byte >= 0x80 || 0x61...0x7A ~= byte | 0x20 || 0x2D...0x3A ~= byte || byte == 0x5F || byte == 0x23
        return isName ? nil : .malformed
    }

    private mutating func open(_ byte: UInt8) -> Stop? {
        switch byte {
        case 0x3F: state = .instruction(0)
        case 0x21: state = .bang
        default:
            attributes = 0
            state = .tag
            return tag(byte)
        }
        return nil
    }

    private mutating func tag(_ byte: UInt8) -> Stop? {
        switch byte {
        case 0x3E: return end(nil)
        case 0x3C: return .malformed
        case 0x22, 0x27:
            attributes += 1
            if attributes > maximumAttributes { return .tooManyAttributes }
            state = .quoted(byte)
        default: break
        }
        return nil
    }

    private static let sectionWord = Array("[CDATA[".utf8)

    private mutating func sectionStart(_ byte: UInt8, _ found: Int) -> Stop? {
        guard byte == Self.sectionWord[found] else { return .malformed }
        state = .sectionStart(found + 1)
        if found + 1 == Self.sectionWord.count {
            state = .section(0)
            complete = position
        }
        return nil
    }

    // MARK: Document type declarations

    private mutating func startDeclaration(_ byte: UInt8) -> State {
        isInSubset = byte == 0x5B
        return .declaration
    }

    private mutating func declaration(_ byte: UInt8) -> Stop? {
        switch state {
        case .declaration: return declared(byte)
        case .declarationQuoted(let quote): if byte == quote { state = .declaration }
        case .declarationOpen:
            state = byte == 0x21 ? .declarationBang : byte == 0x3F ? .declarationInstruction(0) : .declaration
        case .declarationBang: state = byte == 0x2D ? .declarationBangDash : .declaration
        case .declarationBangDash: state = byte == 0x2D ? .declarationComment(0) : .declaration
        case .declarationComment(let found):
            if byte == 0x3E, found == 2 { return endComment() }
            state = .declarationComment(byte == 0x2D ? min(found + 1, 2) : 0)
        case .declarationInstruction(let found):
            if byte == 0x3E, found == 1 { return endComment() }
            state = .declarationInstruction(byte == 0x3F ? 1 : 0)
        default: break
        }
        return nil
    }

    private mutating func endComment() -> Stop? {
        commentRanges.append(commentStart..<position)
        state = .declaration
        return nil
    }

    private mutating func declared(_ byte: UInt8) -> Stop? {
        switch byte {
        case 0x22, 0x27: state = .declarationQuoted(byte)
        case 0x5B: isInSubset = true
        case 0x5D: isInSubset = false
        case 0x3C where isInSubset:
            commentStart = position - 1
            state = .declarationOpen
        case 0x3C: return .malformed
        case 0x3E where !isInSubset: return end(.section)
        default: break
        }
        return nil
    }
}
