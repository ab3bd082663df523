// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Bindings has the client of these tests. It is blocking and works on bytes, because the tests check the exact bytes.
// It fails after ten seconds of silence instead of hanging.

import CurlewShims
import CurlewTesting
import Glibc

/// The way in which the other side ended the connection.
enum Ending: Equatable {
    case fin
    case reset
    case closeNotify
}

/// The reason why the client cannot continue.
enum WireError: Error, Equatable {
    case cannotConnect
    case timedOut
    case handshakeFailed
    case ended(Ending)
    case notHTTP
}

/// Raises the limit of descriptors to the maximum for this process.
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

    /// The TLS session for the next connection; it exists once a response has been read.
    var session: SecureSession? { secure?.session }
    var applicationProtocol: String? { secure?.applicationProtocol }
    var ocspResponse: [UInt8]? { secure?.ocspResponse }
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

    /// Appends the next bytes to the buffer.
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

    /// Whether no bytes have arrived and the connection is still open; does not wait.
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
