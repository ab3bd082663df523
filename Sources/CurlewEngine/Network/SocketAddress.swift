// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims

/// An IP address to connect to, and its port.
package struct SocketAddress: Sendable, Hashable {
    /// The address without brackets.
    package let ip: String
    /// Nil for the port of the URL.
    package let port: UInt16?
    /// Whether only connections of https URLs with port 443 use the address, because an HTTPS record names it
    /// (RFC 9460 §9.1).
    package let isForDefaultPort: Bool

    package init(_ ip: String, port: UInt16? = nil, isForDefaultPort: Bool = false) {
        self.ip = ip
        self.port = port
        self.isForDefaultPort = isForDefaultPort
    }

    /// The address in network order: 4 or 16 bytes; empty if the text is not an IP address.
    var bytes: [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 16)
        let count = Int(curlew_address_parse(ip, &bytes))
        return Array(bytes.prefix(count))
    }
}
