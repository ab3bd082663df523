// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension String {
    /// Returns this text's UTF-8 with every byte outside `kept` escaped as `%XX`, in upper case (RFC 3986 §2.1).
    ///
    /// - Parameter space: The replacement of a space that is not in `kept`; "%20" by default.
    package func percentEncoded(keeping kept: ByteSet, space: String = "%20") -> String {
        guard !kept.containsAll(of: self) else { return self }
        var output: [UInt8] = []
        output.reserveCapacity(utf8.count * 2)
        for byte in utf8 {
            if kept.contains(byte) {
                output.append(byte)
            } else if byte == 0x20 {
                output += space.utf8
            } else {
                output.append(UInt8(ascii: "%"))
                output.append((byte >> 4).hexDigit)
                output.append((byte & 15).hexDigit)
            }
        }
        return String(decoding: output, as: UTF8.self)
    }
}

extension String {
    /// Returns this part of a URL with exactly one spelling for each byte (RFC 3986 §6.2.2).
    ///
    /// Escapes of unreserved bytes are decoded, and other escapes stay, in upper case. Every byte that is neither
    /// unreserved nor in `kept` is escaped.
    ///
    /// - Parameters:
    ///   - kept: The bytes that stay unescaped, in addition to the unreserved ones.
    ///   - plus: The replacement of a "+" that is not in `kept`; "%2B" by default.
    package func percentNormalised(keeping kept: ByteSet, plus: String = "%2B") -> String {
        var output: [UInt8] = []
        output.reserveCapacity(utf8.count * 2)
        var rest = utf8[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), let high = rest.first?.hexValue, let low = rest.dropFirst().first?.hexValue {
                let value = high << 4 | low
                output += ByteSet.unreserved.contains(value) ? [value] : value.escaped
                rest = rest.dropFirst(2)
            } else if kept.contains(byte) || ByteSet.unreserved.contains(byte) {
                output.append(byte)
            } else if byte == UInt8(ascii: "+") {
                output += plus.utf8
            } else {
                output += byte.escaped
            }
        }
        return String(decoding: output, as: UTF8.self)
    }
}

extension Substring.UTF8View {
    /// These bytes decoded as form data: `%XX` becomes a byte, "+" becomes a space, and a "%" without two digits stays.
    package var formDecoded: [UInt8] {
        var output: [UInt8] = []
        var rest = self[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), let high = rest.first?.hexValue, let low = rest.dropFirst().first?.hexValue {
                output.append(high << 4 | low)
                rest = rest.dropFirst(2)
            } else {
                output.append(byte == UInt8(ascii: "+") ? 0x20 : byte)
            }
        }
        return output
    }
}

extension UInt8 {
    /// The upper-case digit for 0…15.
    var hexDigit: UInt8 { self < 10 ? 0x30 + self : 0x41 + self - 10 }

    /// This byte as `%XX`.
    fileprivate var escaped: [UInt8] { [UInt8(ascii: "%"), (self >> 4).hexDigit, (self & 15).hexDigit] }

    /// The value of a hexadecimal digit of either case; nil for other bytes.
    fileprivate var hexValue: UInt8? {
        switch self {
        case 0x30...0x39: self - 0x30
        case 0x41...0x46: self - 0x41 + 10
        case 0x61...0x66: self - 0x61 + 10
        default: nil
        }
    }
}
