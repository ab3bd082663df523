// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Bindings contains sockets that MockServer does not provide.

import CurlewShims
import Glibc

/// A listening socket that completes no connection: its backlog is full, so the kernel drops new ones.
final class StuckListener: Sendable {
    let port: UInt16
    private let listener: CInt
    private let guest: CInt

    init?() {
        let kind = CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue)
        listener = socket(AF_INET, kind, 0)
        guest = socket(AF_INET, kind, 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptors = (listener, guest)
        let isReady = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { general in
                bind(descriptors.0, general, length) == 0 && listen(descriptors.0, 0) == 0
                    && getsockname(descriptors.0, general, &length) == 0
                    && connect(descriptors.1, general, length) == 0
            }
        }
        port = UInt16(bigEndian: address.sin_port)
        if !isReady { return nil }
    }

    deinit {
        close(guest)
        close(listener)
    }
}

/// A port that refuses connections during the object's lifetime: the socket is bound but does not listen.
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
