// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Finds where markup ends, without understanding it, so that libxml2 gets tags, comments and the like whole.
///
/// libxml2 looks again for the end of what is incomplete with each piece it gets, which takes quadratic time, and
/// understands some documents differently when they are cut in certain places.
struct MarkupScanner {
    /// Why scanning stopped.
    enum Stop {
        /// All bytes were looked at.
        case starved
        /// A CDATA section or a document type declaration ends where everything is complete.
        case section
        /// No document looks like this; libxml2 will say why when it gets all up to `position` as the last bytes.
        case malformed
        case tooManyAttributes
        /// Some markup is longer than it may be.
        case tooLong
    }

    private enum State {
        case text, reference, open, bang, bangDash, tag
        case quoted(UInt8)
        /// How much of "[CDATA[" there was.
        case sectionStart(Int)
        /// How many of the characters of "]]>", "-->" or "?>" there were.
        case section(Int)
        case comment(Int)
        case instruction(Int)
        // In a document type declaration.
        case declaration, declarationOpen, declarationBang, declarationBangDash
        case declarationQuoted(UInt8)
        case declarationComment(Int)
        case declarationInstruction(Int)
    }

    /// How many quoted values a tag may have.
    let mostAttributes: Int
    /// How many bytes a piece of markup may have.
    let longestMarkup: Int
    /// How far it has looked.
    private(set) var position = 0
    /// Up to where nothing is incomplete.
    private(set) var complete = 0
    private var state = State.text
    private var isInSubset = false
    private var attributes = 0
    private var asides: [Range<Int>] = []
    private var asideStart = 0

    init(mostAttributes: Int, longestMarkup: Int) {
        self.mostAttributes = mostAttributes
        self.longestMarkup = longestMarkup
    }

    /// Says that the first bytes are gone.
    mutating func drop(_ count: Int) {
        position -= count
        complete -= count
        asideStart -= count
        asides = asides.map { $0.lowerBound - count..<$0.upperBound - count }
    }

    /// Where comments and instructions stood in the document type declaration that has just ended.
    mutating func takeAsides() -> [Range<Int>] {
        defer { asides = [] }
        return asides
    }

    /// Looks at what there is from `position` on.
    mutating func scan(_ bytes: [UInt8]) -> Stop {
        while position < bytes.count {
            if case .text = state {
                skipText(bytes)
                continue
            }
            let byte = bytes[position]
            position += 1
            if position - complete > longestMarkup, !isInSection { return .tooLong }
            if let stop = step(byte) { return stop }
        }
        if case .section(let found) = state { complete = max(complete, position - found) }
        return .starved
    }

    private var isInSection: Bool {
        if case .section = state { true } else { false }
    }

    /// Text goes on until "<" or "&"; "]]>", which is a mistake, has to arrive whole.
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
        case .bang: state = byte == 0x2D ? .bangDash : byte == 0x5B ? .sectionStart(1) : declares(byte)
        case .bangDash: state = byte == 0x2D ? .comment(0) : declares(byte)
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
            if attributes > mostAttributes { return .tooManyAttributes }
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

    private mutating func declares(_ byte: UInt8) -> State {
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
            if byte == 0x3E, found == 2 { return endAside() }
            state = .declarationComment(byte == 0x2D ? min(found + 1, 2) : 0)
        case .declarationInstruction(let found):
            if byte == 0x3E, found == 1 { return endAside() }
            state = .declarationInstruction(byte == 0x3F ? 1 : 0)
        default: break
        }
        return nil
    }

    private mutating func endAside() -> Stop? {
        asides.append(asideStart..<position)
        state = .declaration
        return nil
    }

    private mutating func declared(_ byte: UInt8) -> Stop? {
        switch byte {
        case 0x22, 0x27: state = .declarationQuoted(byte)
        case 0x5B: isInSubset = true
        case 0x5D: isInSubset = false
        case 0x3C where isInSubset:
            asideStart = position - 1
            state = .declarationOpen
        case 0x3C: return .malformed
        case 0x3E where !isInSubset: return end(.section)
        default: break
        }
        return nil
    }
}
