// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewShims
import Glibc

/// A port that refuses connections for the lifetime of the object: it is bound, so no other program can take it.
final class ClosedPort: Sendable {
    let number: UInt16
    private let descriptor: CInt

    init?() {
        descriptor = socket(AF_INET, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let own = descriptor
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { general in
                bind(own, general, length) == 0 && getsockname(own, general, &length) == 0
            }
        }
        number = UInt16(bigEndian: address.sin_port)
        if !isBound { return nil }
    }

    deinit { close(descriptor) }
}
