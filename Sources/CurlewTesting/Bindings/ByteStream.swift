// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The two directions of a connection, plain or encrypted.
///
/// Only one thread uses a stream.
protocol ByteStream: AnyObject {
    var waiter: SocketWaiter { get }

    /// Waits for at least one byte and appends the received bytes; returns false at the end of the stream.
    func receive(appendingTo buffer: inout [UInt8]) throws -> Bool

    /// Sends bytes and returns when the kernel has accepted all of them.
    func send(_ bytes: ArraySlice<UInt8>) throws

    /// Appends the bytes that have arrived, without waiting.
    func receiveAvailable(appendingTo buffer: inout [UInt8]) throws -> Arrival

    /// Sends as many of the bytes as the kernel accepts now, and returns their number.
    func sendAvailable(_ bytes: ArraySlice<UInt8>) throws -> Int

    /// Announces the end of the stream if the protocol supports it (TLS close_notify).
    func announceEnd()
}

/// The result of a read that does not wait.
enum Arrival {
    case bytes, nothing, end
}

/// The number of bytes that one `receive` requests.
let receiveSize = 32 * 1024

/// A connection without TLS.
final class PlainStream: ByteStream {
    let waiter: SocketWaiter
    private var scratch = [UInt8](repeating: 0, count: receiveSize)

    init(waiter: SocketWaiter) {
        self.waiter = waiter
    }

    func receive(appendingTo buffer: inout [UInt8]) throws -> Bool {
        while true {
            let count = recv(waiter.socket, &scratch, scratch.count, 0)
            if count > 0 { buffer.append(contentsOf: scratch[..<count]) }
            if count >= 0 { return count > 0 }
            try waitAfterFailure { try waiter.untilReadable() }
        }
    }

    func send(_ bytes: ArraySlice<UInt8>) throws {
        var rest = bytes
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                Glibc.send(waiter.socket, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL))
            }
            if count >= 0 {
                rest = rest.dropFirst(count)
            } else {
                try waitAfterFailure { try waiter.untilWritable() }
            }
        }
    }

    func receiveAvailable(appendingTo buffer: inout [UInt8]) throws -> Arrival {
        let count = recv(waiter.socket, &scratch, scratch.count, 0)
        if count > 0 { buffer.append(contentsOf: scratch[..<count]) }
        if count >= 0 { return count > 0 ? .bytes : .end }
        try waitAfterFailure {}
        return .nothing
    }

    func sendAvailable(_ bytes: ArraySlice<UInt8>) throws -> Int {
        let count = bytes.withUnsafeBytes {
            Glibc.send(waiter.socket, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL))
        }
        if count < 0 { try waitAfterFailure {} }
        return max(0, count)
    }

    func announceEnd() {}

    private func waitAfterFailure(_ wait: () throws -> Void) throws {
        switch errno {
        case EINTR: return
        case EAGAIN: try wait()
        default: throw Disconnect.peerClosed
        }
    }
}
