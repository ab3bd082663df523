// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// The value of a structured field (RFC 9651): a dictionary or a list of members.
///
/// The parser is strict, as RFC 9651 §4.2 demands: one error makes the whole field invalid.
struct StructuredField: Hashable, Sendable {
    /// A value without parameters (RFC 9651 §3.3).
    enum BareItem: Hashable, Sendable {
        case integer(Int64)
        case decimal(Double)
        case string(String)
        case token(String)
        case bytes([UInt8])
        case boolean(Bool)
        /// Seconds since 1970.
        case date(Int64)
        case displayString(String)
    }

    /// A value with its parameters.
    struct Item: Hashable, Sendable {
        var value: BareItem
        var parameters: [String: BareItem] = [:]
    }

    /// A member of a list or a dictionary (RFC 9651 §3.1, §3.2).
    enum Member: Hashable, Sendable {
        case item(Item)
        case list([Item], parameters: [String: BareItem])

        /// The value of an item; nil for an inner list.
        var bare: BareItem? { if case .item(let item) = self { item.value } else { nil } }

        /// The items of an inner list; nil for an item.
        var items: [Item]? { if case .list(let items, _) = self { items } else { nil } }
    }

    /// Parses a dictionary; nil for an invalid one.
    static func dictionary(_ text: String) -> [String: Member]? {
        var parser = StructuredFieldParser(text)
        return try? parser.dictionary()
    }

    /// Parses a list; nil for an invalid one.
    static func list(_ text: String) -> [Member]? {
        var parser = StructuredFieldParser(text)
        return try? parser.list()
    }

    /// Returns the strings of a list; nil if the list is invalid or has another member.
    static func strings(_ text: String) -> [String]? {
        guard let members = list(text) else { return nil }
        var strings: [String] = []
        for member in members {
            guard case .string(let string)? = member.bare else { return nil }
            strings.append(string)
        }
        return strings
    }

    /// Returns text as a string of a structured field; nil if the text has characters other than visible ASCII and the
    /// space (RFC 9651 §3.3.3).
    static func serialized(_ text: String) -> String? {
        guard text.utf8.allSatisfy({ 0x20...0x7E ~= $0 }) else { return nil }
        var result = "\""
        for character in text.unicodeScalars {
            if character == "\"" || character == "\\" { result += "\\" }
            result.unicodeScalars.append(character)
        }
        return result + "\""
    }
}

/// A cursor over the bytes of a structured field (RFC 9651 §4.2).
private struct StructuredFieldParser {
    private struct Flaw: Error {}

    private let bytes: [UInt8]
    private var position = 0

    init(_ text: String) { bytes = Array(text.utf8) }

    private var current: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func take(_ byte: Character) -> Bool {
        guard current == byte.asciiValue else { return false }
        position += 1
        return true
    }

    private mutating func skip(_ isSkipped: (UInt8) -> Bool) {
        while let byte = current, isSkipped(byte) { position += 1 }
    }

    private mutating func takeWhile(_ isTaken: (UInt8) -> Bool) -> String {
        let start = position
        skip(isTaken)
        return String(decoding: bytes[start..<position], as: UTF8.self)
    }

    // MARK: Lists and dictionaries

    mutating func list() throws -> [StructuredField.Member] {
        var members: [StructuredField.Member] = []
        try forEachMember { parser in members.append(try parser.member()) }
        return members
    }

    mutating func dictionary() throws -> [String: StructuredField.Member] {
        var members: [String: StructuredField.Member] = [:]
        try forEachMember { parser in
            let key = try parser.key()
            if parser.take("=") {
                members[key] = try parser.member()
            } else {
                members[key] = .item(StructuredField.Item(value: .boolean(true), parameters: try parser.parameters()))
            }
        }
        return members
    }

    private mutating func forEachMember(_ parse: (inout Self) throws -> Void) throws {
        skip { $0 == 0x20 }
        while current != nil {
            try parse(&self)
            skip(\.isLinearSpace)
            if current == nil { return }
            guard take(",") else { throw Flaw() }
            skip(\.isLinearSpace)
            // A comma must not be last.
            guard current != nil else { throw Flaw() }
        }
    }

    private mutating func member() throws -> StructuredField.Member {
        guard take("(") else { return .item(try item()) }
        var items: [StructuredField.Item] = []
        while current != nil {
            skip { $0 == 0x20 }
            if take(")") { return .list(items, parameters: try parameters()) }
            items.append(try item())
            guard current == 0x20 || current == UInt8(ascii: ")") else { throw Flaw() }
        }
        throw Flaw()
    }

    private mutating func item() throws -> StructuredField.Item {
        let value = try bareItem()
        return StructuredField.Item(value: value, parameters: try parameters())
    }

    private mutating func parameters() throws -> [String: StructuredField.BareItem] {
        var parameters: [String: StructuredField.BareItem] = [:]
        while take(";") {
            skip { $0 == 0x20 }
            let key = try key()
            parameters[key] = take("=") ? try bareItem() : .boolean(true)
        }
        return parameters
    }

    private mutating func key() throws -> String {
        guard let first = current, ByteSet.lowerCaseLetters.contains(first) || first == UInt8(ascii: "*") else {
            throw Flaw()
        }
        return takeWhile(Self.keyBytes.contains)
    }

    private static let keyBytes = ByteSet.lowerCaseLetters.union(ByteSet.digits).union(ByteSet("_-.*"))
    private static let tokenBytes = ByteSet.token.union(ByteSet(":/"))

    // MARK: Items

    private mutating func bareItem() throws -> StructuredField.BareItem {
        guard let first = current else { throw Flaw() }
        switch first {
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: ":"): return .bytes(try byteSequence())
        case UInt8(ascii: "?"): return .boolean(try boolean())
        case UInt8(ascii: "@"): return .date(try date())
        case UInt8(ascii: "%"): return .displayString(try displayString())
        case UInt8(ascii: "-"): return try number()
        case _ where ByteSet.digits.contains(first): return try number()
        case _ where ByteSet.letters.contains(first) || first == UInt8(ascii: "*"):
            return .token(takeWhile(Self.tokenBytes.contains))
        default: throw Flaw()
        }
    }

    private mutating func number() throws -> StructuredField.BareItem {
        let sign = take("-") ? "-" : ""
        let whole = takeWhile(ByteSet.digits.contains)
        guard 1...15 ~= whole.utf8.count else { throw Flaw() }
        guard take(".") else { return .integer(Int64(sign + whole) ?? 0) }
        let fraction = takeWhile(ByteSet.digits.contains)
        guard whole.utf8.count <= 12, 1...3 ~= fraction.utf8.count else { throw Flaw() }
        return .decimal(Double("\(sign)\(whole).\(fraction)") ?? 0)
    }

    private mutating func string() throws -> String {
        position += 1
        var text: [UInt8] = []
        while let byte = current {
            position += 1
            if byte == UInt8(ascii: "\"") { return String(decoding: text, as: UTF8.self) }
            guard 0x20...0x7E ~= byte else { throw Flaw() }
            if byte == UInt8(ascii: "\\") {
                guard let escaped = current, escaped == UInt8(ascii: "\"") || escaped == UInt8(ascii: "\\") else {
                    throw Flaw()
                }
                position += 1
                text.append(escaped)
            } else {
                text.append(byte)
            }
        }
        throw Flaw()
    }

    private mutating func byteSequence() throws -> [UInt8] {
        position += 1
        let text = takeWhile { $0 != UInt8(ascii: ":") }
        // The padding is optional (RFC 9651 §4.2.7).
        let padding = String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
        guard take(":"), let bytes = Data(base64Encoded: text + padding) else { throw Flaw() }
        return Array(bytes)
    }

    private mutating func boolean() throws -> Bool {
        position += 1
        if take("1") { return true }
        guard take("0") else { throw Flaw() }
        return false
    }

    private mutating func date() throws -> Int64 {
        position += 1
        guard case .integer(let seconds) = try number() else { throw Flaw() }
        return seconds
    }

    private mutating func displayString() throws -> String {
        position += 1
        guard take("\"") else { throw Flaw() }
        var text: [UInt8] = []
        while let byte = current {
            position += 1
            switch byte {
            case UInt8(ascii: "\""):
                guard let valid = String(validating: text, as: UTF8.self) else { throw Flaw() }
                return valid
            case UInt8(ascii: "%"):
                let digits = bytes[position...].prefix(2)
                // Only lower-case hexadecimal digits are valid.
                guard digits.count == 2, digits.allSatisfy(Self.lowerHexDigits.contains),
                    let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
                else { throw Flaw() }
                position += 2
                text.append(value)
            case 0x20...0x7E: text.append(byte)
            default: throw Flaw()
            }
        }
        throw Flaw()
    }

    private static let lowerHexDigits = ByteSet.digits.union(ByteSet("abcdef"))
}
