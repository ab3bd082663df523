// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Reads text of JSON (RFC 8259) as a ``JSONValue``, in time that grows with the length of the text and nothing else.
///
/// By Foundation's decoder such a value takes time that grows with the cube of its depth, which is for the peer to
/// choose. As that decoder does, it counts the first of members with the same name.
struct JSONReader {
    enum Failure: Error, Equatable {
        /// It is no JSON, from this byte on.
        case malformed(at: Int)
        /// A number is beyond `Double`.
        case overflow(at: Int)
        /// More arrays and objects are within each other than anybody means.
        case tooDeep(at: Int)
    }

    /// How many arrays and objects may be within each other, as in Foundation's decoder.
    static let depthLimit = 512

    private let bytes: [UInt8]
    private var position = 0
    private var depth = 0

    private init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// The value that the whole text is, in UTF-8 without a byte order mark.
    static func value(of text: some Collection<UInt8>) throws(Failure) -> JSONValue {
        var reader = JSONReader(Array(text))
        let value = try reader.value()
        guard reader.next() == nil else { throw reader.malformed }
        return value
    }

    private var malformed: Failure { .malformed(at: position) }

    private var byte: UInt8? { position < bytes.count ? bytes[position] : nil }

    /// The byte behind white space, which is left behind.
    private mutating func next() -> UInt8? {
        while let byte, byte.isBlank { position += 1 }
        return byte
    }

    /// Goes past a byte if it is the next one.
    private mutating func skip(_ character: Unicode.Scalar) -> Bool {
        guard byte == UInt8(ascii: character) else { return false }
        position += 1
        return true
    }

    private mutating func value() throws(Failure) -> JSONValue {
        switch next() {
        case UInt8(ascii: "["): return .array(try elements())
        case UInt8(ascii: "{"): return .object(try members())
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try word("true", .bool(true))
        case UInt8(ascii: "f"): return try word("false", .bool(false))
        case UInt8(ascii: "n"): return try word("null", .null)
        default: return try number()
        }
    }

    private mutating func word(_ word: StaticString, _ value: JSONValue) throws(Failure) -> JSONValue {
        let end = position + word.utf8CodeUnitCount
        guard bytes[position...].starts(with: word.description.utf8) else { throw malformed }
        position = end
        return value
    }

    // MARK: Arrays and objects

    private mutating func enter() throws(Failure) {
        guard depth < Self.depthLimit else { throw .tooDeep(at: position) }
        position += 1
        depth += 1
    }

    private mutating func elements() throws(Failure) -> [JSONValue] {
        try enter()
        defer { depth -= 1 }
        var elements: [JSONValue] = []
        _ = next()
        if skip("]") { return elements }
        repeat {
            elements.append(try value())
            _ = next()
        } while skip(",")
        guard skip("]") else { throw malformed }
        return elements
    }

    private mutating func members() throws(Failure) -> [String: JSONValue] {
        try enter()
        defer { depth -= 1 }
        var members: [String: JSONValue] = [:]
        _ = next()
        if skip("}") { return members }
        repeat {
            guard next() == UInt8(ascii: "\"") else { throw malformed }
            let name = try string()
            _ = next()
            guard skip(":") else { throw malformed }
            let value = try self.value()
            if members[name] == nil { members[name] = value }
            _ = next()
        } while skip(",")
        guard skip("}") else { throw malformed }
        return members
    }
}

// MARK: - Strings

extension JSONReader {
    /// A string, at whose quotation mark we are (RFC 8259 §7).
    private mutating func string() throws(Failure) -> String {
        let start = position
        position += 1
        // What was before the last escape; what follows it is copied at once.
        var text: [UInt8] = []
        var rest = position
        while let byte, byte != UInt8(ascii: "\"") {
            guard byte >= 0x20 else { throw malformed }
            guard byte == UInt8(ascii: "\\") else {
                position += 1
                continue
            }
            text += bytes[rest..<position]
            position += 1
            text += String(try escaped()).utf8
            rest = position
        }
        let end = position
        guard skip("\"") else { throw malformed }
        let string =
            text.isEmpty
            ? String(validating: bytes[rest..<end], as: UTF8.self)
            : String(validating: text + bytes[rest..<end], as: UTF8.self)
        guard let string else { throw .malformed(at: start) }
        return string
    }

    /// The character an escape stands for, behind its backslash.
    private mutating func escaped() throws(Failure) -> Unicode.Scalar {
        guard let letter = byte, let index = Self.letters.firstIndex(of: letter) else {
            guard skip("u") else { throw malformed }
            return try scalar()
        }
        position += 1
        return Self.characters[index]
    }

    private static let letters = Array(#""\/bfnrt"#.utf8)
    private static let characters: [Unicode.Scalar] = ["\"", "\\", "/", "\u{8}", "\u{C}", "\n", "\r", "\t"]

    /// One unit of UTF-16 in hexadecimal digits, or a surrogate and its other half in an escape of its own.
    private mutating func scalar() throws(Failure) -> Unicode.Scalar {
        let start = position
        let unit = try self.unit()
        if let scalar = Unicode.Scalar(unit) { return scalar }
        guard UTF16.isLeadSurrogate(unit), skip("\\"), skip("u") else { throw .malformed(at: start) }
        let trail = try self.unit()
        guard UTF16.isTrailSurrogate(trail),
            let scalar = Unicode.Scalar(0x1_0000 + UInt32(unit & 0x3FF) << 10 + UInt32(trail & 0x3FF))
        else { throw .malformed(at: start) }
        return scalar
    }

    private mutating func unit() throws(Failure) -> UInt16 {
        var unit: UInt16 = 0
        for _ in 0..<4 {
            guard let digit = byte.flatMap({ Character(Unicode.Scalar($0)).hexDigitValue }) else { throw malformed }
            unit = unit << 4 | UInt16(digit)
            position += 1
        }
        return unit
    }
}

// MARK: - Numbers

extension JSONReader {
    /// A number (RFC 8259 §6): exactly if it is an integer of 64 bits, else the nearest `Double`.
    private mutating func number() throws(Failure) -> JSONValue {
        let start = position
        _ = skip("-")
        if !skip("0") { try digits() }
        var isInteger = true
        if skip(".") {
            isInteger = false
            try digits()
        }
        if skip("e") || skip("E") {
            isInteger = false
            if !skip("-") { _ = skip("+") }
            try digits()
        }
        let text = String(decoding: bytes[start..<position], as: UTF8.self)
        if isInteger {
            if let value = Int64(text) { return .integer(value) }
            if let value = UInt64(text) { return .unsigned(value) }
        }
        guard let value = Double(text), value.isFinite else { throw .overflow(at: start) }
        if isInteger { return .number(value) }
        // 1.0 is the integer that it would be by the decoder.
        return Int64(exactly: value).map { .integer($0) } ?? UInt64(exactly: value).map { .unsigned($0) }
            ?? .number(value)
    }

    /// Goes past one digit and all that follow.
    private mutating func digits() throws(Failure) {
        guard let byte = byte, Self.isDigit(byte) else { throw malformed }
        while let byte = self.byte, Self.isDigit(byte) { position += 1 }
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
}
