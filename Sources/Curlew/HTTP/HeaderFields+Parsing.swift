// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension HeaderFields {
    /// Parses the field lines of a head (RFC 9112 §5) without its start line, from `offset` to the first empty line.
    ///
    /// The parser is tolerant, since the transport has already accepted the head: it skips lines without a colon or a
    /// name, joins folded lines by one space (RFC 9112 §5.2), trims white space around names and values, and reads a
    /// value that is not UTF-8 as ISO-8859-1, so that no byte is lost. Complexity: O(*n*) in the bytes.
    init(parsing block: [UInt8], from offset: Int = 0) {
        var fields: [Field] = []
        var lines = FieldLines(block, from: offset)
        while let line = lines.next() {
            let name = HeaderName(Self.text(block[line.name]))
            fields.append(Field(name: name, value: Self.value(of: line, in: block)))
        }
        self.init(fields)
    }

    /// Parses the lines of a trailer section and drops the fields that trailers must not have (RFC 9110 §6.5.1).
    init(trailers lines: [UInt8]) {
        guard !lines.isEmpty else {
            self.init()
            return
        }
        let all = HeaderFields(parsing: lines)
        self.init(all.filter { !Self.forbiddenInTrailers.contains($0.name) })
    }

    /// Fields that frame, route, control or authenticate a message, or say how to read its body.
    private static let forbiddenInTrailers: Set<HeaderName> = [
        .contentLength, .transferEncoding, .trailer, "TE", .connection, .upgrade, .host, .expect, .range,
        .contentEncoding, .contentType, .contentRange, .authorization, .proxyAuthorization, .wwwAuthenticate,
        .proxyAuthenticate, .cookie, .setCookie, .cacheControl, .age, .expires, .vary, .location, .retryAfter,
    ]

    /// Returns the value of `HeaderFields(parsing: block, from: offset)[name]` without making strings of other fields.
    static func value(of name: HeaderName, in block: [UInt8], from offset: Int = 0) -> String? {
        var result: String?
        var lines = FieldLines(block, from: offset)
        while let line = lines.next() {
            guard name.matchesName(block, line.name) else { continue }
            let value = Self.value(of: line, in: block)
            guard let first = result else {
                result = value
                if name == .setCookie { break }
                continue
            }
            result = first + ", " + value
        }
        return result
    }

    /// Returns a copy of the block, including its start line, without the lines of the fields with these names.
    static func block(_ block: [UInt8], without names: [HeaderName], from offset: Int) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(block.count)
        var kept = 0
        var lines = FieldLines(block, from: offset)
        while let line = lines.next() {
            guard names.contains(where: { $0.matchesName(block, line.name) }) else { continue }
            result += block[kept..<line.name.lowerBound]
            kept = lines.position
        }
        return result + block[kept...]
    }

    private static func value(of line: FieldLines.Line, in block: [UInt8]) -> String {
        guard !line.isFolded else {
            var joined: [UInt8] = []
            var part = line.value.lowerBound
            while part < line.value.upperBound {
                let end = lineEnd(in: block, from: part, limit: line.value.upperBound)
                let piece = trimmed(part..<end, in: block)
                if !joined.isEmpty && !piece.isEmpty { joined.append(0x20) }
                joined += block[piece]
                part = end + 1
            }
            return text(ArraySlice(joined))
        }
        return text(block[line.value])
    }

    /// Returns bytes as text: ISO-8859-1 if they are not UTF-8, so that no byte is lost.
    static func text(_ bytes: ArraySlice<UInt8>) -> String {
        if let valid = String(validating: bytes, as: UTF8.self) { return valid }
        var latin = String.UnicodeScalarView()
        for byte in bytes { latin.append(Unicode.Scalar(byte)) }
        return String(latin)
    }
}

extension HeaderName {
    fileprivate func matchesName(_ block: [UInt8], _ range: Range<Int>) -> Bool {
        let own = rawValue.utf8.span
        guard own.count == range.count else { return false }
        for index in own.indices {
            guard own[index].asciiLowercased == block[range.lowerBound + index].asciiLowercased else { return false }
        }
        return true
    }
}

/// An iterator over the field lines of a head as byte ranges; a continuation line belongs to the line before it.
private struct FieldLines {
    struct Line {
        var name: Range<Int>
        var value: Range<Int>
        var isFolded: Bool
    }

    private let block: [UInt8]
    /// The offset of the line after the last returned line.
    private(set) var position: Int

    init(_ block: [UInt8], from offset: Int) {
        self.block = block
        position = offset
    }

    mutating func next() -> Line? {
        while position < block.count {
            let start = position
            let firstEnd = lineEnd(in: block, from: start, limit: block.count)
            var end = firstEnd
            guard end > start, !(end == start + 1 && block[start] == 0x0D) else { return nil }
            var isFolded = false
            while end + 1 < block.count, block[end + 1].isLinearSpace {
                isFolded = true
                end = lineEnd(in: block, from: end + 1, limit: block.count)
            }
            position = end + 1
            guard !block[start].isLinearSpace, let colon = block[start..<firstEnd].firstIndex(of: 0x3A) else {
                continue
            }
            let name = trimmed(start..<colon, in: block)
            guard !name.isEmpty else { continue }
            return Line(name: name, value: trimmed((colon + 1)..<end, in: block), isFolded: isFolded)
        }
        return nil
    }
}

/// Returns the end of the line that starts at `start`: the offset of its LF, or `limit`.
private func lineEnd(in block: [UInt8], from start: Int, limit: Int) -> Int {
    var index = start
    while index < limit, block[index] != 0x0A { index += 1 }
    return index
}

/// Returns `range` without the white space and CRs at its ends.
private func trimmed(_ range: Range<Int>, in block: [UInt8]) -> Range<Int> {
    var (start, end) = (range.lowerBound, range.upperBound)
    while start < end, block[start].isLinearSpace || block[start] == 0x0D { start += 1 }
    while start < end, block[end - 1].isLinearSpace || block[end - 1] == 0x0D { end -= 1 }
    return start..<end
}
