// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A second, simple implementation of the grammar of RFC 8259 for the tests: no index, no options.
struct JSONGrammar {
    private var rest: Substring.UnicodeScalarView

    /// Whether bytes are valid JSON in UTF-8, at most 512 levels deep, without unpaired surrogates.
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
