// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials
internal import Glibc

// The values of entries. The index pass has checked the text, so strings and numbers are well-formed here.

extension JSONIndex {
    /// Returns the bytes of a number, or of a string with its escapes.
    @inline(__always)
    func bytes(_ entry: JSONEntry) -> UnsafeBufferPointer<UInt8> {
        UnsafeBufferPointer(start: text + entry.offset, count: entry.length)
    }

    // MARK: Strings

    /// Returns the value of a name or a string.
    @inline(__always)
    func string(_ entry: JSONEntry) -> String {
        if entry.code == JSONEntry.Kind.escaped.rawValue { return unescaped(bytes(entry)) }
        let isASCII = entry.code == JSONEntry.Kind.ascii.rawValue
        // The index pass has checked the characters.
        return String(copying: UTF8Span(unchecked: bytes(entry).span, isKnownASCII: isASCII))
    }

    private func unescaped(_ bytes: UnsafeBufferPointer<UInt8>) -> String {
        // An escape is never shorter than its character.
        String(unsafeUninitializedCapacity: bytes.count) { buffer in
            var (from, to) = (0, 0)
            while from < bytes.count {
                let byte = bytes[from]
                if byte == UInt8(ascii: "\\") {
                    from += Self.unescape(bytes, from, buffer, &to)
                } else {
                    buffer[to] = byte
                    to += 1
                    from += 1
                }
            }
            return to
        }
    }

    /// Writes the character of an escape and returns the length of the escape.
    private static func unescape(
        _ bytes: UnsafeBufferPointer<UInt8>, _ from: Int, _ buffer: UnsafeMutableBufferPointer<UInt8>, _ to: inout Int
    ) -> Int {
        guard bytes[from + 1] == UInt8(ascii: "u") else {
            buffer[to] =
                switch bytes[from + 1] {
                case UInt8(ascii: "b"): 0x08
                case UInt8(ascii: "f"): 0x0C
                case UInt8(ascii: "n"): 0x0A
                case UInt8(ascii: "r"): 0x0D
                case UInt8(ascii: "t"): 0x09
                default: bytes[from + 1]
                }
            to += 1
            return 2
        }
        var code = unit(bytes, from + 2)
        var length = 6
        if code & 0xFC00 == 0xD800 {
            code = 0x1_0000 + (code & 0x3FF) << 10 + unit(bytes, from + 8) & 0x3FF
            length = 12
        }
        // Not a surrogate: the index pass refuses lone ones.
        for byte in UTF8.encode(Unicode.Scalar(code) ?? "?") ?? UTF8.encodedReplacementCharacter {
            buffer[to] = byte
            to += 1
        }
        return length
    }

    private static func unit(_ bytes: UnsafeBufferPointer<UInt8>, _ start: Int) -> UInt32 {
        (start..<start + 4).reduce(0) { $0 << 4 | UInt32(bytes[$1].hexadecimalValue ?? 0) }
    }

    // MARK: Numbers

    /// Returns a number as an integer; nil when it has a fraction or the type cannot hold it.
    @inline(__always)
    func integer<T: FixedWidthInteger>(_ entry: JSONEntry, as type: T.Type) -> T? {
        let bytes = bytes(entry)
        guard entry.code == JSONEntry.Kind.integer.rawValue, bytes.count <= 18 else { return wholeNumber(bytes) }
        var place = 0
        let isNegative = bytes[0] == UInt8(ascii: "-")
        if isNegative { place = 1 }
        var value: Int64 = 0
        while place < bytes.count {
            value = value &* 10 &+ Int64(bytes[place] &- 0x30)
            place += 1
        }
        return T(exactly: isNegative ? -value : value)
    }

    @inline(never)
    private func wholeNumber<T: FixedWidthInteger>(_ bytes: UnsafeBufferPointer<UInt8>) -> T? {
        let parts = NumberParts(bytes)
        // Zeros at the end of a fraction do not count.
        let zeros = parts.digits.reversed().prefix { $0 == 0 }.count
        if zeros == parts.digits.count { return 0 }
        let (digits, exponent) = (parts.digits.dropLast(zeros), parts.exponent + zeros)
        guard exponent >= 0, exponent + digits.count <= 39 + parts.leadingZeros,
            let size = DecimalDigits.whole(digits, exponent: exponent)
        else { return nil }
        if !parts.isNegative { return T(exactly: size) }
        return size <= 1 << 127 ? T(exactly: Int128(truncatingIfNeeded: 0 &- size)) : nil
    }

    /// Returns the nearest `Double`; nil beyond its range.
    @inline(__always)
    func double(_ entry: JSONEntry) -> Double? {
        let digits =
            JSONIndex.fewDigits(bytes(entry), readable: byteCount - entry.offset) ?? JSONIndex.digits(bytes(entry))
        return digits.nearest ?? slowDouble(entry)
    }

    @inline(never)
    private func slowDouble(_ entry: JSONEntry) -> Double? {
        // Independent of the locale of the process.
        Double(numeral(entry)).flatMap { $0.isFinite ? $0 : nil }
    }

    /// Returns the nearest `Float`; nil beyond its range.
    func float(_ entry: JSONEntry) -> Float? {
        let digits = JSONIndex.digits(bytes(entry))
        if !digits.isCut, digits.mantissa < 1 << 24, digits.exponent == 0 {
            return digits.isNegative ? -Float(digits.mantissa) : Float(digits.mantissa)
        }
        return Float(numeral(entry)).flatMap { $0.isFinite ? $0 : nil }
    }

    private func numeral(_ entry: JSONEntry) -> String {
        string(JSONEntry(.ascii, offset: entry.offset, extent: entry.length))
    }

    /// Returns the number as decimal digits; `Decimal` keeps 38 of them.
    func decimal(_ entry: JSONEntry) -> Decimal? {
        let digits = JSONIndex.digits(bytes(entry))
        if digits.mantissa == 0, !digits.isCut { return 0 }
        return Decimal(string: numeral(entry)).flatMap { $0.isNaN ? nil : $0 }
    }

    /// Parses a number of at most 19 digits; returns nil for longer numbers.
    ///
    /// - Parameter readable: The number of bytes from the start of the number to the end of the text.
    @inline(__always)
    private static func fewDigits(_ bytes: UnsafeBufferPointer<UInt8>, readable: Int) -> DecimalDigits? {
        guard let start = bytes.baseAddress.map({ UnsafeRawPointer($0) }) else { return nil }
        var number = DecimalDigits()
        var place = 0
        if bytes[0] == UInt8(ascii: "-") {
            number.isNegative = true
            place = 1
        }
        let first = place
        while place < bytes.count, bytes[place] &- 0x30 < 10 {
            number.mantissa = number.mantissa &* 10 &+ UInt64(bytes[place] &- 0x30)
            place += 1
        }
        var count = place - first
        if place < bytes.count, bytes[place] == UInt8(ascii: ".") {
            place += 1
            let fraction = place
            // Reads eight bytes; those after the number may belong to the next token.
            while place < bytes.count, place + 8 <= readable {
                let (value, length) = digits(start + place)
                number.mantissa = number.mantissa &* powers[length] &+ value
                place += length
                if length < 8 { break }
            }
            while place < bytes.count, bytes[place] &- 0x30 < 10 {
                number.mantissa = number.mantissa &* 10 &+ UInt64(bytes[place] &- 0x30)
                place += 1
            }
            number.exponent = fraction - place
            count += place - fraction
        }
        if count > 19 { return nil }
        if place < bytes.count { number.exponent += exponent(bytes, place + 1) }
        return number
    }

    /// Computes the value and the count of the leading digits of eight bytes by three multiplications.
    @inline(__always)
    private static func digits(_ bytes: UnsafeRawPointer) -> (value: UInt64, length: Int) {
        var digits = UInt64(littleEndian: bytes.loadUnaligned(as: UInt64.self)) ^ 0x3030_3030_3030_3030
        let others = (digits &+ 0x7676_7676_7676_7676 | digits) & 0x8080_8080_8080_8080
        let length = others.trailingZeroBitCount >> 3
        if length == 0 { return (0, 0) }
        // Replaces the bytes after the digits by leading zeros.
        digits <<= UInt64(64 - 8 * length)
        let pairs = (digits &* 10 &+ digits >> 8) & 0x00FF_00FF_00FF_00FF
        let fours = (pairs &* 100 &+ pairs >> 16) & 0x0000_FFFF_0000_FFFF
        return ((fours &* 10_000 &+ fours >> 32) & 0xFFFF_FFFF, length)
    }

    private static let powers: InlineArray<9, UInt64> = [
        1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000,
    ]

    private static func digits(_ bytes: UnsafeBufferPointer<UInt8>) -> DecimalDigits {
        var number = DecimalDigits()
        var place = 0
        if bytes[0] == UInt8(ascii: "-") {
            number.isNegative = true
            place = 1
        }
        var isFraction = false
        while place < bytes.count {
            let byte = bytes[place]
            let digit = byte &- 0x30
            if digit < 10 {
                if number.count < 19 {
                    number.mantissa = number.mantissa &* 10 &+ UInt64(digit)
                    // Leading zeros do not count as digits.
                    if number.mantissa > 0 { number.count += 1 }
                    if isFraction { number.exponent -= 1 }
                } else {
                    if digit != 0 { number.isCut = true }
                    if !isFraction { number.exponent += 1 }
                }
            } else if byte == UInt8(ascii: ".") {
                isFraction = true
            } else {
                number.exponent += exponent(bytes, place + 1)
                break
            }
            place += 1
        }
        return number
    }

    /// Returns the exponent after an "e", clamped to ±2³⁰.
    fileprivate static func exponent(_ bytes: UnsafeBufferPointer<UInt8>, _ start: Int) -> Int {
        var place = start
        let isNegative = bytes[place] == UInt8(ascii: "-")
        if isNegative || bytes[place] == UInt8(ascii: "+") { place += 1 }
        var value = 0
        while place < bytes.count {
            value = min(value * 10 + Int(bytes[place] &- 0x30), 1 << 30)
            place += 1
        }
        return isNegative ? -value : value
    }
}

/// All digits of a number and the exponent of the last.
private struct NumberParts {
    var digits: [UInt8] = []
    var exponent = 0
    var isNegative: Bool
    var leadingZeros: Int

    init(_ bytes: UnsafeBufferPointer<UInt8>) {
        isNegative = bytes.first == UInt8(ascii: "-")
        var isFraction = false
        for (place, byte) in bytes.enumerated() {
            if byte &- 0x30 < 10 {
                digits.append(byte - 0x30)
                if isFraction { exponent -= 1 }
            } else if byte == UInt8(ascii: ".") {
                isFraction = true
            } else if byte | 0x20 == UInt8(ascii: "e") {
                exponent += JSONIndex.exponent(bytes, place + 1)
                break
            }
        }
        leadingZeros = digits.prefix { $0 == 0 }.count
    }
}
