// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew

/// The search for the encoding that an HTML page declares in its first bytes (HTML §13.2.3.2, "prescan a byte stream to
/// determine its encoding").
struct MetaPrescan {
    /// The number of bytes that the search reads.
    static let maximumLength = 1024

    private let bytes: ArraySlice<UInt8>
    private var position = 0

    private init(_ bytes: ArraySlice<UInt8>) { self.bytes = bytes }

    /// Returns the encoding that a `<meta>` element or an XML declaration names; nil if there is no valid name.
    ///
    /// - Parameter page: The first bytes of the page; more than ``maximumLength`` bytes are ignored.
    static func encoding(of page: [UInt8]) -> TextEncoding? {
        if page.starts(with: [0x3C, 0, 0x3F, 0, 0x78, 0]) { return .utf16LittleEndian }
        if page.starts(with: [0, 0x3C, 0, 0x3F, 0, 0x78]) { return .utf16BigEndian }
        var prescan = MetaPrescan(page.prefix(maximumLength))
        return prescan.search() ?? prescan.declaration()
    }

    /// The error of a step that needs a byte after the end.
    private struct End: Error {}

    private func byte() throws(End) -> UInt8 {
        guard position < bytes.count else { throw End() }
        return bytes[position]
    }

    private mutating func search() -> TextEncoding? {
        while position < bytes.count {
            do throws(End) {
                if let found = try step() { return found }
                position += 1
            } catch {
                return nil
            }
        }
        return nil
    }

    /// Reads the markup or the byte at the position, and stops at its last byte.
    private mutating func step() throws(End) -> TextEncoding? {
        guard bytes[position] == 0x3C else { return nil }
        let rest = bytes[position...]
        if rest.starts(with: "<!--".utf8) {
            // "<!-->" is a whole comment: the dashes may be those of its start.
            position += 2
            while !bytes[position...].starts(with: "-->".utf8) {
                _ = try byte()
                position += 1
            }
            position += 2
            return nil
        }
        if rest.count > 5, rest.prefix(5).elementsEqual("<meta".utf8, by: { $0.asciiLowercase == $1 }),
            Self.isBlank(bytes[position + 5]) || bytes[position + 5] == 0x2F
        {
            position += 5
            return try meta()
        }
        let name = rest.dropFirst().first == 0x2F ? position + 2 : position + 1
        guard name < bytes.count else { throw End() }
        if 0x61...0x7A ~= bytes[name].asciiLowercase {
            while try !Self.isBlank(byte()), try byte() != 0x3E { position += 1 }
            while try attribute() != nil {}
        } else if [0x21, 0x2F, 0x3F].contains(bytes[position + 1]) {
            while try byte() != 0x3E { position += 1 }
        }
        return nil
    }

    private mutating func meta() throws(End) -> TextEncoding? {
        var names: Set<[UInt8]> = []
        var hasPragma = false
        var needsPragma: Bool?
        var found: TextEncoding?
        while let (name, value) = try attribute() {
            guard names.insert(name).inserted else { continue }
            if name.elementsEqual("http-equiv".utf8) {
                hasPragma = value.elementsEqual("content-type".utf8)
            } else if name.elementsEqual("content".utf8), needsPragma == nil {
                found = Self.encoding(inContent: value)
                if found != nil { needsPragma = true }
            } else if name.elementsEqual("charset".utf8) {
                found = Self.encoding(labelled: value[...])
                needsPragma = false
            }
        }
        // The loop stops at ">", which the caller skips.
        guard let needsPragma, !needsPragma || hasPragma else { return nil }
        return found
    }

    /// Reads an attribute; nil at the end of the tag ("get an attribute").
    private mutating func attribute() throws(End) -> (name: [UInt8], value: [UInt8])? {
        while true {
            let next = try byte()
            if next == 0x3E { return nil }
            guard Self.isBlank(next) || next == 0x2F else { break }
            position += 1
        }
        var name: [UInt8] = []
        while true {
            let next = try byte()
            if next == 0x3D, !name.isEmpty { break }
            if Self.isBlank(next) {
                try skipBlanks()
                if try byte() != 0x3D { return (name, []) }
                break
            }
            if next == 0x2F || next == 0x3E { return (name, []) }
            name.append(next.asciiLowercase)
            position += 1
        }
        position += 1
        try skipBlanks()
        return (name, try value())
    }

    private mutating func value() throws(End) -> [UInt8] {
        var value: [UInt8] = []
        let first = try byte()
        if first == 0x22 || first == 0x27 {
            position += 1
            while try byte() != first {
                value.append(try byte().asciiLowercase)
                position += 1
            }
            position += 1
            return value
        }
        while try !Self.isBlank(byte()), try byte() != 0x3E {
            value.append(try byte().asciiLowercase)
            position += 1
        }
        return value
    }

    private mutating func skipBlanks() throws(End) { while try Self.isBlank(byte()) { position += 1 } }

    private static func isBlank(_ byte: UInt8) -> Bool { [0x09, 0x0A, 0x0C, 0x0D, 0x20].contains(byte) }

    // MARK: Names of encodings

    /// Returns the encoding in the value of `content` (HTML §2.4.6, "extracting a character encoding from a meta
    /// element").
    private static func encoding(inContent value: [UInt8]) -> TextEncoding? {
        var rest = value[...]
        let word = Array("charset".utf8)
        while !rest.isEmpty {
            guard rest.starts(with: word) else {
                rest = rest.dropFirst()
                continue
            }
            rest = rest.dropFirst(word.count).drop(while: isBlank)
            guard rest.first == 0x3D else { continue }
            rest = rest.dropFirst().drop(while: isBlank)
            guard let quote = rest.first else { return nil }
            if quote == 0x22 || quote == 0x27 {
                guard let end = rest.dropFirst().firstIndex(of: quote) else { return nil }
                return encoding(labelled: rest[..<end].dropFirst())
            }
            return encoding(labelled: rest.prefix { !isBlank($0) && $0 != 0x3B })
        }
        return nil
    }

    /// Returns the encoding of a label that the page itself contains: the page can only be read so far because the
    /// encoding is not UTF-16.
    private static func encoding(labelled label: ArraySlice<UInt8>) -> TextEncoding? {
        let label = String(decoding: label, as: UTF8.self)
        let isUserDefined = label.utf8.filter { !isBlank($0) }.elementsEqual("x-user-defined".utf8)
        guard let found = isUserDefined ? .windows1252 : TextEncoding(label: label) else { return nil }
        return [.utf16LittleEndian, .utf16BigEndian].contains(found) ? .utf8 : found
    }

    /// Returns the encoding that an XML declaration names (HTML §13.2.3.2, "get an XML encoding").
    private func declaration() -> TextEncoding? {
        guard bytes.starts(with: "<?xml".utf8), let end = bytes.firstIndex(of: 0x3E) else { return nil }
        let word = Array("encoding".utf8)
        var rest = bytes[..<end].dropFirst(5)
        while !rest.isEmpty, !rest.starts(with: word) { rest = rest.dropFirst() }
        rest = rest.dropFirst(word.count).drop { $0 <= 0x20 }
        guard rest.first == 0x3D else { return nil }
        rest = rest.dropFirst().drop { $0 <= 0x20 }
        guard let quote = rest.first, quote == 0x22 || quote == 0x27 else { return nil }
        rest = rest.dropFirst()
        guard let last = rest.firstIndex(of: quote), rest[..<last].allSatisfy({ $0 > 0x20 }) else { return nil }
        return Self.encoding(labelled: rest[..<last])
    }
}

extension UInt8 {
    /// The byte, or the lower-case letter of an upper-case ASCII letter.
    var asciiLowercase: UInt8 { 0x41...0x5A ~= self ? self | 0x20 : self }
}
