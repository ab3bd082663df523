// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The first line of a received head (RFC 9112 §4): "HTTP/1.1 200 OK", or "HTTP/2 200 " as libcurl writes it.
struct StatusLine: Sendable {
    let version: ResponseHead.HTTPVersion
    let status: Status
    /// The range of the phrase, without surrounding white space.
    let reason: Range<Int>
    /// The offset of the next line.
    let end: Int

    /// Parses "HTTP/", a version of one or two single digits, a space, three digits from 100, and then the end of the
    /// line or a space and a phrase; nil for another line.
    ///
    /// The line may end in LF alone.
    init?(_ block: [UInt8]) {
        let lineEnd = block.firstIndex(of: 0x0A) ?? block.count
        end = min(lineEnd + 1, block.count)
        var limit = lineEnd
        while limit > 0, block[limit - 1] == 0x0D || block[limit - 1].isLinearSpace { limit -= 1 }
        let line = block[..<limit]
        guard line.starts(with: "HTTP/".utf8), let space = line.firstIndex(of: 0x20) else { return nil }

        let number = line[5..<space]
        let isShort = number.count == 1 && ByteSet.digits.contains(number[5])
        let isLong =
            number.count == 3 && ByteSet.digits.contains(number[5]) && number[6] == UInt8(ascii: ".")
            && ByteSet.digits.contains(number[7])
        guard isShort || isLong else { return nil }
        version = ResponseHead.HTTPVersion(rawValue: String(decoding: line[..<space], as: UTF8.self))

        let digits = line[(space + 1)...].prefix(3)
        guard digits.count == 3, digits.allSatisfy(ByteSet.digits.contains) else { return nil }
        let code = digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
        guard code >= 100, digits.endIndex == limit || block[digits.endIndex] == 0x20 else { return nil }
        status = Status(code)

        var start = digits.endIndex
        while start < limit, block[start].isLinearSpace { start += 1 }
        reason = start..<limit
    }

    /// Returns the version of a head whose first line is known to be a status line.
    static func version(of block: [UInt8]) -> ResponseHead.HTTPVersion {
        guard block.count > 7 else { return .http1_1 }
        if block[5] == UInt8(ascii: "2") { return .http2 }
        return block[7] == UInt8(ascii: "0") ? .http1_0 : .http1_1
    }
}
