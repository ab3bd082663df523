// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// One pass over a text, without recursion, which checks the whole text and writes the index.
///
/// Functions that are not inlined belong to ``JSONText`` and take a position, so that the state of the pass stays in
/// registers.
struct JSONIndexPass {
    private let text: JSONText
    private let index: JSONIndex
    private var allocation: JSONIndex.Allocation
    private var count = 0
    private var position = 0
    /// The innermost open container; −1 at the top level.
    ///
    /// The extent of an open container is its parent plus 1.
    private var open = -1
    private var isObject = false
    private var depth = 0

    private enum Step { case value, name, after }

    private init(_ text: JSONText, _ index: JSONIndex) {
        self.text = text
        self.index = index
        allocation = index.allocation
    }

    static func run(_ text: JSONText, _ index: JSONIndex) throws(JSONFlaw) {
        var pass = JSONIndexPass(text, index)
        pass.skipBlanks()
        if pass.position == text.end { throw JSONFlaw(.empty, at: pass.position) }
        var step = Step.value
        while true {
            switch step {
            case .value: step = try pass.value()
            case .name:
                try pass.name()
                step = .value
            case .after:
                guard pass.open >= 0 else {
                    pass.skipBlanks()
                    if pass.position < text.end { throw JSONFlaw(.trailing, at: pass.position) }
                    return index.finish(pass.count)
                }
                step = try pass.after()
            }
        }
    }

    /// The byte at the position; 0 at the end, which begins no token.
    private var byte: UInt8 {
        @inline(__always) get { text[position] }
    }

    @inline(__always)
    private mutating func append(_ entry: JSONEntry) {
        if count == allocation.capacity { allocation = index.grown() }
        (allocation.entries + count).initialize(to: entry.bits)
        count += 1
    }

    @inline(__always)
    private mutating func skipBlanks() {
        while position < text.end {
            let byte = text.bytes[position]
            if byte > 0x20 { return }
            guard byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 else { return }
            position += 1
        }
    }

    @inline(__always)
    private mutating func value() throws(JSONFlaw) -> Step {
        skipBlanks()
        switch byte {
        case UInt8(ascii: "\""): try string()
        case UInt8(ascii: "{"): return try enter(object: true)
        case UInt8(ascii: "["): return try enter(object: false)
        case UInt8(ascii: "-"), 0x30...0x39: try number()
        case UInt8(ascii: "t"): try word("true", .yes)
        case UInt8(ascii: "f"): try word("false", .no)
        case UInt8(ascii: "n"): try word("null", .null)
        default: throw JSONFlaw(.value, at: position)
        }
        return .after
    }

    @inline(__always)
    private mutating func word(_ word: StaticString, _ kind: JSONEntry.Kind) throws(JSONFlaw) {
        guard text.has(word, at: position) else { throw JSONFlaw(.value, at: position) }
        append(JSONEntry(kind, offset: position, extent: word.utf8CodeUnitCount))
        position += word.utf8CodeUnitCount
    }

    // MARK: Arrays and objects

    @inline(__always)
    private mutating func enter(object: Bool) throws(JSONFlaw) -> Step {
        guard depth < JSONLimits.depth else { throw JSONFlaw(.depth, at: position) }
        guard count < JSONLimits.count else { throw JSONFlaw(.size, at: position) }
        depth += 1
        append(JSONEntry(object ? .object : .array, offset: position, extent: open + 1))
        open = count - 1
        isObject = object
        position += 1
        skipBlanks()
        if object {
            if byte != UInt8(ascii: "}") { return .name }
        } else if byte != UInt8(ascii: "]") {
            return .value
        }
        leave()
        return .after
    }

    @inline(__always)
    private mutating func leave() {
        position += 1
        depth -= 1
        let entry = JSONEntry(bits: allocation.entries[open])
        allocation.entries[open] = JSONEntry(isObject ? .object : .array, offset: entry.offset, extent: count).bits
        open = entry.next - 1
        isObject = open >= 0 && JSONEntry(bits: allocation.entries[open]).code == JSONEntry.Kind.object.rawValue
    }

    @inline(__always)
    private mutating func after() throws(JSONFlaw) -> Step {
        skipBlanks()
        if byte == UInt8(ascii: ",") {
            position += 1
            if isObject { return .name }
            skipBlanks()
            if byte == UInt8(ascii: "]") { throw JSONFlaw(.elementOrEnd, at: position) }
            return .value
        }
        guard byte == (isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) else {
            throw JSONFlaw(.commaOrEnd(isObject: isObject), at: position)
        }
        guard count <= JSONLimits.count else { throw JSONFlaw(.size, at: position) }
        leave()
        return .after
    }

    @inline(__always)
    private mutating func name() throws(JSONFlaw) {
        skipBlanks()
        guard byte == UInt8(ascii: "\"") else { throw JSONFlaw(.name, at: position) }
        try string()
        skipBlanks()
        guard byte == UInt8(ascii: ":") else { throw JSONFlaw(.colon, at: position) }
        position += 1
    }

    // MARK: Numbers

    /// Checks a number (RFC 8259 §6) and writes its entry.
    @inline(__always)
    private mutating func number() throws(JSONFlaw) {
        let start = position
        if byte == UInt8(ascii: "-") { position += 1 }
        if byte == UInt8(ascii: "0") { position += 1 } else { try digits() }
        var kind = JSONEntry.Kind.integer
        if byte == UInt8(ascii: ".") {
            kind = .real
            position += 1
            let fraction = position
            skipDigits()
            if position == fraction { try digits() } else { while byte &- 0x30 < 10 { position += 1 } }
        }
        if byte | 0x20 == UInt8(ascii: "e") {
            kind = .real
            position += 1
            if byte == UInt8(ascii: "-") || byte == UInt8(ascii: "+") { position += 1 }
            try digits()
        }
        guard position - start <= JSONLimits.count else { throw JSONFlaw(.size, at: start) }
        append(JSONEntry(kind, offset: start, extent: position - start))
    }

    /// Skips one or more digits.
    @inline(__always)
    private mutating func digits() throws(JSONFlaw) {
        guard byte &- 0x30 < 10 else { throw JSONFlaw(.digit, at: position) }
        repeat { position += 1 } while byte &- 0x30 < 10
    }

    /// Skips digits, eight at a time, until eight bytes before the end.
    @inline(__always)
    private mutating func skipDigits() {
        while text.end - position >= 8 {
            let bytes = UnsafeRawPointer(text.bytes + position).loadUnaligned(as: UInt64.self)
            let word = UInt64(littleEndian: bytes) ^ 0x3030_3030_3030_3030
            let others = (word &+ 0x7676_7676_7676_7676 | word) & 0x8080_8080_8080_8080
            position += others.trailingZeroBitCount >> 3
            if others != 0 { return }
        }
    }

    // MARK: Strings

    /// Checks a string (RFC 8259 §7) and writes its entry; the position is at the opening quotation mark.
    @inline(__always)
    private mutating func string() throws(JSONFlaw) {
        let start = position + 1
        var kind = JSONEntry.Kind.ascii
        position = start
        while true {
            skipPlain()
            let byte = self.byte
            if byte == UInt8(ascii: "\"") { break }
            if byte == UInt8(ascii: "\\") {
                kind = .escaped
                position = try text.behindEscape(at: position)
            } else if byte >= 0x80 {
                if kind == .ascii { kind = .unicode }
                position = try text.behindCharacters(at: position)
            } else {
                throw position < text.end ? JSONFlaw(.control, at: position) : JSONFlaw(.unterminated, at: start - 1)
            }
        }
        guard position - start <= JSONLimits.count else { throw JSONFlaw(.size, at: start) }
        append(JSONEntry(kind, offset: start, extent: position - start))
        position += 1
    }

    /// Skips plain ASCII characters, eight at a time.
    @inline(__always)
    private mutating func skipPlain() {
        let ones: UInt64 = 0x0101_0101_0101_0101
        while text.end - position >= 8 {
            let word = UInt64(littleEndian: UnsafeRawPointer(text.bytes + position).loadUnaligned(as: UInt64.self))
            let quote = word ^ (ones &* 0x22)
            let slash = word ^ (ones &* 0x5C)
            // The lowest set bit marks the first byte to examine; higher bits may be wrong.
            let found =
                ((quote &- ones) & ~quote | (slash &- ones) & ~slash | (word &- ones &* 0x20) & ~word | word)
                & (ones &* 0x80)
            if found != 0 {
                position += found.trailingZeroBitCount >> 3
                return
            }
            position += 8
        }
        while position < text.end {
            let byte = text.bytes[position]
            if byte == 0x22 || byte == 0x5C || byte < 0x20 || byte >= 0x80 { return }
            position += 1
        }
    }
}

/// A text whose methods never read beyond its end.
struct JSONText {
    let bytes: UnsafePointer<UInt8>
    let end: Int

    /// The byte at a position; 0 at the end.
    subscript(position: Int) -> UInt8 {
        @inline(__always) get { position < end ? bytes[position] : 0 }
    }

    @inline(never)
    func has(_ word: StaticString, at position: Int) -> Bool {
        let length = word.utf8CodeUnitCount
        return end - position >= length && memcmp(bytes + position, word.utf8Start, length) == 0
    }

    /// Returns the position after an escape.
    @inline(never)
    func behindEscape(at start: Int) throws(JSONFlaw) -> Int {
        switch self[start + 1] {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
            UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            return start + 2
        case UInt8(ascii: "u"):
            let unit = try self.unit(at: start + 2, of: start)
            if unit & 0xF800 != 0xD800 { return start + 6 }
            guard unit < 0xDC00, self[start + 6] == UInt8(ascii: "\\"), self[start + 7] == UInt8(ascii: "u"),
                try self.unit(at: start + 8, of: start) & 0xFC00 == 0xDC00
            else { throw JSONFlaw(.surrogate, at: start) }
            return start + 12
        default: throw JSONFlaw(.escape, at: start)
        }
    }

    /// Reads four hexadecimal digits.
    private func unit(at position: Int, of start: Int) throws(JSONFlaw) -> UInt32 {
        var unit: UInt32 = 0
        for place in position..<position + 4 {
            guard let digit = self[place].hexadecimalValue else { throw JSONFlaw(.escape, at: start) }
            unit = unit << 4 | UInt32(digit)
        }
        return unit
    }

    /// Returns the position after non-ASCII characters, which must be well-formed (Unicode 15, table 3-7).
    @inline(never)
    func behindCharacters(at start: Int) throws(JSONFlaw) -> Int {
        var position = start
        while self[position] >= 0x80 {
            let (length, low, high): (Int, UInt8, UInt8) =
                switch self[position] {
                case 0xC2...0xDF: (2, 0x80, 0xBF)
                case 0xE0: (3, 0xA0, 0xBF)
                case 0xED: (3, 0x80, 0x9F)
                case 0xE1...0xEF: (3, 0x80, 0xBF)
                case 0xF0: (4, 0x90, 0xBF)
                case 0xF1...0xF3: (4, 0x80, 0xBF)
                case 0xF4: (4, 0x80, 0x8F)
                default: throw JSONFlaw(.encoding, at: position)
                }
            let second = self[position + 1]
            guard second >= low, second <= high else { throw JSONFlaw(.encoding, at: position) }
            for tail in 2..<length where self[position + tail] & 0xC0 != 0x80 {
                throw JSONFlaw(.encoding, at: position)
            }
            position += length
        }
        return position
    }
}

extension UInt8 {
    /// The value of a hexadecimal digit; nil for other characters.
    var hexadecimalValue: UInt8? {
        switch self {
        case 0x30...0x39: self - 0x30
        case 0x41...0x46: self - 0x41 + 10
        case 0x61...0x66: self - 0x61 + 10
        default: nil
        }
    }
}
