// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A port of a loopback address that neither accepts nor refuses connections, because its queue is full.
final class SilentAddress {
    let port: UInt16
    private var descriptors: [CInt] = []

    /// - Parameters:
    ///   - text: ::1, or an address that begins with 127.
    ///   - port: 0 for any port.
    init?(_ text: String = "::1", port: UInt16 = 0) {
        let isIPv6 = text == "::1"
        let family = isIPv6 ? AF_INET6 : AF_INET
        var address = sockaddr_in6()
        var length = socklen_t(MemoryLayout<sockaddr_in6>.size)
        if isIPv6 {
            address.sin6_family = sa_family_t(AF_INET6)
            address.sin6_addr = in6addr_loopback
            address.sin6_port = port.bigEndian
        } else {
            length = socklen_t(MemoryLayout<sockaddr_in>.size)
            withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
                    $0.pointee.sin_family = sa_family_t(AF_INET)
                    $0.pointee.sin_port = port.bigEndian
                    _ = inet_pton(AF_INET, text, &$0.pointee.sin_addr)
                }
            }
        }
        let type = CInt(SOCK_STREAM.rawValue) | CInt(SOCK_NONBLOCK.rawValue)
        let listener = socket(family, type, 0)
        descriptors = [listener]
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, length) == 0 && listen(listener, 0) == 0
                    && getsockname(listener, $0, &length) == 0
            }
        }
        // Both families have the port at the same place.
        self.port = UInt16(bigEndian: address.sin6_port)
        guard isBound else { return nil }
        for _ in 0..<4 {
            let filler = socket(family, type, 0)
            descriptors.append(filler)
            withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { _ = connect(filler, $0, length) }
            }
        }
    }

    deinit { for descriptor in descriptors { close(descriptor) } }
}
