// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The rules for the host of a URL: names, IPv4 and IPv6 addresses, each with one spelling.
///
/// The rules are narrower than RFC 3986 §3.2.2 on purpose. A name consists of letters, digits, "-", ".", "_" and "~",
/// as libcurl requires, and an IPv4 address consists of four decimal numbers: "127.1", "0x7f.1" and "017.0.0.1" are
/// refused, because different programs read them as different addresses.
package enum HostName {
    /// Returns a name or an IPv4 address in normal form.
    package static func normal(_ written: Substring, names: InternationalNames?) throws(InvalidURL.Reason) -> Substring
    {
        let bytes = written.utf8.span
        let allowed = Self.allowed
        var isASCII = true
        var isLowerCase = true
        for index in bytes.indices where !allowed.contains(bytes[index]) {
            let byte = bytes[index]
            if ByteSet.letters.contains(byte) {
                isLowerCase = false
            } else if byte >= 0x80 {
                isASCII = false
            } else if byte == UInt8(ascii: "%") {
                throw .percentEscapeInHost
            } else {
                throw .forbiddenInHost(Character(Unicode.Scalar(byte)))
            }
        }
        guard isASCII else { return try encoded(written, names: names) }
        let last = try lastLabel(of: bytes)
        if isNumericLabel(bytes, last), ipv4(written.utf8) == nil { throw .invalidIPv4 }
        return isLowerCase ? written : Substring(written.lowercased())
    }

    /// Returns the form of a host in requests, for tables of hosts: an A-label or an address in normal form, without a
    /// dot at its end; nil for an invalid host.
    package static func key(_ written: some StringProtocol) -> String? {
        let text = Substring(written.hasSuffix(".") ? written.dropLast() : written[...])
        if text.hasSuffix(".") { return nil }
        if text.contains(":") { return (try? normalIPv6(text)).map(String.init) }
        return (try? normal(text, names: .system)).map(String.init)
    }

    /// Returns an IPv6 address in the form of RFC 5952 §4.
    package static func normalIPv6(_ written: Substring) throws(InvalidURL.Reason) -> Substring {
        guard let pieces = ipv6Pieces(written) else { throw .invalidIPv6 }
        return Substring(ipv6Text(pieces))
    }

    /// Whether a text is an IP address.
    package static func isAddress(_ text: String) -> Bool {
        ipv4(Substring(text).utf8) != nil || ipv6Pieces(Substring(text)) != nil
    }

    /// Returns the four or sixteen bytes of an IP address; nil for another text.
    package static func bytes(ofAddress text: String) -> [UInt8]? {
        if let address = ipv4(Substring(text).utf8) {
            return (0..<4).map { UInt8(truncatingIfNeeded: address >> (24 - 8 * $0)) }
        }
        return ipv6Pieces(Substring(text))?.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }
    }

    /// Returns an address of four or sixteen bytes in normal form; nil for another number of bytes.
    package static func address(_ bytes: [UInt8]) -> String? {
        switch bytes.count {
        case 4: bytes.map(String.init).joined(separator: ".")
        case 16: ipv6Text((0..<8).map { UInt16(bytes[2 * $0]) << 8 | UInt16(bytes[2 * $0 + 1]) })
        default: nil
        }
    }

    private static func encoded(
        _ written: Substring, names: InternationalNames?
    ) throws(InvalidURL.Reason) -> Substring {
        guard let names else { throw .namesLibraryMissing }
        let ascii: String
        do throws(InternationalNames.Refusal) {
            ascii = try names.ascii(String(written))
        } catch {
            throw .nameRefused(error.message)
        }
        // Mapping can turn a wide character into "/" or "%", so its result is checked like any other name.
        return try normal(Substring(ascii), names: nil)
    }

    /// Returns the range of the last label, without the dot of the root, and checks the length of every label.
    private static func lastLabel(of name: borrowing Span<UInt8>) throws(InvalidURL.Reason) -> Range<Int> {
        let isRooted = name.count > 1 && name[name.count - 1] == UInt8(ascii: ".")
        let end = isRooted ? name.count - 1 : name.count
        var start = 0
        for index in 0...end where index == end || name[index] == UInt8(ascii: ".") {
            guard index > start else { throw .emptyLabel }
            guard index - start <= 63 else { throw .labelTooLong }
            if index < end { start = index + 1 }
        }
        guard end <= 253 else { throw .nameTooLong }
        return start..<end
    }

    private static func isNumericLabel(_ name: borrowing Span<UInt8>, _ label: Range<Int>) -> Bool {
        guard ByteSet.digits.contains(name[label.lowerBound]) else { return false }
        let isHex = label.count > 1 && name[label.lowerBound] == 0x30 && name[label.lowerBound + 1] | 0x20 == 0x78
        let (digits, members) = isHex ? (label.dropFirst(2), ByteSet.hexDigits) : (label, ByteSet.digits)
        for index in digits where !members.contains(name[index]) { return false }
        return true
    }

    /// Parses an address of four decimal numbers without leading zeros.
    private static func ipv4(_ text: Substring.UTF8View) -> UInt32? {
        let parts = text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        var address: UInt32 = 0
        for part in parts {
            guard (1...3).contains(part.count), part.allSatisfy(ByteSet.digits.contains) else { return nil }
            guard part.count == 1 || part.first != 0x30 else { return nil }
            let number = part.reduce(0) { $0 * 10 + UInt32($1 - 0x30) }
            guard number <= 255 else { return nil }
            address = address << 8 | number
        }
        return address
    }

    private static func ipv6Pieces(_ text: Substring) -> [UInt16]? {
        let bytes = Array(text.utf8)
        let colon = UInt8(ascii: ":")
        let gap = bytes.indices.dropLast().first { bytes[$0] == colon && bytes[$0 + 1] == colon }
        guard let gap else {
            let pieces = groups(text.utf8, mayEndInIPv4: true)
            return pieces?.count == 8 ? pieces : nil
        }
        let split = text.utf8.index(text.startIndex, offsetBy: gap)
        let after = text.utf8.index(split, offsetBy: 2)
        let head = split == text.startIndex ? [] : groups(text.utf8[..<split], mayEndInIPv4: false)
        let tail = after == text.endIndex ? [] : groups(text.utf8[after...], mayEndInIPv4: true)
        guard let head, let tail, head.count + tail.count < 8 else { return nil }
        return head + Array(repeating: 0, count: 8 - head.count - tail.count) + tail
    }

    private static func groups(_ text: Substring.UTF8View, mayEndInIPv4: Bool) -> [UInt16]? {
        var result: [UInt16] = []
        let parts = text.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        for (index, part) in parts.enumerated() {
            if mayEndInIPv4, index == parts.count - 1, let address = ipv4(part) {
                result += [UInt16(address >> 16), UInt16(address & 0xFFFF)]
                continue
            }
            guard part.count <= 4, part.allSatisfy(ByteSet.hexDigits.contains),
                let piece = UInt16(Substring(part), radix: 16)
            else { return nil }
            result.append(piece)
        }
        return result
    }

    private static func ipv6Text(_ pieces: [UInt16]) -> String {
        let gap = longestZeroRun(in: pieces)
        func text(_ range: Range<Int>) -> String {
            pieces[range].map { String($0, radix: 16) }.joined(separator: ":")
        }
        guard gap.count > 1 else { return text(0..<8) }
        return text(0..<gap.lowerBound) + "::" + text(gap.upperBound..<8)
    }

    private static func longestZeroRun(in pieces: [UInt16]) -> Range<Int> {
        var longest = 0..<0
        var start = 0
        for (index, piece) in pieces.enumerated() {
            if piece != 0 {
                start = index + 1
            } else if index + 1 - start > longest.count {
                longest = start..<(index + 1)
            }
        }
        return longest
    }

    private static let allowed = ByteSet.lowerCaseLetters.union(.digits).union(ByteSet("-._~"))
}
