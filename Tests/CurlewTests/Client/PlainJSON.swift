// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew

/// An independent JSON parser and writer (RFC 8259), so that tests do not compare Foundation's code with itself.
enum PlainJSON {
    struct Invalid: Error {}

    /// Parses a JSON text.
    static func read(_ text: String) throws -> JSONValue {
        var reader = Reader(rest: text.unicodeScalars[...])
        let value = try reader.value()
        guard reader.rest.isEmpty else { throw Invalid() }
        return value
    }

    /// Writes a value with random white space and escapes.
    static func write(_ value: JSONValue, _ chance: inout SeededChance) -> String {
        func list(_ parts: [String]) -> String { parts.joined(separator: blank(&chance) + "," + blank(&chance)) }
        switch value {
        case .null: return "null"
        case .bool(let value): return value ? "true" : "false"
        case .integer(let value): return "\(value)"
        case .unsigned(let value): return "\(value)"
        case .number(let value): return "\(value)"
        case .string(let value): return write(value, &chance)
        case .array(let elements): return "[" + list(elements.map { write($0, &chance) }) + blank(&chance) + "]"
        case .object(let members):
            let parts = members.map { write($0, &chance) + blank(&chance) + ":" + write($1, &chance) }
            return "{" + blank(&chance) + list(parts) + "}"
        }
    }

    private static func blank(_ chance: inout SeededChance) -> String {
        ["", "", " ", "\n", "\r\n", "\t"].randomElement(using: &chance) ?? ""
    }

    private static func write(_ text: String, _ chance: inout SeededChance) -> String {
        text.unicodeScalars.reduce(into: "\"") { written, scalar in
            let isSpecial = scalar.value < 0x20 || scalar == "\"" || scalar == "\\"
            if isSpecial || Int.random(in: 0..<3, using: &chance) == 0 {
                for unit in String(scalar).utf16 {
                    let digits = String(unit, radix: 16, uppercase: .random(using: &chance))
                    written += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
                }
            } else {
                written.unicodeScalars.append(scalar)
            }
        } + "\""
    }

    private struct Reader {
        var rest: Substring.UnicodeScalarView

        mutating func value() throws -> JSONValue {
            skipBlanks()
            defer { skipBlanks() }
            switch rest.first {
            case "{": return .object(try members())
            case "[": return .array(try elements())
            case "\"": return .string(try text())
            default: return try word()
            }
        }

        private mutating func elements() throws -> [JSONValue] {
            var elements: [JSONValue] = []
            rest.removeFirst()
            skipBlanks()
            if take("]") { return [] }
            repeat { elements.append(try value()) } while take(",")
            guard take("]") else { throw Invalid() }
            return elements
        }

        private mutating func members() throws -> [String: JSONValue] {
            var members: [String: JSONValue] = [:]
            rest.removeFirst()
            skipBlanks()
            if take("}") { return [:] }
            repeat {
                skipBlanks()
                let name = try text()
                skipBlanks()
                guard take(":"), members[name] == nil else { throw Invalid() }
                members[name] = try value()
            } while take(",")
            guard take("}") else { throw Invalid() }
            return members
        }

        private mutating func text() throws -> String {
            guard take("\"") else { throw Invalid() }
            var units: [UInt16] = []
            while let scalar = rest.popFirst(), scalar != "\"" {
                guard scalar.value >= 0x20 else { throw Invalid() }
                units += scalar == "\\" ? [try escaped()] : Array(String(scalar).utf16)
            }
            return String(decoding: units, as: UTF16.self)
        }

        private mutating func escaped() throws -> UInt16 {
            switch rest.popFirst() {
            case "u":
                let digits = String(String.UnicodeScalarView(rest.prefix(4)))
                guard digits.count == 4, let unit = UInt16(digits, radix: 16) else { throw Invalid() }
                rest = rest.dropFirst(4)
                return unit
            case "b": return 8
            case "t": return 9
            case "n": return 10
            case "f": return 12
            case "r": return 13
            case let scalar? where "\"\\/".unicodeScalars.contains(scalar): return UInt16(scalar.value)
            default: throw Invalid()
            }
        }

        private mutating func word() throws -> JSONValue {
            let word = rest.prefix { !" \n\r\t,]}".unicodeScalars.contains($0) }
            rest = rest[word.endIndex...]
            switch String(String.UnicodeScalarView(word)) {
            case "null": return .null
            case "true": return .bool(true)
            case "false": return .bool(false)
            case let number:
                if let value = Int64(number) { return .integer(value) }
                if let value = UInt64(number) { return .unsigned(value) }
                guard let value = Double(number) else { throw Invalid() }
                return .number(value)
            }
        }

        private mutating func take(_ scalar: Unicode.Scalar) -> Bool {
            guard rest.first == scalar else { return false }
            rest.removeFirst()
            return true
        }

        private mutating func skipBlanks() { rest = rest.drop { " \n\r\t".unicodeScalars.contains($0) } }
    }
}
