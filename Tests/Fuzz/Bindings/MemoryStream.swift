// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A client without a socket: it sends its bytes in parts, waits until the server sends no more bytes, and ends.
final class MemoryStream: ByteStream {
    let waiter: SocketWaiter
    private var rest: ArraySlice<UInt8>
    private let step: Int
    private let output: (ArraySlice<UInt8>) -> Void
    /// Whether the server must process a part before the next one is sent.
    private var isBetween = false
    /// Whether the server has sent bytes since the stream last reported that no input is available.
    private var hasOutput = false

    /// A socket whose peer is closed, so that no wait for it blocks.
    private static let socket: CInt = {
        var pair: [CInt] = [-1, -1]
        socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &pair)
        close(pair[1])
        return pair[0]
    }()

    init(_ input: [UInt8], step: Int, latch: EventLatch, output: @escaping (ArraySlice<UInt8>) -> Void) {
        waiter = SocketWaiter(socket: Self.socket, stop: latch)
        rest = input[...]
        self.step = step
        self.output = output
    }

    func receiveAvailable(appendingTo buffer: inout [UInt8]) throws -> Arrival {
        if isBetween || (rest.isEmpty && hasOutput) {
            isBetween = false
            hasOutput = hasOutput && !rest.isEmpty
            return .nothing
        }
        guard !rest.isEmpty else { return .end }
        buffer += rest.prefix(step)
        rest = rest.dropFirst(step)
        isBetween = true
        return .bytes
    }

    func sendAvailable(_ bytes: ArraySlice<UInt8>) throws -> Int {
        let part = bytes.prefix(4096 * step)
        output(part)
        hasOutput = true
        return part.count
    }

    func receive(appendingTo buffer: inout [UInt8]) throws -> Bool { false }

    func send(_ bytes: ArraySlice<UInt8>) throws { output(bytes) }

    func announceEnd() {}
}
