// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import Foundation
import Glibc

/// A connection that sends any bytes to an endpoint.
///
/// Its blocking calls run on threads of their own.
final class RawPlayer: Sendable {
    private let socket: CInt

    init(port: UInt16, receiveBuffer: CInt? = nil) {
        socket = Glibc.socket(AF_INET, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        if var size = receiveBuffer {
            setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<CInt>.size))
        }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let size = socklen_t(MemoryLayout<sockaddr_in>.size)
        _ = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(socket, $0, size) }
        }
    }

    deinit { close(socket) }

    /// Sends bytes, which must fit into the buffer of the kernel.
    @discardableResult
    func send(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        return Glibc.send(socket, bytes, bytes.count, CInt(MSG_NOSIGNAL)) == bytes.count
    }

    /// Ends the sending direction.
    func finish() { shutdown(socket, CInt(SHUT_WR)) }

    /// Reads until the other side closes the connection, or until so many bytes have arrived.
    func read(upTo most: Int = .max) async -> [UInt8] {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread { [self] in
                var (all, piece) = ([UInt8](), [UInt8](repeating: 0, count: 64 << 10))
                while all.count < most {
                    let count = recv(socket, &piece, min(piece.count, most - all.count), 0)
                    if count <= 0 { break }
                    all += piece[..<count]
                }
                continuation.resume(returning: all)
            }
        }
    }

    /// Sends a text on a new connection, and returns all that the endpoint sends until it closes the connection.
    static func exchange(_ text: String, port: UInt16) async -> String {
        let player = RawPlayer(port: port)
        player.send(text)
        return String(decoding: await player.read(), as: UTF8.self)
    }
}
