// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting

/// A client that sends exactly the given frames and returns the received ones.
final class HTTP2Client {
    let wire: WireClient

    init(_ server: HTTP2Server, address: LoopbackAddress = .v4, tls: SecureSettings? = nil) throws {
        wire = try WireClient(port: server.port, address: address, tls: tls)
        try wire.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        try send(.settings())
    }

    func send(_ frames: HTTP2Frame...) throws {
        for frame in frames { try wire.send(frame.encoded) }
    }

    /// Opens a stream with a request head.
    func request(
        _ stream: Int, _ method: String = "GET", _ path: String = "/", fields: [(name: String, value: String)] = [],
        endStream: Bool = true
    ) throws {
        let pseudo = [(":method", method), (":scheme", "http"), (":authority", "test"), (":path", path)]
        try send(.headers(stream, pseudo.map { (name: $0.0, value: $0.1) } + fields, endStream: endStream))
    }

    /// Returns the next frame of any kind.
    func next() throws -> HTTP2Frame {
        while true {
            var rest = wire.buffer[...]
            if let frame = HTTP2Frame.decode(from: &rest) {
                wire.buffer = Array(rest)
                return frame
            }
            try wire.receive()
        }
    }

    /// Returns the next frame of a kind and discards other frames before it.
    func next(_ kind: HTTP2Frame.Kind) throws -> HTTP2Frame {
        while true {
            let frame = try next()
            if frame.kind == kind { return frame }
        }
    }

    /// Returns the frames of a stream up to its end and discards other frames.
    func answer(_ stream: Int) throws -> [HTTP2Frame] {
        var frames: [HTTP2Frame] = []
        while true {
            let frame = try next()
            guard frame.stream == stream else { continue }
            frames.append(frame)
            if frame.kind == .rstStream { return frames }
            if frame.flags.contains(.endStream), [.data, .headers].contains(frame.kind) { return frames }
        }
    }

    /// Returns the way in which the server ends the connection, and discards the bytes before the end.
    func ending() throws -> Ending {
        while true {
            do {
                wire.buffer = []
                try wire.receive()
            } catch WireError.ended(let ending) {
                return ending
            }
        }
    }
}

extension [HTTP2Frame] {
    /// The bytes of all DATA frames.
    var body: [UInt8] { filter { $0.kind == .data }.flatMap { $0.content ?? [] } }
    /// The kinds in order.
    var kinds: [HTTP2Frame.Kind] { map(\.kind) }
}
