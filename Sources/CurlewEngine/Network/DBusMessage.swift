// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// D-Bus: the part of the protocol that a client needs to watch one property of NetworkManager. Messages to the bus are
// little-endian and contain only strings; messages from the bus have either byte order and values of any type.

/// A message of D-Bus (D-Bus Specification, "Message Format").
struct DBusMessage: Sendable, Hashable {
    enum Kind: UInt8, Sendable { case call = 1, reply, failure, signal }

    /// The reason why bytes are not a message.
    enum Flaw: Error, Sendable, Hashable {
        case malformed
        /// The message has more than ``maximumSize`` bytes.
        case tooLarge
    }

    /// A signal that properties of an object have changed, reduced to one property.
    struct PropertyChange: Sendable, Hashable {
        var interface: String
        /// The new value; nil if the signal does not contain it, or if it is not a UINT32.
        var value: UInt32?
        /// Whether the property has changed and the signal does not contain its value.
        var isInvalidated = false
    }

    /// The maximum size in bytes; D-Bus allows 128 MiB.
    static let maximumSize = 64 << 10
    /// A flag of calls: the bus does not start the receiver.
    static let noAutoStart: UInt8 = 0x2

    /// Nil for a kind that the specification does not define; a receiver ignores such a message.
    var kind: Kind?
    var flags: UInt8 = 0
    /// The number of the message, unique among those of its sender; never 0.
    var serial: UInt32
    var path: String?
    var interface: String?
    var member: String?
    var errorName: String?
    /// The number of the call to which this message replies.
    var replySerial: UInt32?
    var destination: String?
    /// The unique name of the sender's connection, set by the bus; `org.freedesktop.DBus` is the bus itself.
    var sender: String?
    /// The types of the values in the body.
    var signature = ""
    var body: [UInt8] = []
    var isBigEndian = false

    init(_ kind: Kind, serial: UInt32) {
        self.kind = kind
        self.serial = serial
    }

    // MARK: Reading

    /// Returns the size of the message at the start of a buffer; nil if the buffer has less than 16 bytes.
    static func size(in buffer: ArraySlice<UInt8>) throws(Flaw) -> Int? {
        guard buffer.count >= 16 else { return nil }
        let start = buffer.startIndex
        var reader = DBusReader(buffer[(start + 4)..<(start + 16)], isBigEndian: try isBigEndian(buffer[start]))
        // The last byte of the first word is the version of the protocol.
        guard buffer[start + 3] == 1 else { throw .malformed }
        let body = try reader.number()
        _ = try reader.number()
        let fields = try reader.number()
        guard body <= maximumSize, fields <= maximumSize else { throw .tooLarge }
        let size = (16 + Int(fields) + 7) / 8 * 8 + Int(body)
        guard size <= maximumSize else { throw .tooLarge }
        return size
    }

    private static func isBigEndian(_ mark: UInt8) throws(Flaw) -> Bool {
        guard mark == UInt8(ascii: "B") || mark == UInt8(ascii: "l") else { throw .malformed }
        return mark == UInt8(ascii: "B")
    }

    /// Reads a whole message.
    ///
    /// - Throws: ``Flaw`` if the header is invalid or the size differs. The values in the body are not checked.
    init(_ bytes: ArraySlice<UInt8>) throws(Flaw) {
        guard try Self.size(in: bytes) == bytes.count else { throw .malformed }
        isBigEndian = try Self.isBigEndian(bytes[bytes.startIndex])
        var reader = DBusReader(bytes, isBigEndian: isBigEndian)
        _ = try reader.byte()
        let code = try reader.byte()
        kind = Kind(rawValue: code)
        flags = try reader.byte()
        _ = try reader.byte()
        _ = try reader.number()
        serial = try reader.number()
        guard code != 0, serial != 0 else { throw .malformed }
        var fields = try reader.array(8)
        var seen: Set<UInt8> = []
        while !fields.isAtEnd {
            try fields.align(8)
            let field = try fields.byte()
            guard seen.insert(field).inserted else { throw .malformed }
            try readField(field, &fields)
        }
        try reader.align(8)
        body = Array(reader.rest)
        guard hasRequiredFields, body.isEmpty == signature.isEmpty else { throw .malformed }
    }

    private mutating func readField(_ field: UInt8, _ fields: inout DBusReader) throws(Flaw) {
        let expected: String? =
            switch field {
            case 1: "o"
            case 2, 3, 4, 6, 7: "s"
            case 5: "u"
            case 8: "g"
            case 0: throw .malformed
            default: nil
            }
        guard let expected else { return try fields.skip("v") }
        guard try fields.signature() == expected else { throw .malformed }
        switch field {
        case 1: path = try fields.string()
        case 2: interface = try fields.string()
        case 3: member = try fields.string()
        case 4: errorName = try fields.string()
        case 5: replySerial = try fields.number()
        case 6: destination = try fields.string()
        case 7: sender = try fields.string()
        default: signature = try fields.signature()
        }
    }

    private var hasRequiredFields: Bool {
        switch kind {
        case .call: path != nil && member != nil
        case .signal: path != nil && interface != nil && member != nil
        case .reply: replySerial != nil
        case .failure: replySerial != nil && errorName != nil
        case nil: true
        }
    }

    /// Returns the strings in a body of `count` strings; nil for a body of other types.
    func strings(_ count: Int) throws(Flaw) -> [String]? {
        guard signature == String(repeating: "s", count: count) else { return nil }
        var reader = bodyReader
        var strings: [String] = []
        for _ in 0..<count { strings.append(try reader.string()) }
        guard reader.isAtEnd else { throw .malformed }
        return strings
    }

    /// Returns the number in a body of one variant; nil for a body or a variant of another type.
    func variantNumber() throws(Flaw) -> UInt32? {
        guard signature == "v" else { return nil }
        var reader = bodyReader
        let number = try reader.variantNumber()
        guard reader.isAtEnd else { throw .malformed }
        return number
    }

    /// Returns the change of a property from the body of the signal `PropertiesChanged`; nil for a body of other types.
    func change(of property: String) throws(Flaw) -> PropertyChange? {
        guard signature == "sa{sv}as" else { return nil }
        var reader = bodyReader
        var change = PropertyChange(interface: try reader.string())
        var values = try reader.array(8)
        while !values.isAtEnd {
            try values.align(8)
            if try values.string() == property {
                change.value = try values.variantNumber()
            } else {
                try values.skip("v")
            }
        }
        var names = try reader.array(4)
        while !names.isAtEnd {
            if try names.string() == property { change.isInvalidated = true }
        }
        guard reader.isAtEnd else { throw .malformed }
        return change
    }

    private var bodyReader: DBusReader { DBusReader(body[...], isBigEndian: isBigEndian) }

    // MARK: Writing

    /// Replaces the body with strings.
    mutating func setBody(_ strings: [String]) {
        signature = String(repeating: "s", count: strings.count)
        body = []
        for string in strings { body.appendDBus(string) }
        isBigEndian = false
    }

    /// The bytes of the message, whose body is little-endian.
    var encoded: [UInt8] {
        var fields: [UInt8] = []
        let texts: [(code: UInt8, type: Character, value: String?)] = [
            (1, "o", path), (2, "s", interface), (3, "s", member), (4, "s", errorName), (6, "s", destination),
            (7, "s", sender),
        ]
        for (code, type, value) in texts {
            guard let value else { continue }
            fields.appendDBusField(code, type)
            fields.appendDBus(value)
        }
        if let replySerial {
            fields.appendDBusField(5, "u")
            fields.appendDBus(replySerial)
        }
        if !signature.isEmpty {
            fields.appendDBusField(8, "g")
            fields.append(UInt8(clamping: signature.utf8.count))
            fields += signature.utf8
            fields.append(0)
        }
        var bytes = [UInt8(ascii: "l"), kind?.rawValue ?? 0, flags, 1]
        bytes.appendDBus(UInt32(clamping: body.count))
        bytes.appendDBus(serial)
        bytes.appendDBus(UInt32(clamping: fields.count))
        bytes += fields
        bytes.alignDBus(8)
        return bytes + body
    }
}

extension [UInt8] {
    fileprivate mutating func alignDBus(_ alignment: Int) {
        while !count.isMultiple(of: alignment) { append(0) }
    }

    fileprivate mutating func appendDBus(_ number: UInt32) {
        alignDBus(4)
        for shift in [0, 8, 16, 24] { append(UInt8(truncatingIfNeeded: number >> UInt32(shift))) }
    }

    fileprivate mutating func appendDBus(_ string: String) {
        appendDBus(UInt32(clamping: string.utf8.count))
        self += string.utf8
        append(0)
    }

    /// Appends the code of a header field and the type of its value; the first field is at a multiple of 8 bytes.
    fileprivate mutating func appendDBusField(_ code: UInt8, _ type: Character) {
        alignDBus(8)
        self += [code, 1]
        self += String(type).utf8
        append(0)
    }
}
