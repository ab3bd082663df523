// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Writes DNS messages for tests, with any contents.
enum DNSBytes {
    /// Returns the bytes of hexadecimal digits; blanks and line breaks do not count.
    static func hex(_ text: String) -> [UInt8] {
        let digits = text.filter { !$0.isWhitespace }.compactMap(\.hexDigitValue)
        return stride(from: 0, to: digits.count - 1, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }

    static func number(_ value: UInt16) -> [UInt8] { [UInt8(value >> 8), UInt8(value & 0xFF)] }

    static func longNumber(_ value: UInt32) -> [UInt8] {
        number(UInt16(value >> 16)) + number(UInt16(value & 0xFFFF))
    }

    static func label(_ bytes: [UInt8]) -> [UInt8] { [UInt8(bytes.count)] + bytes }

    static func label(_ text: String) -> [UInt8] { label(Array(text.utf8)) }

    /// Returns a name without compression.
    static func name(_ text: String) -> [UInt8] {
        text.split(separator: ".").flatMap { label(String($0)) } + [0]
    }

    /// Returns a record; with an empty `name`, a record without its name.
    static func record(
        _ name: [UInt8], _ type: UInt16, kind: UInt16 = 1, lifetime: UInt32 = 300, data: [UInt8]
    ) -> [UInt8] {
        name + number(type) + number(kind) + longNumber(lifetime) + number(UInt16(data.count)) + data
    }

    static func header(
        flags: UInt16 = 0x8180, questions: UInt16 = 1, answers: UInt16 = 0, authorities: UInt16 = 0,
        additions: UInt16 = 0
    ) -> [UInt8] {
        [0, 0] + [flags, questions, answers, authorities, additions].flatMap(number)
    }

    /// Returns a response; the question begins at 12, and with the name `www.example.com` the first answer at 33.
    static func message(
        _ asked: String = "www.example.com", name: [UInt8]? = nil, type: UInt16 = 1, kind: UInt16 = 1,
        flags: UInt16 = 0x8180, answers: [[UInt8]] = [], authorities: [[UInt8]] = [], additions: [[UInt8]] = []
    ) -> [UInt8] {
        let header = header(
            flags: flags, answers: UInt16(answers.count), authorities: UInt16(authorities.count),
            additions: UInt16(additions.count))
        let question = (name ?? self.name(asked)) + number(type) + number(kind)
        return header + question + (answers + authorities + additions).flatMap(\.self)
    }
}
