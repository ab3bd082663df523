// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A client without a socket: it sends its bytes part by part, waits until nothing comes any more, and ends.
final class MemoryStream: ByteStream {
    let waiter: SocketWaiter
    private var rest: ArraySlice<UInt8>
    private let step: Int
    private let output: (ArraySlice<UInt8>) -> Void
    /// Whether a part has come that is to be looked at before the next one.
    private var isBetween = false
    /// Whether something was sent since we last said that nothing comes.
    private var hasOutput = false

    /// A socket whose peer is gone, so that nothing ever waits for it.
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
