// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew
internal import CurlewEngine
internal import CurlewShims
internal import Glibc

/// A listening socket at 127.0.0.1 or a connection of a player; it never blocks.
final class PlayerSocket: Sendable {
    enum Received: Sendable {
        case bytes([UInt8])
        /// The other side has finished sending, or the connection has failed.
        case end
        case later
    }

    let descriptor: CInt

    private init(_ descriptor: CInt) { self.descriptor = descriptor }

    deinit { Glibc.close(descriptor) }

    /// Listens at a port of 127.0.0.1 that the system chooses.
    static func listening() throws(DiskFailure) -> PlayerSocket {
        let kind = CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue) | CInt(SOCK_NONBLOCK.rawValue)
        let descriptor = socket(AF_INET, kind, 0)
        guard descriptor >= 0 else { throw DiskFailure("cannot create", "a socket", errno) }
        let listener = PlayerSocket(descriptor)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let code = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard code == 0, listen(descriptor, 128) == 0 else { throw DiskFailure("cannot listen at", "127.0.0.1", errno) }
        return listener
    }

    /// The port of the socket.
    var port: UInt16 {
        var address = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { _ = getsockname(descriptor, $0, &length) }
        }
        return UInt16(bigEndian: address.sin_port)
    }

    enum Accepted: Sendable {
        case connection(PlayerSocket)
        case later
        /// The process or the system has no free descriptor.
        case exhausted
    }

    /// Accepts a connection.
    func accept() -> Accepted {
        let connection = curlew_accept(descriptor)
        if connection < 0 { return [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(errno) ? .exhausted : .later }
        var on: CInt = 1
        setsockopt(connection, CInt(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<CInt>.size))
        return .connection(PlayerSocket(connection))
    }

    /// Returns the bytes that have arrived, up to a maximum.
    func receive(upTo most: Int) -> Received {
        var bytes = [UInt8](repeating: 0, count: most)
        while true {
            let count = recv(descriptor, &bytes, most, 0)
            if count > 0 { return .bytes(Array(bytes[..<count])) }
            if count < 0, errno == EINTR { continue }
            return count < 0 && errno == EAGAIN ? .later : .end
        }
    }

    /// Sends a part of a chunk; returns the number of bytes that the kernel took, 0 if it takes none now, nil if the
    /// connection has failed.
    func send(_ chunk: ByteChunk, from start: Int) -> Int? {
        chunk.withUnsafeBytes { bytes in
            while true {
                let rest = UnsafeRawBufferPointer(rebasing: bytes[start...])
                let count = Glibc.send(descriptor, rest.baseAddress, rest.count, CInt(MSG_NOSIGNAL))
                if count >= 0 { return count }
                if errno == EINTR { continue }
                return errno == EAGAIN ? 0 : nil
            }
        }
    }

    /// Ends both directions, so that a task that waits for the socket continues.
    func disconnect() { shutdown(descriptor, CInt(SHUT_RDWR)) }

    /// Ends the sending direction.
    func finishSending() { shutdown(descriptor, CInt(SHUT_WR)) }
}
