// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Bindings has the client of these tests: blocking and byte by byte, since it has to say exactly what is on the wire.
// It fails after ten seconds of silence instead of hanging.

import CurlewShims
import CurlewTesting
import Glibc

/// How the other side ended the connection.
enum Ending: Equatable {
    case fin
    case reset
    case closeNotify
}

/// Why the client cannot go on.
enum WireError: Error, Equatable {
    case cannotConnect
    case timedOut
    case handshakeFailed
    case ended(Ending)
    case notHTTP
}

/// Allows as many descriptors as the system lets this process have.
func raiseDescriptorLimit() {
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    limit.rlim_cur = limit.rlim_max
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
}

/// One connection to a server on the loopback interface.
final class WireClient {
    let socket: CInt
    var buffer: [UInt8] = []
    private var secure: SecureConnection?
    private var scratch = [UInt8](repeating: 0, count: 64 * 1024)

    convenience init(_ server: MockServer, address: LoopbackAddress = .v4, tls: SecureSettings? = nil) throws {
        try self.init(port: server.port, address: address, tls: tls)
    }

    init(port: UInt16, address: LoopbackAddress = .v4, tls: SecureSettings? = nil) throws {
        socket = try Self.connect(port: port, address: address)
        if let tls { secure = try SecureConnection(socket, tls) }
    }

    deinit {
        close()
    }

    private(set) var isClosed = false

    /// Closes the connection for good; over TLS without close_notify.
    func close() {
        guard !isClosed else { return }
        isClosed = true
        Glibc.close(socket)
    }

    /// The session, for the next connection; there is one once a response was read.
    var session: SecureSession? { secure?.session }
    var applicationProtocol: String? { secure?.applicationProtocol }
    var staple: [UInt8]? { secure?.staple }
    var servedChain: [[UInt8]] { secure?.servedChain ?? [] }

    func send(_ text: String) throws {
        try send(Array(text.utf8))
    }

    func send(_ bytes: [UInt8]) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { raw -> Int in
                if let secure { return secure.write(raw) }
                return Glibc.send(socket, raw.baseAddress, raw.count, CInt(MSG_NOSIGNAL))
            }
            guard count > 0 else { throw WireError.ended(.reset) }
            rest = rest.dropFirst(count)
        }
    }

    /// Appends what comes next to the buffer.
    func receive() throws {
        if secure?.hasPending != true {
            var entry = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
            guard poll(&entry, 1, 10_000) == 1 else { throw WireError.timedOut }
        }
        let count = try secure?.read(&scratch) ?? recv(socket, &scratch, scratch.count, 0)
        guard count >= 0 else { throw WireError.ended(.reset) }
        guard count > 0 else { throw WireError.ended(.fin) }
        buffer += scratch[..<count]
    }

    /// Whether nothing has come and nothing ended; does not wait.
    var isQuiet: Bool {
        var entry = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
        return buffer.isEmpty && poll(&entry, 1, 0) == 0
    }

    private static func connect(port: UInt16, address: LoopbackAddress) throws -> CInt {
        let family = address == .v4 ? AF_INET : AF_INET6
        let socket = Glibc.socket(family, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        var code: CInt
        switch address {
        case .v4, .v4Host:
            var storage = sockaddr_in()
            storage.sin_family = sa_family_t(AF_INET)
            storage.sin_port = port.bigEndian
            storage.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            code = connect(socket, &storage)
        case .v6:
            var storage = sockaddr_in6()
            storage.sin6_family = sa_family_t(AF_INET6)
            storage.sin6_port = port.bigEndian
            storage.sin6_addr = in6addr_loopback
            code = connect(socket, &storage)
        }
        guard code == 0 else {
            Glibc.close(socket)
            throw WireError.cannotConnect
        }
        return socket
    }

    private static func connect<Storage>(_ socket: CInt, _ storage: inout Storage) -> CInt {
        withUnsafePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(socket, $0, socklen_t(MemoryLayout<Storage>.size))
            }
        }
    }
}
