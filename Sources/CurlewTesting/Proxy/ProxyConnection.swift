// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewSupport
import Glibc

/// The settings of a proxy, shared by its connections.
struct ProxyScript: Sendable {
    let kind: MockProxy.Kind
    let credentials: (user: String, password: String)?
    let answer: @Sendable (MockProxy.Request) -> MockProxy.Answer
    let log: Monitor<[MockProxy.Request]>

    func record(_ request: MockProxy.Request) -> MockProxy.Answer {
        log.update { $0.append(request) }
        return answer(request)
    }
}

/// One connection of a client to a proxy, which runs on its own thread.
final class ProxyConnection {
    private let core: ServerCore
    private let number: Int
    private let waiter: SocketWaiter
    private let script: ProxyScript

    init(_ core: ServerCore, number: Int, socket: CInt, _ script: ProxyScript) {
        self.core = core
        self.number = number
        self.script = script
        waiter = SocketWaiter(socket: socket, stop: core.stop)
    }

    func run() {
        try? serve()
        Self.close(core, number, waiter.socket)
    }

    private static func close(_ core: ServerCore, _ number: Int, _ socket: CInt) {
        core.willClose(number)
        Glibc.close(socket)
        core.didClose(number)
    }

    /// Transfers all bytes between a connection and a port of the loopback interface, in both directions.
    static func relay(_ core: ServerCore, number: Int, socket: CInt, to port: UInt16) {
        let waiter = SocketWaiter(socket: socket, stop: core.stop)
        if let server = try? Socket.connect(toPort: port) { try? carry(PlainStream(waiter: waiter), to: server) }
        close(core, number, socket)
    }

    private func serve() throws {
        let secured = try core.secure(waiter)
        let stream: any ByteStream = secured ?? PlainStream(waiter: waiter)
        switch script.kind {
        case .http:
            let input = RequestInput(stream)
            while try exchange(input) {}
        case .socks: try serveSOCKS(stream)
        }
    }

    // MARK: Answers

    /// Performs an answer; returns true if the answer accepts the request.
    private func perform(
        _ answer: MockProxy.Answer, on stream: any ByteStream, refusing: (Int, [String]) throws -> Void,
        code: (UInt8) throws -> Void
    ) throws -> Bool {
        switch answer {
        case .accept: return true
        case .status(let status, let fields): try refusing(status, fields)
        case .code(let number): try code(number)
        case .bytes(let bytes):
            try stream.send(bytes[...])
            stream.announceEnd()
            throw Disconnect.ended
        case .wait(let gate):
            gate.arrive()
            try waiter.until(gate.latch)
            return true
        case .reset:
            Socket.resetOnClose(waiter.socket)
            throw Disconnect.ended
        case .close: throw Disconnect.ended
        }
        return false
    }

    // MARK: HTTP

    /// Reads one request and answers it; returns false if the connection has ended.
    private func exchange(_ input: RequestInput) throws -> Bool {
        guard let bytes = try input.head() else { return false }
        let head = try RequestHead(parsing: bytes)
        let request = MockProxy.Request(
            method: head.method, target: head.target, fields: head.fields.map { "\($0.name): \($0.value)" }, user: nil,
            password: nil, connection: number)
        var body: [UInt8] = []
        if case .length(let length) = head.framing {
            while body.count < length, let part = try input.some(length - body.count) { body += part }
        }
        let isAccepted = try perform(script.record(request), on: input.stream) { status, fields in
            let lines = ["HTTP/1.1 \(status) Proxy", "Content-Length: 0"] + fields
            try input.stream.send(Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)[...])
            if fields.contains(where: { $0.lowercased() == "connection: close" }) { throw Disconnect.ended }
        } code: { _ in
            throw Disconnect.ended
        }
        guard isAccepted else { return true }
        if head.method == "CONNECT" {
            guard let port = Self.port(ofAuthority: head.target[...], default: nil) else { throw Disconnect.ended }
            guard let server = try? Socket.connect(toPort: port) else { return try refuse(input.stream) }
            try Self.carry(input.stream, to: server, after: Array("HTTP/1.1 200 Connected\r\n\r\n".utf8))
            return false
        }
        return try forward(head, body, input)
    }

    private static func port(ofAuthority authority: Substring, default other: UInt16?) -> UInt16? {
        guard let colon = authority.lastIndex(of: ":"), !authority[colon...].contains("]") else { return other }
        return UInt16(authority[authority.index(after: colon)...])
    }

    /// Forwards a request to its server and the response to the client; returns whether the connection stays open.
    private func forward(_ head: RequestHead, _ body: [UInt8], _ input: RequestInput) throws -> Bool {
        guard head.target.hasPrefix("http://") else { throw Disconnect.ended }
        let authority = head.target.dropFirst(7).prefix { $0 != "/" && $0 != "?" }
        guard let port = Self.port(ofAuthority: authority, default: 80) else { throw Disconnect.ended }
        let (path, query) = head.pathAndQuery
        let kept = head.fields.filter { field in
            let name = field.name.lowercased()
            return !name.hasPrefix("proxy-") && name != "connection"
        }
        let lines =
            ["\(head.method) \(path)\(query.map { "?\($0)" } ?? "") HTTP/1.1"]
            + kept.map { "\($0.name): \($0.value)" } + ["Connection: close", "Via: 1.1 mock"]
        guard let socket = try? Socket.connect(toPort: port) else { return try refuse(input.stream) }
        defer { Glibc.close(socket) }
        let server = PlainStream(waiter: SocketWaiter(socket: socket, stop: core.stop))
        try server.send((Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8) + body)[...])
        return try sendResponse(of: RequestInput(server), to: head.method, input.stream)
    }

    /// Responds with 502, because the server did not accept a connection.
    private func refuse(_ client: any ByteStream) throws -> Bool {
        try client.send(Array("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n".utf8)[...])
        return true
    }

    private func sendResponse(
        of server: RequestInput, to method: String, _ client: any ByteStream
    ) throws -> Bool {
        guard let bytes = try server.head() else { throw Disconnect.ended }
        var lines = String(decoding: bytes, as: UTF8.self).split(separator: "\r\n").map(String.init)
        lines.removeAll { $0.lowercased().hasPrefix("connection:") }
        let length = lines.first { $0.lowercased().hasPrefix("content-length:") }
            .flatMap { Int($0.dropFirst("content-length:".count).drop { $0 == " " }) }
        if length == nil { lines.append("Connection: close") }
        try client.send(Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)[...])
        var left = method == "HEAD" ? 0 : length ?? .max
        while left > 0, let part = try server.some(min(left, 64 << 10)) {
            try client.send(part)
            left -= part.count
        }
        if length == nil { client.announceEnd() }
        return length != nil
    }

    // MARK: SOCKS

    private func serveSOCKS(_ stream: any ByteStream) throws {
        var input = SOCKSInput(stream)
        switch try input.byte() {
        case 4: try serveSOCKS4(&input, stream)
        case 5: try serveSOCKS5(&input, stream)
        default: throw Disconnect.ended
        }
    }

    private func serveSOCKS4(_ input: inout SOCKSInput, _ stream: any ByteStream) throws {
        _ = try input.byte()
        let port = try input.port()
        let address = try input.bytes(4)
        let user = try input.text()
        let isNamed = address.dropLast() == [0, 0, 0] && address[3] != 0
        let host = isNamed ? try input.text() : address.map(String.init).joined(separator: ".")
        let request = MockProxy.Request(
            method: isNamed ? "SOCKS4a" : "SOCKS4", target: authority(host, port), fields: [],
            user: user.isEmpty ? nil : user, password: nil, connection: number)
        try connect(request, to: port, stream, accepted: 90, unreachable: 91) { [0, $0, 0, 0, 0, 0, 0, 0] }
    }

    private func serveSOCKS5(_ input: inout SOCKSInput, _ stream: any ByteStream) throws {
        let methods = try input.bytes(Int(try input.byte()))
        var user: String?
        var password: String?
        if let credentials = script.credentials {
            guard methods.contains(2) else {
                try stream.send([5, 255])
                throw Disconnect.ended
            }
            try stream.send([5, 2])
            _ = try input.byte()
            user = String(decoding: try input.bytes(Int(try input.byte())), as: UTF8.self)
            password = String(decoding: try input.bytes(Int(try input.byte())), as: UTF8.self)
            let isRight = user == credentials.user && password == credentials.password
            try stream.send([1, isRight ? 0 : 1])
            if !isRight { throw Disconnect.ended }
        } else {
            try stream.send([5, 0])
        }
        _ = try input.bytes(3)
        let host: String
        switch try input.byte() {
        case 1: host = try input.bytes(4).map(String.init).joined(separator: ".")
        case 3: host = String(decoding: try input.bytes(Int(try input.byte())), as: UTF8.self)
        default:
            let bytes = try input.bytes(16)
            host = stride(from: 0, to: 16, by: 2).map {
                String(UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1]), radix: 16)
            }
            .joined(separator: ":")
        }
        let port = try input.port()
        let request = MockProxy.Request(
            method: "SOCKS5", target: authority(host, port), fields: [], user: user, password: password,
            connection: number)
        try connect(request, to: port, stream, accepted: 0, unreachable: 5) { [5, $0, 0, 1, 0, 0, 0, 0, 0, 0] }
    }

    /// Answers a request for a connection to a port, and transfers the bytes of that connection.
    ///
    /// - Parameters:
    ///   - accepted: The code of a reply to an accepted request.
    ///   - unreachable: The code of a reply when the port accepts no connection.
    ///   - reply: Returns the bytes of the reply with a code.
    private func connect(
        _ request: MockProxy.Request, to port: UInt16, _ stream: any ByteStream, accepted: UInt8, unreachable: UInt8,
        reply: (UInt8) -> [UInt8]
    ) throws {
        let isAccepted = try perform(script.record(request), on: stream) { _, _ in
            throw Disconnect.ended
        } code: { code in
            try stream.send(reply(code)[...])
            throw Disconnect.ended
        }
        guard isAccepted else { return }
        guard let server = try? Socket.connect(toPort: port) else { return try stream.send(reply(unreachable)[...]) }
        try Self.carry(stream, to: server, after: reply(accepted))
    }

    // MARK: Transfer of bytes

    /// Sends `greeting` to the client, and transfers bytes until the server ends; then closes the socket of the server.
    private static func carry(_ client: any ByteStream, to socket: CInt, after greeting: [UInt8] = []) throws {
        defer { Glibc.close(socket) }
        let server = PlainStream(waiter: SocketWaiter(socket: socket, stop: client.waiter.stop))
        try client.send(greeting[...])
        var (isClientOpen, isServerOpen) = (true, true)
        while isClientOpen || isServerOpen {
            var isMoved = false
            if isClientOpen {
                let (moved, ended) = try move(from: client, to: server)
                isMoved = isMoved || moved
                if ended {
                    isClientOpen = false
                    Socket.finishSending(socket)
                }
            }
            if isServerOpen {
                let (moved, ended) = try move(from: server, to: client)
                isMoved = isMoved || moved
                if ended {
                    // A server that has ended reads no more bytes either.
                    client.announceEnd()
                    return
                }
            }
            if !isMoved { try waitForEither(client.waiter, server.waiter, isClientOpen) }
        }
    }

    private static func move(
        from source: any ByteStream, to target: any ByteStream
    ) throws -> (moved: Bool, ended: Bool) {
        var bytes: [UInt8] = []
        switch try source.receiveAvailable(appendingTo: &bytes) {
        case .nothing: return (false, false)
        case .end: return (true, true)
        case .bytes:
            try target.send(bytes[...])
            return (true, false)
        }
    }

    private static func waitForEither(_ one: SocketWaiter, _ other: SocketWaiter, _ isOneOpen: Bool) throws {
        var entries = [
            pollfd(fd: one.stop.descriptor, events: Int16(POLLIN), revents: 0),
            pollfd(fd: other.socket, events: Int16(POLLIN), revents: 0),
            pollfd(fd: isOneOpen ? one.socket : -1, events: Int16(POLLIN), revents: 0),
        ]
        let count = poll(&entries, 3, -1)
        if count > 0, entries[0].revents != 0 { throw Disconnect.stopped }
    }
}

/// The bytes of a SOCKS handshake.
private struct SOCKSInput {
    private let stream: any ByteStream
    private var buffer: [UInt8] = []

    init(_ stream: any ByteStream) { self.stream = stream }

    mutating func bytes(_ count: Int) throws -> [UInt8] {
        while buffer.count < count {
            guard try stream.receive(appendingTo: &buffer) else { throw Disconnect.peerClosed }
        }
        defer { buffer.removeFirst(count) }
        return Array(buffer[..<count])
    }

    mutating func byte() throws -> UInt8 { try bytes(1)[0] }

    mutating func port() throws -> UInt16 {
        let bytes = try bytes(2)
        return UInt16(bytes[0]) << 8 | UInt16(bytes[1])
    }

    /// Reads a text that ends with a NUL, and returns the text without the NUL.
    mutating func text() throws -> String {
        var text: [UInt8] = []
        while case let byte = try byte(), byte != 0 { text.append(byte) }
        return String(decoding: text, as: UTF8.self)
    }
}
