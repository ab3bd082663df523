// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Random changes of JSON texts: mostly into other valid JSON, sometimes into invalid JSON.
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

    /// Returns the text with one to three changes.
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

    /// Returns the ranges of tokens: strings, numbers, literals and punctuation.
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
            // Punctuation is changed less often than values.
            if place - start > 1 || start % 5 == 0 { parts.append(start..<place) }
        }
        return parts
    }

    /// Returns a string token with its first letter replaced by an escape.
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
