// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Validates the head of a response line by line, as libcurl delivers it, by rules that libcurl 7.88 does not enforce.
///
/// A valid head causes no allocation, because this runs on the loop for every response. Lines end in LF or in CR LF
/// (RFC 9112 §2.2). One check sees all heads of a transfer, including informational ones, and then its trailers.
struct HeadCheck {
    enum Verdict: Equatable {
        /// The lines so far are valid.
        case more
        /// The line is the empty line after the fields.
        case end
        /// The line is invalid; the text is half a sentence that names the field and the rule.
        case refused(String)
    }

    static let informationalLimit = 32

    /// The maximum number of fields in all heads and the trailers together.
    var fieldLimit = 1000
    /// Whether the connection uses HTTP/2 or HTTP/3; then libcurl writes the status line itself.
    var isMultiplexed = false
    /// The status code of the current head; 0 before its status line.
    private(set) var status = 0
    /// The value of `Content-Length`; nil without this field.
    private(set) var length: Int64?
    private(set) var isChunked = false
    /// The known fields that the head contains.
    private(set) var knownFields: HeadFields = []
    private var isHTTP10 = false
    private var fields = 0
    private var informational = 0
    private var hasField = false
    private var lastWasFraming = false

    /// Whether the next line has to be a status line.
    var isAtStart: Bool { status == 0 }

    /// Whether a body, if there is one, ends only with the connection (RFC 9112 §6.3, rule 8).
    var isDelimitedByClose: Bool { !isMultiplexed && !isChunked && length == nil }

    /// Starts the head after an informational one.
    mutating func restart() {
        status = 0
        length = nil
        isChunked = false
        knownFields = []
        hasField = false
        lastWasFraming = false
    }

    /// Starts the trailer section.
    mutating func beginTrailers() {
        hasField = false
        lastWasFraming = false
    }

    /// Validates the next line of a head, including its line end.
    @inline(__always)
    mutating func take(_ line: UnsafeRawBufferPointer) -> Verdict {
        let end = HeadCheck.end(of: line)
        if status == 0 { return takeStatus(line, end) }
        return end == 0 ? .end : takeField(line, end, frames: true)
    }

    /// Validates the next line of a trailer section, where no field sets the length of the body (RFC 9110 §6.5.1).
    mutating func takeTrailer(_ line: UnsafeRawBufferPointer) -> Verdict {
        let end = HeadCheck.end(of: line)
        return end == 0 ? .end : takeField(line, end, frames: false)
    }

    private static func end(of line: UnsafeRawBufferPointer) -> Int {
        var end = line.count
        if end > 0 && line[end - 1] == 0x0A { end -= 1 }
        if end > 0 && line[end - 1] == 0x0D { end -= 1 }
        return end
    }

    // MARK: The status line

    /// Validates "HTTP/1.1 200 OK" with or without a phrase, or "HTTP/2 200 " as libcurl writes it (RFC 9112 §4).
    private mutating func takeStatus(_ line: UnsafeRawBufferPointer, _ end: Int) -> Verdict {
        let malformed = Verdict.refused("its first line is not a status line of HTTP/1.0 or HTTP/1.1 (RFC 9112 §4)")
        guard end >= 10, line[0] == 0x48, line[1] == 0x54, line[2] == 0x54, line[3] == 0x50, line[4] == 0x2F else {
            return malformed
        }
        let space: Int
        if line[5] == 0x31, line[6] == 0x2E, line[7] == 0x30 || line[7] == 0x31 {
            isHTTP10 = line[7] == 0x30
            space = 8
        } else if line[5] == 0x32 || line[5] == 0x33 && isMultiplexed {
            guard isMultiplexed else { return .refused("it names HTTP/2 on an HTTP/1.1 connection") }
            space = 6
        } else {
            return malformed
        }
        guard end >= space + 4, line[space] == 0x20, end == space + 4 || line[space + 4] == 0x20 else {
            return malformed
        }
        var code = 0
        for index in (space + 1)...(space + 3) {
            guard line[index] &- 0x30 < 10 else { return malformed }
            code = code * 10 + Int(line[index] &- 0x30)
        }
        guard code >= 100 else { return .refused("its status \(code) is below 100 (RFC 9110 §15)") }
        if HeadCheck.control(in: line, from: space + 4, to: end) != nil {
            return .refused("its status line contains a NUL or a bare CR (RFC 9112 §2.2)")
        }
        if code == 101 { return .refused("it switches protocols, which was not requested (RFC 9110 §7.8)") }
        if code < 200 {
            informational += 1
            guard informational <= HeadCheck.informationalLimit else {
                return .refused("more than \(HeadCheck.informationalLimit) informational responses arrived before it")
            }
        }
        status = code
        return .more
    }

    // MARK: Field lines

    private mutating func takeField(_ line: UnsafeRawBufferPointer, _ end: Int, frames: Bool) -> Verdict {
        if line[0] == 0x20 || line[0] == 0x09 { return takeFold(line, end) }
        let colon = HeadCheck.nameEnd(in: line, end)
        guard colon > 0, colon < end, line[colon] == 0x3A else { return HeadCheck.refuseName(line, colon, end) }
        hasField = true
        fields += 1
        guard fields <= fieldLimit else { return .refused("it has more than \(fieldLimit) fields") }
        if let byte = HeadCheck.control(in: line, from: colon + 1, to: end) {
            let what = byte == 0 ? "a NUL" : "a bare CR"
            return .refused("the value of “\(HeadCheck.text(line, 0, colon))” contains \(what) (RFC 9110 §5.5)")
        }
        if isMultiplexed, HeadCheck.hasOuterBlank(line, from: colon + 1, to: end) {
            let name = HeadCheck.text(line, 0, colon)
            return .refused("the value of “\(name)” begins or ends with a blank (RFC 9113 §8.2.1)")
        }
        lastWasFraming = false
        guard frames else { return .more }
        switch colon {
        case 7: if HeadCheck.spells(line, "alt-svc") { knownFields.insert(.alternativeServices) }
        case 8: if HeadCheck.spells(line, "location") { knownFields.insert(.location) }
        case 10: if HeadCheck.spells(line, "set-cookie") { knownFields.insert(.setCookie) }
        case 14 where HeadCheck.spells(line, "content-length"):
            lastWasFraming = true
            return takeLength(line, from: colon + 1, to: end)
        case 16: if HeadCheck.spells(line, "content-encoding") { knownFields.insert(.contentEncoding) }
        case 17 where HeadCheck.spells(line, "transfer-encoding"):
            lastWasFraming = true
            return takeCoding(line, from: colon + 1, to: end)
        case 25:
            if HeadCheck.spells(line, "strict-transport-security") { knownFields.insert(.strictTransportSecurity) }
        default: break
        }
        return .more
    }

    /// Validates a line that continues the value of the line before (RFC 9112 §5.2).
    private func takeFold(_ line: UnsafeRawBufferPointer, _ end: Int) -> Verdict {
        guard hasField else { return .refused("there is a blank before its first field (RFC 9112 §2.2)") }
        if lastWasFraming { return .refused("the field that sets the length of the body continues in a second line") }
        if HeadCheck.control(in: line, from: 1, to: end) != nil {
            return .refused("a folded value contains a NUL or a bare CR (RFC 9110 §5.5)")
        }
        return .more
    }

    private static func refuseName(_ line: UnsafeRawBufferPointer, _ stop: Int, _ end: Int) -> Verdict {
        let name = text(line, 0, stop)
        if stop == 0 && line[0] == 0x3A { return .refused("a field has no name (RFC 9112 §5)") }
        if stop == end { return .refused("the line “\(name)” has no colon (RFC 9112 §5)") }
        if stop > 0 && (line[stop] == 0x20 || line[stop] == 0x09) {
            return .refused("there is a blank between the field name “\(name)” and its colon (RFC 9112 §5.1)")
        }
        return .refused("a field name that begins “\(text(line, 0, stop + 1))” is not a token (RFC 9110 §5.1)")
    }

    /// Parses one number, or the same number repeated in a list (RFC 9110 §8.6).
    private mutating func takeLength(_ line: UnsafeRawBufferPointer, from start: Int, to end: Int) -> Verdict {
        var index = start
        while true {
            index = HeadCheck.skipBlanks(line, index, end)
            let first = index
            var number: Int64 = 0
            while index < end, line[index] &- 0x30 < 10 {
                let (tens, overflows) = number.multipliedReportingOverflow(by: 10)
                let (sum, overflowsToo) = tens.addingReportingOverflow(Int64(line[index] &- 0x30))
                if overflows || overflowsToo { return .refused("“Content-Length” is too large for any body") }
                number = sum
                index += 1
            }
            let isNumber = index > first
            index = HeadCheck.skipBlanks(line, index, end)
            guard isNumber, index == end || line[index] == 0x2C else {
                let value = HeadCheck.text(line, HeadCheck.skipBlanks(line, start, end), end)
                return .refused("“Content-Length” is “\(value)”, which is not a number (RFC 9112 §6.3)")
            }
            if let length, length != number {
                return .refused("“Content-Length” says both \(length) and \(number) (RFC 9112 §6.3)")
            }
            length = number
            if index == end { break }
            index += 1
        }
        return isChunked ? HeadCheck.bothFramings : .more
    }

    private mutating func takeCoding(_ line: UnsafeRawBufferPointer, from start: Int, to end: Int) -> Verdict {
        if isHTTP10 { return .refused("an HTTP/1.0 response contains “Transfer-Encoding” (RFC 9112 §6.1)") }
        let first = HeadCheck.skipBlanks(line, start, end)
        var last = end
        while last > first, line[last - 1] == 0x20 || line[last - 1] == 0x09 { last -= 1 }
        let value = UnsafeRawBufferPointer(rebasing: line[first..<last])
        guard value.count == 7, HeadCheck.spells(value, "chunked"), !isChunked else {
            let shown = isChunked ? "given twice" : "“\(HeadCheck.text(line, first, last))”"
            return .refused("“Transfer-Encoding” is \(shown), and only “chunked” is accepted (RFC 9112 §6.1)")
        }
        isChunked = true
        return length == nil ? .more : HeadCheck.bothFramings
    }

    private static let bothFramings = Verdict.refused(
        "it has both “Content-Length” and “Transfer-Encoding”, so its end is ambiguous (RFC 9112 §6.3)")

    // MARK: Bytes

    /// Returns the number of bytes before the first one that is no `tchar`, at most `end`.
    private static func nameEnd(in line: UnsafeRawBufferPointer, _ end: Int) -> Int {
        var index = 0
        while index < end {
            // Most names have letters and hyphens only, which are checked eight at once.
            if index + 8 <= end {
                let count = HeadCheck.letters(at: index, in: line)
                index += count
                if count == 8 { continue }
            }
            guard line[index] != 0x3A, isToken(line[index]) else { return index }
            index += 1
        }
        return end
    }

    /// Returns the number of letters and hyphens before the first other byte, among eight bytes.
    private static func letters(at index: Int, in line: UnsafeRawBufferPointer) -> Int {
        let word = UInt64(littleEndian: line.loadUnaligned(fromByteOffset: index, as: UInt64.self))
        let low: UInt64 = 0x7F7F_7F7F_7F7F_7F7F
        let lowerCase = (word | 0x2020_2020_2020_2020) & low
        // The sums set the highest bit of a byte that is at least "a", that is beyond "z", and that is no hyphen.
        let isNoLetter = ~(lowerCase &+ 0x1F1F_1F1F_1F1F_1F1F) | (lowerCase &+ 0x0505_0505_0505_0505)
        let isNoHyphen = ((word ^ 0x2D2D_2D2D_2D2D_2D2D) & low) &+ low
        return ((isNoLetter & isNoHyphen | word) & ~low).trailingZeroBitCount / 8
    }

    /// Returns the first NUL or CR; the bytes before `start` have neither.
    private static func control(in line: UnsafeRawBufferPointer, from start: Int, to end: Int) -> UInt8? {
        var index = start
        while index + 8 <= end, !mayHaveControl(at: index, in: line) { index += 8 }
        // The last eight bytes may overlap those that were checked before.
        if index + 8 > end, end >= 8, !mayHaveControl(at: end - 8, in: line) { return nil }
        while index < end {
            let byte = line[index]
            if byte <= 0x0D && (byte == 0 || byte == 0x0D) { return byte }
            index += 1
        }
        return nil
    }

    /// Whether one of eight bytes is below 0x10.
    private static func mayHaveControl(at index: Int, in line: UnsafeRawBufferPointer) -> Bool {
        let word = line.loadUnaligned(fromByteOffset: index, as: UInt64.self)
        return (word &- 0x1010_1010_1010_1010) & ~word & 0x8080_8080_8080_8080 != 0
    }

    /// Whether an HTTP/2 value begins or ends with a blank; libcurl itself writes one blank in front of the value.
    private static func hasOuterBlank(_ line: UnsafeRawBufferPointer, from colon: Int, to end: Int) -> Bool {
        guard colon + 1 < end else { return false }
        let (first, last) = (line[colon + 1], line[end - 1])
        return first == 0x20 || first == 0x09 || last == 0x20 || last == 0x09
    }

    private static func skipBlanks(_ line: UnsafeRawBufferPointer, _ start: Int, _ end: Int) -> Int {
        var index = start
        while index < end, line[index] == 0x20 || line[index] == 0x09 { index += 1 }
        return index
    }

    /// Whether the line begins with a name, ignoring case.
    private static func spells(_ line: UnsafeRawBufferPointer, _ name: StaticString) -> Bool {
        for index in 0..<name.utf8CodeUnitCount where line[index] | 0x20 != name.utf8Start[index] { return false }
        return true
    }

    /// Whether a byte is a `tchar` of RFC 9110 §5.6.2, looked up in two bit sets.
    private static func isToken(_ byte: UInt8) -> Bool {
        if (byte | 0x20) &- 0x61 < 26 { return true }
        let low: UInt64 = 0x03FF_6CFA_0000_0000
        let high: UInt64 = 0x57FF_FFFF_C7FF_FFFE
        return byte < 0x80 && (byte < 0x40 ? low &>> UInt64(byte) : high &>> UInt64(byte)) & 1 == 1
    }

    /// Returns bytes as text for messages: at most 40, with non-printable and non-ASCII bytes replaced.
    private static func text(_ line: UnsafeRawBufferPointer, _ start: Int, _ end: Int) -> String {
        var text = ""
        for index in start..<min(end, start + 40) {
            text.append((0x20..<0x7F).contains(line[index]) ? Character(Unicode.Scalar(line[index])) : "?")
        }
        return end > start + 40 ? text + "…" : text
    }
}
