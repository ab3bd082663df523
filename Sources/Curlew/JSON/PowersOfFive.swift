// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Powers of five to 128 bits, for the conversion of decimal to binary numbers (Daniel Lemire, Number Parsing at a
/// Gigabyte per Second, 2021, §5).
enum PowersOfFive {
    /// The exponents in the table.
    ///
    /// `strtod` converts numbers beyond them, which are rare.
    static let exponents = -64...64

    /// The 128 highest bits of 5 to each exponent, the highest of them 1: truncated for positive exponents, rounded up
    /// for negative ones, as the algorithm requires.
    static let table: [UInt128] = exponents.map { exponent in
        exponent >= 0 ? truncated(exponent) : reciprocal(-exponent)
    }

    /// Words of 32 bits, the lowest first.
    private typealias Words = [UInt64]

    /// Computes 5 to an exponent by repeated multiplication.
    private static func words(_ exponent: Int) -> Words {
        var words: Words = [1]
        for _ in 0..<exponent {
            var carry: UInt64 = 0
            for place in words.indices {
                let product = words[place] * 5 + carry
                words[place] = product & 0xFFFF_FFFF
                carry = product >> 32
            }
            if carry > 0 { words.append(carry) }
        }
        return words
    }

    private static func bit(_ number: Int, of words: Words) -> Bool {
        words[number / 32] >> UInt64(number % 32) & 1 == 1
    }

    private static func truncated(_ exponent: Int) -> UInt128 {
        let words = words(exponent)
        var top = words.count * 32 - 1
        while !bit(top, of: words) { top -= 1 }
        return (0..<128).reduce(0) { $0 << 1 | (top >= $1 && bit(top - $1, of: words) ? 1 : 0) }
    }

    /// Computes 1 over 5 to an exponent by long division in base 2.
    private static func reciprocal(_ exponent: Int) -> UInt128 {
        let divisor = words(exponent) + [0]
        var rest: Words = Array(repeating: 0, count: divisor.count)
        rest[0] = 1
        var quotient: UInt128 = 0
        while quotient >> 127 == 0 {
            var carry: UInt64 = 0
            for place in rest.indices {
                let doubled = rest[place] << 1 | carry
                rest[place] = doubled & 0xFFFF_FFFF
                carry = doubled >> 32
            }
            let fits = !rest.reversed().lexicographicallyPrecedes(divisor.reversed())
            if fits { subtract(divisor, from: &rest) }
            quotient = quotient << 1 | (fits ? 1 : 0)
        }
        return quotient + 1
    }

    private static func subtract(_ words: Words, from rest: inout Words) {
        var borrow: UInt64 = 0
        for place in rest.indices {
            let taken = words[place] + borrow
            borrow = rest[place] < taken ? 1 : 0
            rest[place] = (rest[place] &- taken) & 0xFFFF_FFFF
        }
    }
}
