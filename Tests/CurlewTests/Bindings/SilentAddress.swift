// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A port of ::1 that accepts no connection and refuses none, because its queue is full.
final class SilentAddress {
    let port: UInt16
    private var descriptors: [CInt] = []

    init?() {
        let listener = socket(AF_INET6, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_NONBLOCK.rawValue), 0)
        var address = sockaddr_in6()
        address.sin6_family = sa_family_t(AF_INET6)
        address.sin6_addr = in6addr_loopback
        var length = socklen_t(MemoryLayout<sockaddr_in6>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, length) == 0 && listen(listener, 0) == 0
                    && getsockname(listener, $0, &length) == 0
            }
        }
        port = UInt16(bigEndian: address.sin6_port)
        descriptors = [listener]
        guard isBound else { return nil }
        for _ in 0..<4 {
            let filler = socket(AF_INET6, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_NONBLOCK.rawValue), 0)
            descriptors.append(filler)
            withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { _ = connect(filler, $0, length) }
            }
        }
    }

    deinit { for descriptor in descriptors { close(descriptor) } }
}
