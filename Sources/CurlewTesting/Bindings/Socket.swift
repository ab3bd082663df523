// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewShims
import Glibc

/// The socket calls of the server.
///
/// All descriptors are close-on-exec and non-blocking.
enum Socket {
    static func listen(on address: LoopbackAddress, port: UInt16, bufferSize: Int?) throws -> CInt {
        let family = address.v4Number == nil ? AF_INET6 : AF_INET
        let kind = CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue) | CInt(SOCK_NONBLOCK.rawValue)
        let descriptor = socket(family, kind, 0)
        guard descriptor >= 0 else { throw TestingError.system("socket", errno) }
        set(descriptor, SOL_SOCKET, SO_REUSEADDR, 1)
        if let bufferSize {
            // Set before `listen`, because accepted sockets inherit it and the handshake fixes the window scale.
            set(descriptor, SOL_SOCKET, SO_SNDBUF, CInt(clamping: bufferSize))
            set(descriptor, SOL_SOCKET, SO_RCVBUF, CInt(clamping: bufferSize))
        }
        guard bind(descriptor, to: address, port: port) == 0, Glibc.listen(descriptor, 1024) == 0 else {
            let code = errno
            close(descriptor)
            throw TestingError.system("bind or listen", code)
        }
        return descriptor
    }

    /// Listens at a Unix socket: a path, or "@" and an abstract name.
    static func listen(at path: String) throws -> CInt {
        let kind = CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue) | CInt(SOCK_NONBLOCK.rawValue)
        let descriptor = socket(AF_UNIX, kind, 0)
        guard descriptor >= 0 else { throw TestingError.system("socket", errno) }
        var name = sockaddr_un()
        name.sun_family = sa_family_t(AF_UNIX)
        let bytes = path.hasPrefix("@") ? [0] + Array(path.utf8.dropFirst()) : Array(path.utf8)
        let room = MemoryLayout.size(ofValue: name.sun_path)
        guard bytes.count < room else {
            close(descriptor)
            throw TestingError("The path of the Unix socket is too long.")
        }
        withUnsafeMutableBytes(of: &name.sun_path) { $0.copyBytes(from: bytes) }
        // The name of an abstract socket has no NUL at its end.
        let length = MemoryLayout<sa_family_t>.size + bytes.count + (path.hasPrefix("@") ? 0 : 1)
        let code = withUnsafePointer(to: &name) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.bind(descriptor, $0, socklen_t(length))
            }
        }
        guard code == 0, Glibc.listen(descriptor, 1024) == 0 else {
            let code = errno
            close(descriptor)
            throw TestingError.system("bind or listen", code)
        }
        return descriptor
    }

    /// Connects to a port of 127.0.0.1.
    static func connect(toPort port: UInt16) throws -> CInt {
        let kind = CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue)
        let descriptor = socket(AF_INET, kind, 0)
        guard descriptor >= 0 else { throw TestingError.system("socket", errno) }
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_port = port.bigEndian
        name.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let code = withUnsafePointer(to: &name) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard code == 0, fcntl(descriptor, F_SETFL, O_NONBLOCK) == 0 else {
            let code = errno
            close(descriptor)
            throw TestingError.system("connect", code)
        }
        set(descriptor, CInt(IPPROTO_TCP), TCP_NODELAY, 1)
        return descriptor
    }

    /// Returns the port of a listening socket.
    static func port(of descriptor: CInt) -> UInt16 {
        var storage = sockaddr_in6()
        var length = socklen_t(MemoryLayout<sockaddr_in6>.size)
        return withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { _ = getsockname(descriptor, $0, &length) }
            return UInt16(bigEndian: pointer.pointee.sin6_port)
        }
    }

    enum Acceptance {
        case connection(CInt)
        case nothing
        case outOfDescriptors
    }

    static func accept(_ listener: CInt) -> Acceptance {
        let descriptor = curlew_accept(listener)
        if descriptor >= 0 {
            set(descriptor, CInt(IPPROTO_TCP), TCP_NODELAY, 1)
            return .connection(descriptor)
        }
        return [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(errno) ? .outOfDescriptors : .nothing
    }

    /// Makes the next `close` send RST instead of FIN.
    static func resetOnClose(_ descriptor: CInt) {
        var value = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &value, socklen_t(MemoryLayout<linger>.size))
    }

    /// Returns the number of sent bytes that the peer has not acknowledged yet.
    static func unacknowledged(_ descriptor: CInt) -> Int {
        var count: CInt = 0
        return ioctl(descriptor, UInt(TIOCOUTQ), &count) == 0 ? Int(count) : 0
    }

    static func finishSending(_ descriptor: CInt) {
        shutdown(descriptor, CInt(SHUT_WR))
    }

    static func disconnect(_ descriptor: CInt) {
        shutdown(descriptor, CInt(SHUT_RDWR))
    }

    private static func set(_ descriptor: CInt, _ level: CInt, _ option: CInt, _ value: CInt) {
        var value = value
        setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<CInt>.size))
    }

    private static func bind(_ descriptor: CInt, to address: LoopbackAddress, port: UInt16) -> CInt {
        guard let number = address.v4Number else {
            var storage = sockaddr_in6()
            storage.sin6_family = sa_family_t(AF_INET6)
            storage.sin6_port = port.bigEndian
            storage.sin6_addr = in6addr_loopback
            return bind(descriptor, &storage)
        }
        var storage = sockaddr_in()
        storage.sin_family = sa_family_t(AF_INET)
        storage.sin_port = port.bigEndian
        storage.sin_addr.s_addr = (0x7F00_0000 + UInt32(number)).bigEndian
        return bind(descriptor, &storage)
    }

    private static func bind<Storage>(_ descriptor: CInt, _ storage: inout Storage) -> CInt {
        let length = socklen_t(MemoryLayout<Storage>.size)
        return withUnsafePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { Glibc.bind(descriptor, $0, length) }
        }
    }
}
