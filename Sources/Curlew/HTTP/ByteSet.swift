// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A set of ASCII bytes, tested with a shift and a mask, for the character classes of the grammars.
package struct ByteSet: Sendable {
    private var low: UInt64 = 0
    private var high: UInt64 = 0

    /// Creates the set of the ASCII characters in `members`; other characters are ignored.
    package init(_ members: String) {
        for byte in members.utf8 { insert(byte) }
    }

    /// Returns the union of this set and `other`.
    package func union(_ other: ByteSet) -> ByteSet {
        var both = self
        both.low |= other.low
        both.high |= other.high
        return both
    }

    package func contains(_ byte: UInt8) -> Bool {
        byte < 128 && (byte < 64 ? low >> byte : high >> (byte & 63)) & 1 == 1
    }

    /// Whether `text` has only members; true for the empty text.
    package func containsAll(of text: String) -> Bool {
        for byte in text.utf8 where !contains(byte) { return false }
        return true
    }

    private mutating func insert(_ byte: UInt8) {
        if byte < 64 { low |= 1 << byte } else if byte < 128 { high |= 1 << (byte & 63) }
    }

    package static let digits = ByteSet("0123456789")
    package static let lowerCaseLetters = ByteSet("abcdefghijklmnopqrstuvwxyz")
    package static let letters = lowerCaseLetters.union(ByteSet("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
    package static let hexDigits = digits.union(ByteSet("abcdefABCDEF"))

    /// `unreserved` of RFC 3986 §2.3: the characters that need no escape anywhere in a URL.
    package static let unreserved = letters.union(digits).union(ByteSet("-._~"))

    /// `tchar` of RFC 9110 §5.6.2.
    package static let token = letters.union(digits).union(ByteSet("!#$%&'*+-.^_`|~"))
}

extension String {
    /// Whether this is a `token` (RFC 9110 §5.6.2): one or more `tchar`.
    package var isToken: Bool { !isEmpty && ByteSet.token.containsAll(of: self) }

    /// This text as one safe line: control characters, line separators and bidirectional controls are escaped.
    package var escapingControls: String {
        guard unicodeScalars.contains(where: Self.needsEscape) else { return self }
        var result = ""
        for scalar in unicodeScalars {
            if Self.needsEscape(scalar) {
                result += scalar.escaped(asASCII: true)
            } else {
                result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    /// Returns the first `count` scalars of this text, for messages; one `Character` can have any number of scalars.
    package func shortened(to count: Int) -> String { String(unicodeScalars.prefix(count)) }

    /// Whether a scalar can garble a terminal or mislead the reader of a log.
    package static func needsEscape(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0..<0x20, 0x7F..<0xA0, 0x2028, 0x2029, 0x202A...0x202E, 0x2066...0x2069: true
        default: false
        }
    }
}

extension UInt8 {
    /// The lower-case letter for `A`…`Z`, and every other byte unchanged.
    package var asciiLowercased: UInt8 { self &- 0x41 < 26 ? self | 0x20 : self }

    /// SP or HTAB, the only white space of the field grammar (RFC 9110 §5.6.3).
    package var isLinearSpace: Bool { self == 0x20 || self == 0x09 }

    /// A C0 control or DEL.
    package var isControl: Bool { self < 0x20 || self == 0x7F }
}
