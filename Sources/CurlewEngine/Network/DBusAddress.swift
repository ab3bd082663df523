// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The Unix socket of a message bus (D-Bus Specification, "Server Addresses").
struct DBusAddress: Sendable, Hashable {
    /// The path of the socket; for an abstract socket the name without the leading zero byte (unix(7)).
    var name: [UInt8]
    var isAbstract: Bool

    /// Returns the Unix sockets in a list of addresses, such as `unix:path=/run/dbus/bus;unix:abstract=bus`, in order.
    ///
    /// Addresses with another transport and invalid addresses are left out.
    static func list(_ text: String) -> [DBusAddress] {
        text.utf8.split(separator: UInt8(ascii: ";")).compactMap { DBusAddress($0) }
    }

    private init?(_ address: Substring.UTF8View) {
        let transport = "unix:".utf8
        guard address.starts(with: transport) else { return nil }
        for pair in address.dropFirst(transport.count).split(separator: UInt8(ascii: ",")) {
            guard let equals = pair.firstIndex(of: UInt8(ascii: "=")) else { return nil }
            let key = pair[..<equals]
            isAbstract = key.elementsEqual("abstract".utf8)
            guard isAbstract || key.elementsEqual("path".utf8) else { continue }
            guard let name = Self.unescaped(pair[equals...].dropFirst()), !name.isEmpty, !name.contains(0) else {
                return nil
            }
            self.name = name
            return
        }
        return nil
    }

    /// Replaces "%" and two hexadecimal digits with the byte; returns nil for an invalid escape.
    private static func unescaped(_ text: Substring.UTF8View) -> [UInt8]? {
        var bytes: [UInt8] = []
        var rest = text
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = digit(rest.popFirst()), let low = digit(rest.popFirst()) else { return nil }
            bytes.append(high << 4 | low)
        }
        return bytes
    }

    private static func digit(_ byte: UInt8?) -> UInt8? {
        switch byte {
        case .some(let byte) where (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte): byte - UInt8(ascii: "0")
        case .some(let byte) where (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte | 0x20):
            (byte | 0x20) - UInt8(ascii: "a") + 10
        default: nil
        }
    }
}
