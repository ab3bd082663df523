// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Changes texts of JSON: mostly into other JSON, sometimes into what is none.
enum JSONMutation {
    private static let tokens = [
        "null", "true", "false", "0", "-0", "-0.0", "1", "1.5", "1.0", "1e2", "1E+2", "25e-1", "256", "-1", "1e400",
        "1e-400",
        "9223372036854775808", "123456789012345678901234567890", "0.1e1", #""""#, #""1""#, #""x""#, #""red""#,
        #""\u00e9""#,
        #""e\u0301""#, #""\ud83d\ude00""#, #""2026-11-24T18:30:00Z""#, #""2026-11-24T18:30:00.25+01:00""#, #""AQI=""#,
        "[]", "{}", "[1]", "[null]", #"{"a":1}"#, #"{"first":2}"#, #"["a","b"]"#,
    ]
    private static let wrong = [
        "", "01", "+1", "1.", ".5", "NaN", "tru", ",", "]", "}", ":", "\"", #""\q""#, #""\ud800""#, "[1,]",
        #"{"a":1,}"#, "\"\t\"",
    ]

    /// The text with one to three changes.
    static func mutated(_ text: [UInt8], _ chance: inout SeededChance) -> [UInt8] {
        var text = text
        for _ in 0..<chance.number(1...3) {
            let parts = parts(of: text)
            guard !parts.isEmpty else { return text }
            let range = chance.one(of: parts)
            switch chance.number(0...9) {
            case 0...4: text.replaceSubrange(range, with: chance.one(of: tokens).utf8)
            case 5: text.replaceSubrange(range, with: chance.one(of: wrong).utf8)
            case 6: text.insert(contentsOf: chance.one(of: [" ", "\n", "\t", "\r\n  "]).utf8, at: range.lowerBound)
            case 7: text.replaceSubrange(range, with: text[chance.one(of: parts)])
            case 8: text.replaceSubrange(range, with: escaped(Array(text[range])))
            default: text = swapped(text, parts, &chance)
            }
        }
        return text
    }

    /// Where tokens stand: strings, numbers, words and signs.
    private static func parts(of text: [UInt8]) -> [Range<Int>] {
        var (parts, place) = ([Range<Int>](), 0)
        while place < text.count {
            let start = place
            if text[place] == UInt8(ascii: "\"") {
                place += 1
                while place < text.count, text[place] != UInt8(ascii: "\"") {
                    place += text[place] == UInt8(ascii: "\\") ? 2 : 1
                }
                place = min(place + 1, text.count)
            } else if "{}[],: \n".utf8.contains(text[place]) {
                place += 1
            } else {
                while place < text.count, !"{}[],: \n\"".utf8.contains(text[place]) { place += 1 }
            }
            // Signs are changed less often than values.
            if place - start > 1 || start % 5 == 0 { parts.append(start..<place) }
        }
        return parts
    }

    /// A string with its first letter as an escape.
    private static func escaped(_ part: [UInt8]) -> [UInt8] {
        guard part.count > 2, part[0] == UInt8(ascii: "\""), 0x61...0x7A ~= part[1] else { return part }
        let escape = Array("\\u00\(String(part[1], radix: 16))".utf8)
        return Array(part[..<1]) + escape + Array(part[2...])
    }

    private static func swapped(_ text: [UInt8], _ parts: [Range<Int>], _ chance: inout SeededChance) -> [UInt8] {
        let (one, other) = (chance.one(of: parts), chance.one(of: parts))
        guard one.upperBound <= other.lowerBound else { return text }
        var swapped = text
        swapped.replaceSubrange(other, with: text[one])
        swapped.replaceSubrange(one, with: text[other])
        return swapped
    }
}

/// The grammar of RFC 8259, written down once more for the tests: no index, no bytes at a time, no options.
struct JSONGrammar {
    private var rest: Substring.UnicodeScalarView

    /// Whether bytes are a text of JSON in UTF-8, at most 512 levels deep, without halves of surrogate pairs.
    static func accepts(_ bytes: [UInt8]) -> Bool {
        guard let text = String(validating: bytes, as: UTF8.self) else { return false }
        var grammar = JSONGrammar(rest: Substring(text).unicodeScalars)
        guard grammar.value(0) else { return false }
        grammar.blanks()
        return grammar.rest.isEmpty
    }

    private mutating func blanks() { rest = rest.drop { " \t\n\r".unicodeScalars.contains($0) } }

    private mutating func skip(_ text: String) -> Bool {
        guard rest.starts(with: text.unicodeScalars) else { return false }
        rest = rest.dropFirst(text.unicodeScalars.count)
        return true
    }

    private mutating func sign(_ text: String) -> Bool {
        blanks()
        return skip(text)
    }

    private mutating func value(_ depth: Int) -> Bool {
        blanks()
        if skip("null") || skip("true") || skip("false") { return true }
        if rest.first == "\"" { return string() }
        if rest.first == "[" || rest.first == "{" { return depth < 512 && list(depth) }
        return number()
    }

    private mutating func list(_ depth: Int) -> Bool {
        let isObject = rest.removeFirst() == "{"
        let end = isObject ? "}" : "]"
        if sign(end) { return true }
        repeat {
            blanks()
            if isObject, !(string() && sign(":")) { return false }
            if !value(depth + 1) { return false }
        } while sign(",")
        return sign(end)
    }

    private mutating func string() -> Bool {
        guard skip("\"") else { return false }
        while let scalar = rest.first {
            if scalar == "\"" { return skip("\"") }
            if scalar < " " { return false }
            if scalar != "\\" {
                rest.removeFirst()
                continue
            }
            rest.removeFirst()
            guard let letter = rest.popFirst() else { return false }
            if letter != "u" {
                if !"\"\\/bfnrt".unicodeScalars.contains(letter) { return false }
                continue
            }
            guard let unit = unit() else { return false }
            if 0xDC00...0xDFFF ~= unit { return false }
            if 0xD800...0xDBFF ~= unit {
                guard skip("\\u"), let low = self.unit(), 0xDC00...0xDFFF ~= low else { return false }
            }
        }
        return false
    }

    private mutating func unit() -> UInt32? {
        let digits = String(String.UnicodeScalarView(rest.prefix(4)))
        guard digits.utf8.count == 4, digits.utf8.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }) else {
            return nil
        }
        rest = rest.dropFirst(4)
        return UInt32(digits, radix: 16)
    }

    private mutating func number() -> Bool {
        _ = skip("-")
        if !skip("0"), !digits() { return false }
        if skip("."), !digits() { return false }
        if skip("e") || skip("E") {
            if !skip("-") { _ = skip("+") }
            return digits()
        }
        return true
    }

    private mutating func digits() -> Bool {
        let count = rest.prefix { "0"..."9" ~= $0 }.count
        rest = rest.dropFirst(count)
        return count > 0
    }
}
