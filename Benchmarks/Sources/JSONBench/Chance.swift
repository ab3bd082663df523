// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A generator of reproducible pseudo-random numbers and words.
struct Chance: RandomNumberGenerator {
    private static let letters = Array("abcdefghijklmnopqrstuvwxyz".utf8)
    private var state: UInt64

    init(_ seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        return state &* 0x2545_F491_4F6C_DD1D
    }

    mutating func number(_ range: Range<Int>) -> Int { Int.random(in: range, using: &self) }

    mutating func flag() -> Bool { Bool.random(using: &self) }

    /// Makes a text in half of all cases.
    mutating func maybe(_ make: (inout Chance) -> String) -> String? { flag() ? make(&self) : nil }

    mutating func word(_ length: ClosedRange<Int>) -> String {
        let count = Int.random(in: length, using: &self)
        return String(decoding: (0..<count).map { _ in Chance.letters[number(0..<26)] }, as: UTF8.self)
    }

    /// Makes words separated by spaces, with about the given length.
    mutating func prose(_ length: ClosedRange<Int>) -> String {
        let wanted = Int.random(in: length, using: &self)
        var result = word(2...9)
        while result.utf8.count < wanted { result += " " + word(2...9) }
        return result
    }
}
