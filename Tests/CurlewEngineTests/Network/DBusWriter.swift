// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

@testable import CurlewEngine

/// Writes values and messages of D-Bus in either byte order, independent of the engine's code.
struct DBusWriter {
    var isBigEndian = false
    private(set) var bytes: [UInt8] = []

    init(isBigEndian: Bool = false) { self.isBigEndian = isBigEndian }

    mutating func align(_ alignment: Int) {
        while bytes.count % alignment != 0 { bytes.append(0) }
    }

    mutating func add(_ raw: [UInt8]) { bytes += raw }

    /// Appends a number of any size with its own alignment.
    mutating func add<Number: FixedWidthInteger>(_ number: Number) {
        align(Number.bitWidth / 8)
        let order = isBigEndian ? number.bigEndian : number.littleEndian
        withUnsafeBytes(of: order) { bytes += $0 }
    }

    mutating func add(_ string: String) {
        add(UInt32(string.utf8.count))
        bytes += Array(string.utf8) + [0]
    }

    mutating func add(signature: String) {
        bytes += [UInt8(signature.utf8.count)] + Array(signature.utf8) + [0]
    }

    mutating func addArray(_ alignment: Int, _ elements: (inout DBusWriter) -> Void) {
        add(UInt32(0))
        let place = bytes.count - 4
        align(alignment)
        let start = bytes.count
        elements(&self)
        var length = DBusWriter(isBigEndian: isBigEndian)
        length.add(UInt32(bytes.count - start))
        bytes.replaceSubrange(place..<(place + 4), with: length.bytes)
    }

    /// Appends an entry of a dictionary with variants.
    mutating func addEntry(_ key: String, _ signature: String, _ value: (inout DBusWriter) -> Void) {
        align(8)
        add(key)
        add(signature: signature)
        value(&self)
    }

    /// A field of a header: its code, its type, and its value.
    struct Field {
        var code: UInt8
        var type: String
        var text = ""
        var number: UInt32 = 0

        static func path(_ text: String) -> Field { Field(code: 1, type: "o", text: text) }
        static func interface(_ text: String) -> Field { Field(code: 2, type: "s", text: text) }
        static func member(_ text: String) -> Field { Field(code: 3, type: "s", text: text) }
        static func errorName(_ text: String) -> Field { Field(code: 4, type: "s", text: text) }
        static func replySerial(_ number: UInt32) -> Field { Field(code: 5, type: "u", number: number) }
        static func destination(_ text: String) -> Field { Field(code: 6, type: "s", text: text) }
        static func sender(_ text: String) -> Field { Field(code: 7, type: "s", text: text) }
        static func signature(_ text: String) -> Field { Field(code: 8, type: "g", text: text) }
    }

    /// Returns a message.
    static func message(
        _ kind: UInt8, serial: UInt32 = 1, flags: UInt8 = 0, _ fields: [Field], isBigEndian: Bool = false,
        body: (inout DBusWriter) -> Void = { _ in }
    ) -> [UInt8] {
        var content = DBusWriter(isBigEndian: isBigEndian)
        body(&content)
        var writer = DBusWriter(isBigEndian: isBigEndian)
        writer.add([UInt8(ascii: isBigEndian ? "B" : "l"), kind, flags, 1])
        writer.add(UInt32(content.bytes.count))
        writer.add(serial)
        writer.addArray(8) { writer in
            for field in fields {
                writer.align(8)
                writer.add([field.code])
                writer.add(signature: field.type)
                switch field.type {
                case "u": writer.add(field.number)
                case "g": writer.add(signature: field.text)
                default: writer.add(field.text)
                }
            }
        }
        writer.align(8)
        return writer.bytes + content.bytes
    }
}

/// Messages of a bus and of NetworkManager, whose unique name is `:1.5`.
struct BusMessages {
    var isBigEndian = false

    static let manager = "org.freedesktop.NetworkManager"
    static let bus = "org.freedesktop.DBus"
    static let owner = ":1.5"
    /// The reply to the authentication.
    static let accepted = Array("OK 0123456789abcdef0123456789abcdef\r\n".utf8)

    /// Returns a reply with strings.
    func reply(_ serial: UInt32, _ strings: [String] = [], from sender: String = bus) -> [UInt8] {
        let signature = String(repeating: "s", count: strings.count)
        let fields: [DBusWriter.Field] = [.replySerial(serial), .sender(sender)]
        return DBusWriter.message(
            2, fields + (strings.isEmpty ? [] : [.signature(signature)]), isBigEndian: isBigEndian
        ) { for string in strings { $0.add(string) } }
    }

    func failure(_ serial: UInt32, from sender: String = bus) -> [UInt8] {
        let name = "org.freedesktop.DBus.Error.ServiceUnknown"
        return DBusWriter.message(
            3, [.replySerial(serial), .errorName(name), .sender(sender), .signature("s")], isBigEndian: isBigEndian
        ) { $0.add("It is unknown.") }
    }

    /// Returns the reply of NetworkManager with the value of the property.
    func value(_ serial: UInt32, _ value: UInt32, from sender: String = owner) -> [UInt8] {
        DBusWriter.message(2, [.replySerial(serial), .sender(sender), .signature("v")], isBigEndian: isBigEndian) {
            $0.add(signature: "u")
            $0.add(value)
        }
    }

    /// Returns the bus's signal that a name has a new owner; an empty new owner means that it has no owner.
    func ownerChanged(
        from old: String, to new: String, name: String = manager, sender: String = bus
    ) -> [UInt8] {
        let fields: [DBusWriter.Field] = [
            .path("/org/freedesktop/DBus"), .interface(Self.bus), .member("NameOwnerChanged"), .sender(sender),
            .signature("sss"),
        ]
        return DBusWriter.message(4, fields, isBigEndian: isBigEndian) {
            for text in [name, old, new] { $0.add(text) }
        }
    }

    /// Returns the signal that the property has changed; with an unknown value if `value` is nil.
    func propertyChanged(
        _ value: UInt32?, sender: String = owner, path: String = "/org/freedesktop/NetworkManager",
        interface: String = manager
    ) -> [UInt8] {
        let fields: [DBusWriter.Field] = [
            .path(path), .interface("org.freedesktop.DBus.Properties"), .member("PropertiesChanged"), .sender(sender),
            .signature("sa{sv}as"),
        ]
        return DBusWriter.message(4, fields, isBigEndian: isBigEndian) { writer in
            writer.add(interface)
            writer.addArray(8) { writer in
                writer.addEntry("State", "u") { $0.add(UInt32(70)) }
                if let value { writer.addEntry("Metered", "u") { $0.add(value) } }
            }
            writer.addArray(4) { if value == nil { $0.add("Metered") } }
        }
    }

    /// The messages of a bus from the authentication until NetworkManager has replied.
    func conversation(metered: UInt32) -> [[UInt8]] {
        [
            Self.accepted, reply(1, [":1.9"]), reply(2), reply(3), reply(4, [Self.owner]), value(5, metered),
        ]
    }
}
