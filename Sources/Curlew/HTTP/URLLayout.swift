// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The positions of the components of an http or https URL in its UTF-8, found in one pass, and whether they have the
/// normal form that ``RequestTarget`` promises.
struct URLLayout {
    private(set) var scheme = RequestTarget.Scheme.http
    private(set) var userInfo: Range<Int>?
    private(set) var host = 0..<0
    private(set) var isIPv6 = false
    private(set) var port: UInt16 = 0
    private(set) var path = 0..<0
    private(set) var query: Range<Int>?
    /// Whether everything except the host, which is checked separately, can stay as it is.
    private(set) var isNormal = true

    init(_ bytes: borrowing Span<UInt8>) throws(InvalidURL.Reason) {
        guard !bytes.isEmpty else { throw .empty }
        let start = try readScheme(bytes)
        let end = try readAuthority(bytes, from: start)
        readPathAndQuery(bytes, from: end)
        try refuseControls(bytes)
    }

    private mutating func readScheme(_ bytes: borrowing Span<UInt8>) throws(InvalidURL.Reason) -> Int {
        let allowed = Self.schemeBytes
        var colon = 0
        while colon < bytes.count, allowed.contains(bytes[colon]) { colon += 1 }
        guard colon < bytes.count, bytes[colon] == UInt8(ascii: ":"), Self.isLetter(bytes[0]) else { throw .noScheme }
        let name = Self.lowercased(bytes, 0..<colon)
        guard let known = RequestTarget.Scheme(rawValue: name) else { throw .unsupportedScheme(name) }
        scheme = known
        for index in 0..<colon where bytes[index] != bytes[index].asciiLowercased { isNormal = false }
        guard colon + 2 < bytes.count, bytes[colon + 1] == UInt8(ascii: "/"), bytes[colon + 2] == UInt8(ascii: "/")
        else { throw .noHost }
        return colon + 3
    }

    private mutating func readAuthority(
        _ bytes: borrowing Span<UInt8>, from start: Int
    ) throws(InvalidURL.Reason) -> Int {
        var end = start
        var at: Int?
        while end < bytes.count, !Self.endsAuthority(bytes[end]) {
            if bytes[end] == UInt8(ascii: "@") { at = end }
            end += 1
        }
        if let at { try readUserInfo(bytes, start..<at) }
        let hostStart = at.map { $0 + 1 } ?? start
        let hostEnd = try readHost(bytes, hostStart..<end)
        try readPort(bytes, hostEnd..<end)
        return end
    }

    private mutating func readUserInfo(
        _ bytes: borrowing Span<UInt8>, _ range: Range<Int>
    ) throws(InvalidURL.Reason) {
        for index in range {
            // Browsers end the host at a backslash and RFC 3986 does not, so they would read different hosts.
            if bytes[index] == UInt8(ascii: "\\") { throw .forbiddenInUserInfo }
        }
        if range.isEmpty {
            isNormal = false
        } else {
            userInfo = range
            checkEncoding(of: bytes, range, allowing: Self.userInfoBytes)
        }
    }

    private mutating func readHost(
        _ bytes: borrowing Span<UInt8>, _ range: Range<Int>
    ) throws(InvalidURL.Reason) -> Int {
        guard !range.isEmpty else { throw .noHost }
        isIPv6 = bytes[range.lowerBound] == UInt8(ascii: "[")
        let last = UInt8(ascii: isIPv6 ? "]" : ":")
        var end = range.lowerBound
        while end < range.upperBound, bytes[end] != last { end += 1 }
        if isIPv6 {
            guard end < range.upperBound else { throw .invalidIPv6 }
            host = (range.lowerBound + 1)..<end
            return end + 1
        }
        guard end > range.lowerBound else { throw .noHost }
        host = range.lowerBound..<end
        return end
    }

    private mutating func readPort(_ bytes: borrowing Span<UInt8>, _ range: Range<Int>) throws(InvalidURL.Reason) {
        port = scheme.defaultPort
        guard !range.isEmpty else { return }
        guard bytes[range.lowerBound] == UInt8(ascii: ":") else { throw .invalidPort }
        let digits = range.dropFirst()
        guard !digits.isEmpty else {
            isNormal = false
            return
        }
        var number = 0
        for index in digits {
            guard ByteSet.digits.contains(bytes[index]), number <= 0xFFFF else { throw .invalidPort }
            number = number * 10 + Int(bytes[index] - 0x30)
        }
        guard let value = UInt16(exactly: number), value > 0 else { throw .invalidPort }
        if value == port || bytes[digits.lowerBound] == 0x30 { isNormal = false }
        port = value
    }

    private mutating func readPathAndQuery(_ bytes: borrowing Span<UInt8>, from start: Int) {
        var end = start
        while end < bytes.count, bytes[end] != UInt8(ascii: "?"), bytes[end] != UInt8(ascii: "#") { end += 1 }
        path = start..<end
        if path.isEmpty { isNormal = false }
        checkEncoding(of: bytes, path, allowing: Self.pathBytes)
        if end < bytes.count, bytes[end] == UInt8(ascii: "?") {
            let first = end + 1
            end = first
            while end < bytes.count, bytes[end] != UInt8(ascii: "#") { end += 1 }
            query = first..<end
            checkEncoding(of: bytes, first..<end, allowing: Self.pathBytes)
        }
        if end < bytes.count { isNormal = false }
    }

    private mutating func checkEncoding(
        of bytes: borrowing Span<UInt8>, _ range: Range<Int>, allowing allowed: ByteSet
    ) {
        for index in range where !allowed.contains(bytes[index]) {
            let isEscape =
                bytes[index] == UInt8(ascii: "%") && index + 2 < range.upperBound
                && ByteSet.hexDigits.contains(bytes[index + 1]) && ByteSet.hexDigits.contains(bytes[index + 2])
            if !isEscape { isNormal = false }
        }
    }

    private func refuseControls(_ bytes: borrowing Span<UInt8>) throws(InvalidURL.Reason) {
        guard !isNormal else { return }
        for index in bytes.indices where bytes[index].isControl { throw .controlCharacter }
    }

    private static func endsAuthority(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "/") || byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#")
    }

    private static func lowercased(_ bytes: borrowing Span<UInt8>, _ range: Range<Int>) -> String {
        var text = ""
        for index in range { text.unicodeScalars.append(Unicode.Scalar(bytes[index].asciiLowercased)) }
        return text
    }

    private static func isLetter(_ byte: UInt8) -> Bool { ByteSet.letters.contains(byte) }

    private static let schemeBytes = ByteSet.letters.union(.digits).union(ByteSet("+-."))
    /// The bytes of RFC 3986 §3.2.1, in which "@" must be escaped.
    static let userInfoBytes = ByteSet.unreserved.union(ByteSet("!$&'()*+,;=:"))
    /// The bytes that stay as they are in paths and queries: those of RFC 3986 §3.3 and §3.4, and brackets, which
    /// browsers do not escape either.
    static let pathBytes = userInfoBytes.union(ByteSet("/?@[]"))
}

extension URLLayout {
    /// Returns the host in normal form; nil when it is already normal.
    func normalHost(in text: String, names: InternationalNames?) throws(InvalidURL.Reason) -> String? {
        let utf8 = text.utf8
        let start = utf8.index(utf8.startIndex, offsetBy: host.lowerBound)
        let written = text[start..<utf8.index(start, offsetBy: host.count)]
        let normal = try isIPv6 ? HostName.normalIPv6(written) : HostName.normal(written, names: names)
        return normal == written ? nil : String(normal)
    }

    /// Returns the text in normal form and the positions of its components.
    func normalised(_ text: String, host normalHost: String?) -> (String, RequestTarget.Parts) {
        let bytes = Array(text.utf8)
        var output: [UInt8] = []
        output.reserveCapacity(bytes.count + 16)
        var moved = self
        output += scheme.rawValue.utf8
        output += "://".utf8
        if let userInfo {
            moved.userInfo = Self.append(bytes[userInfo], allowing: Self.userInfoBytes, to: &output)
            output.append(UInt8(ascii: "@"))
        }
        if isIPv6 { output.append(UInt8(ascii: "[")) }
        let hostStart = output.count
        if let normalHost { output += normalHost.utf8 } else { output += bytes[host] }
        moved.host = hostStart..<output.count
        if isIPv6 { output.append(UInt8(ascii: "]")) }
        if port != scheme.defaultPort { output += ":\(port)".utf8 }
        let pathStart = output.count
        if path.isEmpty { output.append(UInt8(ascii: "/")) }
        _ = Self.append(bytes[path], allowing: Self.pathBytes, to: &output)
        moved.path = pathStart..<output.count
        if let query {
            output.append(UInt8(ascii: "?"))
            moved.query = Self.append(bytes[query], allowing: Self.pathBytes, to: &output)
        }
        return (String(decoding: output, as: UTF8.self), RequestTarget.Parts(moved))
    }

    /// Appends `part`, escapes the bytes that are not allowed and each "%" that starts no escape, and returns the range
    /// of the result in `output`.
    private static func append(
        _ part: ArraySlice<UInt8>, allowing allowed: ByteSet, to output: inout [UInt8]
    ) -> Range<Int> {
        let start = output.count
        for index in part.indices {
            let byte = part[index]
            let isEscape =
                byte == UInt8(ascii: "%") && index + 2 < part.endIndex
                && ByteSet.hexDigits.contains(part[index + 1]) && ByteSet.hexDigits.contains(part[index + 2])
            if isEscape || allowed.contains(byte) {
                output.append(byte)
            } else {
                output.append(UInt8(ascii: "%"))
                output.append(hexDigit(byte >> 4))
                output.append(hexDigit(byte & 15))
            }
        }
        return start..<output.count
    }

    private static func hexDigit(_ nibble: UInt8) -> UInt8 {
        nibble < 10 ? 0x30 + nibble : 0x41 + nibble - 10
    }
}
