// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// The reason why bytes cannot be decoded; offsets count from the first byte, including the byte order mark.
enum TextFailure: Error, Equatable {
    case invalid(offset: Int)
    case incomplete(offset: Int)
    case unavailable(CharacterConverter.Refusal)
}

extension TextEncoding {
    /// The encoding that a byte order mark names (WHATWG Encoding Standard, "BOM sniff"); nil without one.
    init?(byteOrderMarkOf data: Data) {
        guard let found = [Self.utf8, .utf16BigEndian, .utf16LittleEndian].first(where: { $0.isMarked(data) })
        else { return nil }
        self = found
    }

    /// Decodes `data` as text and drops this encoding's byte order mark.
    ///
    /// The method needs at most a few times the memory of `data`, and time in proportion to its length.
    func decode(_ data: Data, lossy: Bool) throws(TextFailure) -> String {
        let start = isMarked(data) ? byteOrderMark.count : 0
        let rest = data.dropFirst(start)
        switch scheme {
        case .utf8: return try Self.utf8(rest, from: start, lossy)
        case .utf16(let isBigEndian): return try Self.utf16(rest, isBigEndian, from: start, lossy)
        case .multibyte(let table, []): return try multibyte(data, table, [], lossy)
        case .windows1252, .singleByte, .multibyte:
            if data.allSatisfy({ $0 < 0x80 }) { return String(decoding: data, as: UTF8.self) }
        }
        switch scheme {
        case .multibyte(let table, let leads): return try multibyte(data, table, leads, lossy)
        case .singleByte(let table): return try Self.singleByte(data, try upperHalf(table), lossy)
        default: return try Self.singleByte(data, Self.upperHalfOfWindows1252, lossy)
        }
    }

    /// The byte order mark with which text in this encoding can begin; empty without one.
    var byteOrderMark: [UInt8] {
        switch scheme {
        case .utf8: [0xEF, 0xBB, 0xBF]
        case .utf16(let isBigEndian): isBigEndian ? [0xFE, 0xFF] : [0xFF, 0xFE]
        default: []
        }
    }

    private func isMarked(_ data: Data) -> Bool { !byteOrderMark.isEmpty && data.starts(with: byteOrderMark) }

    // MARK: Unicode

    private static func utf8(_ data: Data, from start: Int, _ lossy: Bool) throws(TextFailure) -> String {
        if lossy { return String(decoding: data, as: UTF8.self) }
        if let text = String(validating: data, as: UTF8.self) { return text }
        // The search for the fault is slow and runs only after the check has failed: most bodies are valid.
        var offset = 0
        var bytes = data.makeIterator()
        var parser = Unicode.UTF8.ForwardParser()
        while case .valid(let scalar) = parser.parseScalar(from: &bytes) { offset += scalar.count }
        let isCut = isIncompleteCharacter(data.dropFirst(offset))
        throw isCut ? .incomplete(offset: start + offset) : .invalid(offset: start + offset)
    }

    /// Whether `bytes` begin a character of UTF-8 and end inside it (RFC 3629 §4).
    private static func isIncompleteCharacter(_ bytes: Data) -> Bool {
        let bytes = Array(bytes.prefix(4))
        guard let first = bytes.first else { return false }
        let length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2
        guard (0xC2...0xF4).contains(first), bytes.count < length else { return false }
        // A valid beginning becomes a character when it is completed with the lowest or the highest tail.
        return [0x80, 0xBF].contains { tail in
            let whole = bytes + Array(repeating: UInt8(tail), count: length - bytes.count)
            return String(validating: whole, as: UTF8.self) != nil
        }
    }

    private static func utf16(
        _ data: Data, _ isBigEndian: Bool, from start: Int, _ lossy: Bool
    ) throws(TextFailure) -> String {
        var units: [UInt16] = []
        units.reserveCapacity(data.count / 2)
        var bytes = data.makeIterator()
        while let first = bytes.next(), let second = bytes.next() {
            units.append(isBigEndian ? UInt16(first) << 8 | UInt16(second) : UInt16(second) << 8 | UInt16(first))
        }
        let isOdd = !data.count.isMultiple(of: 2)
        if !lossy {
            try check(units, from: start)
            if isOdd { throw .incomplete(offset: start + data.count - 1) }
        }
        let text = String(decoding: units, as: UTF16.self)
        let isCounted = units.last.map(UTF16.isLeadSurrogate) ?? false
        return isOdd && !isCounted ? text + "\u{FFFD}" : text
    }

    /// Throws for a surrogate without its other half.
    private static func check(_ units: [UInt16], from start: Int) throws(TextFailure) {
        var index = 0
        while index < units.count {
            guard UTF16.isSurrogate(units[index]) else {
                index += 1
                continue
            }
            let isLead = UTF16.isLeadSurrogate(units[index])
            if isLead, index + 1 == units.count { throw .incomplete(offset: start + 2 * index) }
            guard isLead, UTF16.isTrailSurrogate(units[index + 1]) else { throw .invalid(offset: start + 2 * index) }
            index += 2
        }
    }

    // MARK: Single-byte encodings

    private static func singleByte(
        _ data: Data, _ upperHalf: [[UInt8]], _ lossy: Bool
    ) throws(TextFailure) -> String {
        var output: [UInt8] = []
        output.reserveCapacity(data.count + data.count / 2)
        for (offset, byte) in data.enumerated() {
            if byte < 0x80 {
                output.append(byte)
                continue
            }
            let character = upperHalf[Int(byte & 0x7F)]
            if character.isEmpty, !lossy { throw .invalid(offset: offset) }
            output += character.isEmpty ? replacement : character
        }
        return String(decoding: output, as: UTF8.self)
    }

    /// Returns the characters for the bytes from 0x80 on, in UTF-8; empty for a byte without a character.
    ///
    /// Each byte is converted separately, since glibc composes Hebrew and Vietnamese characters where the standard does
    /// not.
    private func upperHalf(_ table: String) throws(TextFailure) -> [[UInt8]] {
        let converter = try Self.converter(table)
        let own = Self.corrections[name] ?? [:]
        return (UInt8(0x80)...0xFF).map { byte in
            if let scalar = own[Int(byte)] { return Array(String(scalar).utf8) }
            var (output, offset): ([UInt8], Int) = ([], 0)
            _ = converter.convert(Data([byte]), from: &offset, into: &output)
            converter.finish(into: &output)
            // The standard fills the gaps in Microsoft's tables with C1 controls, as Windows does.
            let isControl = output.isEmpty && byte < 0xA0 && name.hasPrefix("windows-")
            return isControl ? Array(String(Unicode.Scalar(byte)).utf8) : output
        }
    }

    private static let upperHalfOfWindows1252: [[UInt8]] = {
        let start = "€\u{81}‚ƒ„…†‡ˆ‰Š‹Œ\u{8D}Ž\u{8F}\u{90}‘’“”•–—˜™š›œ\u{9D}žŸ".unicodeScalars
        let rest = (UInt8(0xA0)...0xFF).map { Unicode.Scalar($0) }
        return (Array(start) + rest).map { Array(String($0).utf8) }
    }()

    // MARK: Multi-byte encodings

    private func multibyte(
        _ data: Data, _ table: String, _ leads: [ClosedRange<UInt8>], _ lossy: Bool
    ) throws(TextFailure) -> String {
        let converter = try Self.converter(table)
        var output: [UInt8] = []
        output.reserveCapacity(data.count)
        var offset = 0
        while true {
            let stop = converter.convert(data, from: &offset, into: &output)
            // A shift state continues after a fault, so only an encoding with lead bytes flushes a pending character.
            if stop == .end || !leads.isEmpty { converter.finish(into: &output) }
            if stop == .end { return String(decoding: output, as: UTF8.self) }
            let next = Array(data.dropFirst(offset).prefix(2))
            if stop == .invalid, let (scalar, length) = correction(next) {
                output += String(scalar).utf8
                offset += length
                continue
            }
            guard lossy else {
                throw stop == .incomplete ? .incomplete(offset: offset) : .invalid(offset: offset)
            }
            output += Self.replacement
            offset += stop == .incomplete ? data.count - offset : Self.width(next, leads)
        }
    }

    /// Returns the character that the standard reads at the start of `bytes` where glibc reports a fault, and its
    /// length in bytes.
    private func correction(_ bytes: [UInt8]) -> (Unicode.Scalar, Int)? {
        guard let own = Self.corrections[name] else { return nil }
        if bytes.count == 2, let scalar = own[Int(bytes[0]) << 8 | Int(bytes[1])] { return (scalar, 2) }
        return own[Int(bytes[0])].map { ($0, 1) }
    }

    /// Returns the length of a fault in bytes, without an ASCII character after a lead byte, so that no quote or "<" is
    /// lost.
    private static func width(_ bytes: [UInt8], _ leads: [ClosedRange<UInt8>]) -> Int {
        bytes.count == 2 && bytes[1] >= 0x80 && leads.contains { $0.contains(bytes[0]) } ? 2 : 1
    }

    private static func converter(_ table: String) throws(TextFailure) -> CharacterConverter {
        do throws(CharacterConverter.Refusal) {
            return try CharacterConverter(from: table)
        } catch {
            throw .unavailable(error)
        }
    }

    private static let replacement = Array("\u{FFFD}".utf8)
}
