// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CurlewEngine

@Suite("D-Bus messages", .timeLimit(.minutes(5)))
struct DBusMessageTests {
    /// Returns the bytes of a text with hexadecimal digits and quoted ASCII texts.
    private static func bytes(_ text: String) -> [UInt8] {
        var bytes: [UInt8] = []
        for (index, part) in text.split(separator: "'", omittingEmptySubsequences: false).enumerated() {
            if index % 2 == 1 {
                bytes += part.utf8
                continue
            }
            let digits = part.filter { !$0.isWhitespace }.compactMap(\.hexDigitValue)
            bytes += stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
        }
        return bytes
    }

    /// The call that begins each conversation.
    private static let hello = bytes(
        """
        6c010001 00000000 01000000 6d000000
        01016f00 15000000 '/org/freedesktop/DBus' 00 0000
        02017300 14000000 'org.freedesktop.DBus' 00 000000
        03017300 05000000 'Hello' 00 0000
        06017300 14000000 'org.freedesktop.DBus' 00 000000
        """)

    /// A big-endian reply with the number 1.
    private static let value = bytes(
        """
        42020101 00000008 00000007 0000002d
        05017500 00000003
        06017300 00000004 ':1.9' 00 000000
        08016700 01 'v' 00 00
        07017300 00000004 ':1.5' 00 000000
        01 'u' 00 00 00000001
        """)

    /// A signal with the number 3 among other values.
    private static let change = bytes(
        """
        6c040101 60000000 2a000000 8e000000
        01016f00 1f000000 '/org/freedesktop/NetworkManager' 00
        02017300 1f000000 'org.freedesktop.DBus.Properties' 00
        03017300 11000000 'PropertiesChanged' 00 000000000000
        07017300 04000000 ':1.5' 00 000000
        08016700 08 'sa{sv}as' 00 0000
        1e000000 'org.freedesktop.NetworkManager' 00 00
        28000000
        07000000 'Metered' 00 01 'u' 00 00 03000000 00000000
        05000000 'State' 00 01 'q' 00 00 4600
        0c000000 07000000 'Startup' 00
        """)

    private static func read(_ bytes: [UInt8]) throws(DBusMessage.Flaw) -> DBusMessage { try DBusMessage(bytes[...]) }

    private static let vectors = [hello, value, change]

    // MARK: Vectors

    @Test func callIsWrittenAndReadAsInTheSpecification() throws {
        var message = DBusMessage(.call, serial: 1)
        message.path = "/org/freedesktop/DBus"
        message.interface = "org.freedesktop.DBus"
        message.member = "Hello"
        message.destination = "org.freedesktop.DBus"
        message.setBody([])
        #expect(message.encoded == Self.hello)
        #expect(try Self.read(Self.hello) == message)
        #expect(try DBusMessage.size(in: (Self.hello + [1, 2, 3])[...]) == 128)
    }

    @Test func bigEndianReplyIsRead() throws {
        let message = try Self.read(Self.value)
        #expect(message.kind == .reply)
        #expect(message.flags == 1)
        #expect(message.serial == 7)
        #expect(message.replySerial == 3)
        #expect(message.sender == ":1.5")
        #expect(message.destination == ":1.9")
        #expect(message.isBigEndian)
        #expect(try message.variantNumber() == 1)
        #expect(try message.strings(1) == nil)
        #expect(try message.change(of: "Metered") == nil)
    }

    @Test func changeOfAPropertyIsRead() throws {
        let message = try Self.read(Self.change)
        #expect(message.kind == .signal)
        #expect(message.path == "/org/freedesktop/NetworkManager")
        #expect(message.member == "PropertiesChanged")
        let interface = "org.freedesktop.NetworkManager"
        typealias Change = DBusMessage.PropertyChange
        #expect(try message.change(of: "Metered") == Change(interface: interface, value: 3))
        #expect(try message.change(of: "Startup") == Change(interface: interface, isInvalidated: true))
        #expect(try message.change(of: "State") == Change(interface: interface), "its type is UINT16")
        #expect(try message.change(of: "Other") == Change(interface: interface))
        #expect(try message.variantNumber() == nil)
    }

    @Test(arguments: vectors.indices)
    func truncatedMessageIsRefused(_ index: Int) throws {
        let vector = Self.vectors[index]
        for count in 0..<vector.count {
            let start = vector[..<count]
            #expect(try DBusMessage.size(in: start) == (count < 16 ? nil : vector.count))
            #expect(throws: DBusMessage.Flaw.malformed) { try DBusMessage(start) }
        }
        #expect(throws: DBusMessage.Flaw.malformed) { try DBusMessage((vector + [0])[...]) }
    }

    @Test func truncatedBodyIsRefused() throws {
        var strings = DBusMessage(.signal, serial: 1)
        strings.setBody(["a", "", "äöü"])
        #expect(try strings.strings(3) == ["a", "", "äöü"])
        let (value, change) = (try Self.read(Self.value), try Self.read(Self.change))
        let readers: [(DBusMessage, (DBusMessage) throws -> Void)] = [
            (strings, { _ = try $0.strings(3) }), (value, { _ = try $0.variantNumber() }),
            (change, { _ = try $0.change(of: "Metered") }), (change, { _ = try $0.change(of: "Other") }),
        ]
        for (message, read) in readers {
            try read(message)
            for count in 0..<message.body.count {
                var short = message
                short.body = Array(message.body[..<count])
                #expect(throws: DBusMessage.Flaw.malformed, "\(count)") { try read(short) }
            }
            var long = message
            long.body.append(0)
            #expect(throws: DBusMessage.Flaw.malformed) { try read(long) }
        }
    }

    // MARK: Headers

    /// A header with a flaw: its fields and a change of its bytes.
    static let malformedHeaders:
        [(name: String, fields: [DBusWriter.Field], change: @Sendable (inout [UInt8]) -> Void)] =
            {
                typealias Field = DBusWriter.Field
                let signal: [Field] = [.path("/"), .interface("a.b"), .member("C")]
                return [
                    ("byte order", signal, { $0[0] = UInt8(ascii: "x") }),
                    ("kind 0", signal, { $0[1] = 0 }),
                    ("version 2", signal, { $0[3] = 2 }),
                    ("serial 0", signal, { $0[8] = 0 }),
                    ("padding", signal, { $0[26] = 1 }),
                    ("end of a string", signal, { $0[25] = 1 }),
                    ("field 0", signal + [Field(code: 0, type: "s", text: "a")], { _ in }),
                    ("repeated field", signal + [.member("D")], { _ in }),
                    (
                        "type of a field", [.path("/"), .interface("a.b"), Field(code: 3, type: "o", text: "C")],
                        { _ in }
                    ),
                    ("zero byte", [.path("/"), .interface("a\0b"), .member("C")], { _ in }),
                    ("UTF-8", [.path("/"), .interface("ab"), .member("C")], { $0[40] = 0xFF }),
                    ("no path", [.interface("a.b"), .member("C")], { _ in }),
                    ("no interface", [.path("/"), .member("C")], { _ in }),
                    ("no member", [.path("/"), .interface("a.b")], { _ in }),
                    ("a call without a member", [.path("/")], { $0[1] = 1 }),
                    ("a reply without a number", signal, { $0[1] = 2 }),
                    ("an error without a name", [.replySerial(1)], { $0[1] = 3 }),
                    ("an error without a number", [.errorName("a.b")], { $0[1] = 3 }),
                    ("a signature without a body", signal + [.signature("s")], { _ in }),
                    (
                        "a body without a signature", signal,
                        {
                            $0.append(contentsOf: [0]); $0[4] = 1
                        }
                    ),
                ]
            }()

    @Test(arguments: malformedHeaders.indices)
    func malformedHeaderIsRefused(_ index: Int) {
        let (name, fields, change) = Self.malformedHeaders[index]
        var bytes = DBusWriter.message(4, fields)
        change(&bytes)
        #expect(throws: DBusMessage.Flaw.malformed, "\(name)") { try Self.read(bytes) }
    }

    @Test func unknownKindsAndFieldsAreAccepted() throws {
        #expect(try Self.read(DBusWriter.message(9, [])).kind == nil)
        let fields: [DBusWriter.Field] = [
            .path("/"), .member("C"), DBusWriter.Field(code: 9, type: "u", number: 2),
            DBusWriter.Field(code: 200, type: "o", text: "/x"), .destination("a.b"),
        ]
        let message = try Self.read(DBusWriter.message(1, fields))
        #expect(message.kind == .call)
        #expect(message.destination == "a.b")
    }

    @Test func largerMessageIsRefusedByItsFirstBytes() throws {
        for isBigEndian in [false, true] {
            func start(body: UInt32, fields: UInt32) -> [UInt8] {
                var writer = DBusWriter(isBigEndian: isBigEndian)
                writer.add([UInt8(ascii: isBigEndian ? "B" : "l"), 4, 0, 1])
                for number in [body, 1, fields] { writer.add(number) }
                return writer.bytes
            }
            #expect(try DBusMessage.size(in: start(body: 0, fields: 65520)[...]) == 65536)
            #expect(try DBusMessage.size(in: start(body: 65512, fields: 1)[...]) == 65536)
            for (body, fields) in [(0, 65521), (65513, 1), (65521, 0), (.max, 0), (0, .max), (.max, .max)]
                as [(UInt32, UInt32)]
            {
                #expect(throws: DBusMessage.Flaw.tooLarge) {
                    try DBusMessage.size(in: start(body: body, fields: fields)[...])
                }
            }
        }
    }

    // MARK: Values of other types

    /// Returns a change with another property before `Metered`.
    private static func change(
        _ signature: String, isBigEndian: Bool = false, _ value: @escaping (inout DBusWriter) -> Void
    ) throws(DBusMessage.Flaw) -> DBusMessage.PropertyChange? {
        let fields: [DBusWriter.Field] = [.path("/"), .interface("a.b"), .member("C"), .signature("sa{sv}as")]
        let bytes = DBusWriter.message(4, fields, isBigEndian: isBigEndian) { writer in
            writer.add("a.b")
            writer.addArray(8) { writer in
                writer.addEntry("Other", signature, value)
                writer.addEntry("Metered", "u") { $0.add(UInt32(2)) }
            }
            writer.addArray(4) { _ in }
        }
        return try read(bytes).change(of: "Metered")
    }

    @Test(arguments: [false, true])
    func valuesOfOtherTypesAreSkipped(isBigEndian: Bool) throws {
        let values: [(signature: String, value: (inout DBusWriter) -> Void)] = [
            ("y", { $0.add(UInt8(1)) }), ("b", { $0.add(UInt32(1)) }), ("n", { $0.add(Int16(-1)) }),
            ("q", { $0.add(UInt16(1)) }), ("i", { $0.add(Int32(-1)) }), ("u", { $0.add(UInt32(1)) }),
            ("h", { $0.add(UInt32(1)) }), ("x", { $0.add(Int64(-1)) }), ("t", { $0.add(UInt64(1)) }),
            ("d", { $0.add(Double(1.5).bitPattern) }), ("s", { $0.add("text") }), ("o", { $0.add("/") }),
            ("g", { $0.add(signature: "a{sv}") }), ("ay", { $0.addArray(1) { $0.add([1, 2, 3]) } }),
            ("at", { $0.addArray(8) { _ in } }), ("aat", { $0.addArray(4) { $0.addArray(8) { _ in } } }),
            ("ao", { $0.addArray(4) { for path in ["/a", "/b"] { $0.add(path) } } }),
            (
                "(yt(s))",
                {
                    $0.align(8)
                    $0.add(UInt8(1))
                    $0.add(UInt64(1))
                    $0.align(8)
                    $0.add("text")
                }
            ),
            ("a{sv}", { $0.addArray(8) { $0.addEntry("key", "x") { $0.add(Int64(1)) } } }),
            (
                "a{q(yv)}",
                {
                    $0.addArray(8) {
                        $0.align(8)
                        $0.add(UInt16(1))
                        $0.align(8)
                        $0.add(UInt8(1))
                        $0.add(signature: "v")
                        $0.add(signature: "q")
                        $0.add(UInt16(1))
                    }
                }
            ),
        ]
        for (signature, value) in values {
            let change = try Self.change(signature, isBigEndian: isBigEndian, value)
            #expect(change == DBusMessage.PropertyChange(interface: "a.b", value: 2), "\(signature)")
        }
    }

    @Test func malformedValuesOfOtherTypesAreRefused() {
        let values: [(signature: String, value: (inout DBusWriter) -> Void)] = [
            ("", { _ in }), ("uu", { for _ in 0..<2 { $0.add(UInt32(1)) } }), ("b", { $0.add(UInt32(2)) }),
            ("z", { $0.add(UInt32(1)) }), ("a", { $0.addArray(1) { _ in } }), ("()", { $0.align(8) }),
            ("(", { $0.align(8) }),
            (
                "(u",
                {
                    $0.align(8); $0.add(UInt32(1))
                }
            ),
            ("u)", { $0.add(UInt32(1)) }), ("{sv}", { $0.addEntry("key", "y") { $0.add(UInt8(1)) } }),
            ("a{sv", { $0.addArray(8) { _ in } }), ("a{vs}", { $0.addArray(8) { _ in } }),
            ("a{s}", { $0.addArray(8) { _ in } }), ("a{suu}", { $0.addArray(8) { _ in } }),
            ("a{(s)u}", { $0.addArray(8) { _ in } }), ("s", { $0.add(UInt32.max) }),
            ("ay", { $0.add(UInt32.max) }), ("ay", { $0.add(UInt32(60_000)) }),
            ("aq", { $0.addArray(2) { $0.add([1]) } }), ("v", { $0.add(signature: "") }),
        ]
        for (signature, value) in values {
            #expect(throws: DBusMessage.Flaw.malformed, "\(signature)") { try Self.change(signature, value) }
        }
    }

    /// The variant of the property also counts as a container.
    @Test func nestingOfContainersIsLimited() throws {
        let most = 64
        for (count, isAccepted) in [(2, true), (most, true), (most + 1, false), (10_000, false)] {
            let read = {
                try Self.change("v") { writer in
                    for _ in 2..<count { writer.add(signature: "v") }
                    writer.add(signature: "y")
                    writer.add(UInt8(1))
                }
            }
            if isAccepted {
                #expect(try read()?.value == 2)
            } else {
                #expect(throws: DBusMessage.Flaw.malformed) { try read() }
            }
        }
        for opening in ["a", "("] {
            let signature = String(repeating: opening, count: 200) + "y"
            #expect(throws: DBusMessage.Flaw.malformed) {
                try Self.change(signature) { for _ in 0..<50 { $0.add(UInt32(0)) } }
            }
        }
    }

    // MARK: Random messages

    @Test func randomMessagesAreReadBack() throws {
        var chance = SeededGenerator(11)
        func text(_ chance: inout SeededGenerator) -> String {
            let letters = ["a", "Z", ".", "/", "é", "漢", "🦆"]
            var text = ""
            for _ in 0..<chance.below(20) { text += letters[Int(chance.below(7))] }
            return text
        }
        for _ in 0..<1000 {
            var fields: [DBusWriter.Field] = [
                .replySerial(1 + UInt32(chance.below(1000))), .path(text(&chance)), .interface(text(&chance)),
                .member(text(&chance)), .errorName(text(&chance)), .destination(text(&chance)), .sender(text(&chance)),
            ]
            let count = Int(chance.below(4))
            let strings = (0..<count).map { _ in text(&chance) }
            let signature = String(repeating: "s", count: strings.count)
            if !strings.isEmpty { fields.append(.signature(signature)) }
            fields.shuffle(using: &chance)
            let kind = UInt8(1 + chance.below(4))
            let serial = 1 + UInt32(chance.below(1 << 31))
            let flags = UInt8(chance.below(256))
            for isBigEndian in [false, true] {
                let bytes = DBusWriter.message(kind, serial: serial, flags: flags, fields, isBigEndian: isBigEndian) {
                    for string in strings { $0.add(string) }
                }
                let message = try Self.read(bytes)
                #expect(message.kind?.rawValue == kind && message.serial == serial && message.flags == flags)
                let texts = [
                    1: message.path, 2: message.interface, 3: message.member, 4: message.errorName,
                    6: message.destination, 7: message.sender,
                ]
                for field in fields {
                    if field.code == 5 { #expect(message.replySerial == field.number) }
                    if let text = texts[Int(field.code)] { #expect(text == field.text) }
                }
                #expect(try message.strings(strings.count) == (strings.isEmpty ? [] : strings))
                var written = message
                written.setBody(strings)
                #expect(try Self.read(written.encoded) == written)
            }
        }
    }

    @Test func randomBytesAreReadOrRefused() {
        var chance = SeededGenerator(12)
        var count = (read: 0, refused: 0)
        for round in 0..<6000 {
            var bytes = round % 3 == 0 ? chance.bytes(Int(chance.below(200))) : Self.vectors[round % 2 + 1]
            if round % 3 > 0 {
                for _ in 0..<(1 + chance.below(4)) {
                    bytes[Int(chance.below(UInt64(bytes.count)))] = UInt8(chance.below(256))
                }
            }
            do throws(DBusMessage.Flaw) {
                let message = try Self.read(bytes)
                count.read += 1
                _ = try message.variantNumber()
                _ = try message.change(of: "Metered")
                _ = try message.change(of: "")
            } catch {
                count.refused += 1
            }
        }
        #expect(count.read > 100 && count.refused > 100)
    }
}
