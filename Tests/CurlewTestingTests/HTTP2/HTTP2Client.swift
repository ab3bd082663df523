// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting

/// A client that says exactly which frames go out, and gives out those that come in.
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

    /// Opens a stream with a head.
    func request(
        _ stream: Int, _ method: String = "GET", _ path: String = "/", fields: [(name: String, value: String)] = [],
        endStream: Bool = true
    ) throws {
        let pseudo = [(":method", method), (":scheme", "http"), (":authority", "test"), (":path", path)]
        try send(.headers(stream, pseudo.map { (name: $0.0, value: $0.1) } + fields, endStream: endStream))
    }

    /// The next frame of any kind.
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

    /// The next frame of a kind; others before it are dropped.
    func next(_ kind: HTTP2Frame.Kind) throws -> HTTP2Frame {
        while true {
            let frame = try next()
            if frame.kind == kind { return frame }
        }
    }

    /// The frames of a stream up to its end; others are dropped.
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

    /// How the server ends the connection; what comes before is dropped.
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
