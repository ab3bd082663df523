// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// One accepted connection, from handshake to close, which runs on its own thread.
final class Connection {
    private let core: ServerCore
    private let number: Int
    private let waiter: SocketWaiter
    private var tls: RecordedRequest.TLS?

    init(_ core: ServerCore, number: Int, socket: CInt) {
        self.core = core
        self.number = number
        waiter = SocketWaiter(socket: socket, stop: core.stop)
    }

    /// Serves requests until the client or the server ends the connection, then closes the socket.
    func run() {
        // After a Disconnect no response is possible, and malformed requests have already got one.
        try? serve()
        core.willClose(number)
        close(waiter.socket)
        core.didClose(number)
    }

    private func serve() throws {
        let plain = PlainStream(waiter: waiter)
        for fault in core.options.onAccept(number) { try fault.perform(on: plain) }
        guard let stream = try core.secure(waiter) else { return try serve(RequestInput(plain)) }
        tls = stream.details
        try serve(RequestInput(stream))
    }

    private func serve(_ input: RequestInput) throws {
        var ordinal = 0
        do {
            repeat { ordinal += 1 } while try exchange(input, ordinal)
        } catch let malformed as MalformedRequest {
            core.record(violation: malformed.reason)
            let answer = MockResponse.text(malformed.reason + "\n", status: malformed.status).closing()
            try write(answer, ResponseWriter.Context(isHead: false, isHTTP10: false, mustClose: true), input.stream)
            try end(input, discardingInput: true)
        }
    }

    /// Reads one request and sends the response; returns false if the connection has ended.
    private func exchange(_ input: RequestInput, _ ordinal: Int) throws -> Bool {
        guard let bytes = try input.head() else { return false }
        let head = try RequestHead(parsing: bytes)
        let request = RecordedRequest(head, connection: number, ordinal: ordinal, tls: tls)
        let (route, id) = core.begin(request)
        var body = BodyReader(head, request, reading: route.reading, core: core, id: id)
        try body.readBeforeResponse(input)

        let response = route.respond(body.request)
        let isHTTP10 = head.version == "HTTP/1.0"
        let asked = head.tokens("connection")
        let context = ResponseWriter.Context(
            isHead: head.method == "HEAD",
            isHTTP10: isHTTP10,
            mustClose: !body.leavesConnectionUsable || asked.contains("close")
                || (isHTTP10 && !asked.contains("keep-alive"))
        )
        let closes = try write(response, context, input.stream)
        try body.readAfterResponse(input)
        guard closes else { return true }
        try end(input, discardingInput: !body.request.isBodyComplete)
        return false
    }

    @discardableResult
    private func write(
        _ response: MockResponse, _ context: ResponseWriter.Context, _ stream: any ByteStream
    ) throws -> Bool {
        var writer = ResponseWriter(response, on: stream, context: context) { [core] in core.didSend($0) }
        try writer.write()
        return writer.closes
    }

    /// Ends the server's side of the connection.
    ///
    /// If the client may still be sending, the server discards its bytes until the client closes, too: a `close` with
    /// unread bytes sends RST, which can destroy the response before the client reads it (RFC 9112 §9.6).
    private func end(_ input: RequestInput, discardingInput: Bool) throws {
        input.stream.announceEnd()
        guard discardingInput else { return }
        Socket.finishSending(waiter.socket)
        try input.discardAll()
    }
}

extension RecordedRequest {
    init(_ head: RequestHead, connection: Int, ordinal: Int, tls: TLS?) {
        let (path, query) = head.pathAndQuery
        self.init(
            method: head.method, target: head.target, path: path, query: query, version: head.version,
            fields: head.fields, connection: connection, ordinal: ordinal, tls: tls
        )
        expectsContinue = head.version == "HTTP/1.1" && head.tokens("expect").contains("100-continue")
        if case .none = head.framing { isBodyComplete = true }
    }
}
