// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// One accepted connection, from handshake to close, which runs on its own thread.
///
/// The thread waits at a single point for the socket, for the gates of the scripts and for the ends of their pauses.
final class HTTP2Connection {
    let core: ServerCore
    let number: Int
    let options: HTTP2Server.Options
    let respond: @Sendable (RecordedRequest) -> HTTP2Script
    let tls: RecordedRequest.TLS?
    private let io: any ByteStream

    var input: [UInt8] = []
    var hasPreface = false
    private var output: [UInt8] = []
    private var sent = 0

    /// The connection's own script, and its windows.
    let control: HTTP2Stream
    /// The streams that are open or have steps left.
    var streams: [Int: HTTP2Stream] = [:]
    var highestStream = 0
    /// The last stream of the server's GOAWAY.
    var lastStream = Int.max
    var decoder = HPACKDecoder()
    /// The block of fields that is being received.
    var block: (stream: Int, endStream: Bool, bytes: [UInt8])?

    var peer = Limits()
    var own = Limits()
    /// The server's SETTINGS that the client has not acknowledged yet.
    var unacknowledged: [[HTTP2Setting]] = []
    /// The fault that ends the connection once all output has been sent.
    var ending: SocketFault?

    /// The limits from one side's SETTINGS (RFC 9113 §6.5.2).
    struct Limits {
        var initialWindow = 65_535
        var maxFrameSize = 16_384
        var maxStreams = Int.max
    }

    /// The number of unsent bytes at which scripts wait.
    private static let outputLimit = 256 * 1024

    init(
        _ core: ServerCore, number: Int, io: any ByteStream, tls: RecordedRequest.TLS?, options: HTTP2Server.Options,
        respond: @escaping @Sendable (RecordedRequest) -> HTTP2Script
    ) {
        self.core = core
        self.number = number
        self.io = io
        self.tls = tls
        self.options = options
        self.respond = respond
        let steps = options.connection(number).steps
        control = HTTP2Stream(0, record: nil, steps: steps, sendWindow: 65_535, receiveWindow: 65_535)
    }

    /// Serves a socket until the client or the server ends the connection, then closes the socket.
    static func serve(
        _ core: ServerCore, number: Int, socket: CInt, options: HTTP2Server.Options,
        respond: @escaping @Sendable (RecordedRequest) -> HTTP2Script
    ) {
        let waiter = SocketWaiter(socket: socket, stop: core.stop)
        do {
            let plain = PlainStream(waiter: waiter)
            for fault in options.onAccept(number) { try fault.perform(on: plain) }
            let secure = try core.secure(waiter)
            let connection = HTTP2Connection(
                core, number: number, io: secure ?? plain, tls: secure?.details, options: options, respond: respond)
            try connection.run()
        } catch {
            // One of the two sides has ended the connection, so no message to the client is possible.
        }
        core.endRequests(of: number)
        core.willClose(number)
        close(socket)
        core.didClose(number)
    }

    /// Runs the connection from the end of the handshake to the close.
    func run() throws {
        do {
            while true {
                let hasMore = advance()
                // Replenish after the scripts, because a new script may withhold its window.
                if !hasMore { replenishAll() }
                try flush()
                if isFlushed, let ending { return try end(by: ending) }
                if isFlushed { announceArrivals() }
                try waitForEvents(isWriting: hasMore || !isFlushed)
                try receive()
            }
        } catch Disconnect.peerClosed {
            // The client may have sent the reason before it closed the connection.
            try receive()
        }
    }

    // MARK: Scripts

    /// Runs every script as far as possible, one step or frame at a time in turn, so that streams share the connection.
    ///
    /// Returns true if the scripts could continue but must wait until more output has been sent.
    private func advance() -> Bool {
        var isMoving = true
        while isMoving, ending == nil {
            isMoving = perform(on: control)
            for stream in streams.values.sorted(by: { $0.id < $1.id }) where ending == nil {
                guard output.count - sent < Self.outputLimit else { return true }
                if perform(on: stream) { isMoving = true }
                if stream.steps.isEmpty, !stream.isOpen { streams[stream.id] = nil }
            }
            if output.count - sent >= Self.outputLimit { return true }
        }
        return false
    }

    private func replenishAll() {
        replenish(control)
        for stream in streams.values { replenish(stream) }
    }

    private func announceArrivals() {
        for stream in [control] + streams.values {
            guard let gate = stream.gate, !stream.hasArrived else { continue }
            stream.hasArrived = true
            gate.arrive()
        }
    }

    // MARK: Output

    func send(_ frame: HTTP2Frame) { output += frame.encoded }

    func send(_ bytes: [UInt8]) { output += bytes }

    private var isFlushed: Bool { sent == output.count }

    private func flush() throws {
        while sent < output.count {
            let count = try io.sendAvailable(output[sent...])
            if count == 0 { break }
            sent += count
            core.didSend(count)
        }
        output.removeFirst(sent)
        sent = 0
    }

    // MARK: Input

    private func waitForEvents(isWriting: Bool) throws {
        let all = [control] + streams.values
        let latches = all.compactMap { $0.gate.flatMap { $0.isOpen ? nil : $0.latch } }
        // If a gate has opened since the scripts ran, do not wait.
        let isOpened = all.contains { $0.gate?.isOpen == true }
        let deadline = isOpened ? .now : all.compactMap(\.pauseEnd).min()
        try io.waiter.untilAny(isWriting: isWriting, latches: latches, deadline: deadline)
    }

    private func receive() throws {
        var isOver = false
        for _ in 0..<16 where !isOver {
            switch try io.receiveAvailable(appendingTo: &input) {
            case .bytes: continue
            case .nothing: isOver = true
            case .end:
                consumeInput()
                throw Disconnect.ended
            }
        }
        consumeInput()
    }

    // MARK: Shutdown

    /// Ends the connection with the given fault.
    ///
    /// Except for a reset, the method discards input until the client closes, too, because `close` with unread bytes
    /// sends RST. It waits at most one second, because some clients do not check idle connections.
    private func end(by fault: SocketFault) throws {
        if case .reset = fault { return try fault.perform(on: io) }
        if case .close = fault { io.announceEnd() }
        Socket.finishSending(io.waiter.socket)
        let plain = PlainStream(waiter: io.waiter)
        let deadline = ContinuousClock.now + .seconds(1)
        var scratch: [UInt8] = []
        while ContinuousClock.now < deadline {
            try io.waiter.untilAny(isWriting: false, latches: [], deadline: deadline)
            scratch.removeAll(keepingCapacity: true)
            if case .end = try plain.receiveAvailable(appendingTo: &scratch) { return }
        }
    }
}

extension ServerCore {
    /// Marks the requests of an ended connection, which will not change any more.
    func endRequests(of connection: Int) {
        state.update { state in
            for index in state.requests.indices where state.requests[index].connection == connection {
                state.requests[index].isConnectionClosed = true
            }
        }
    }

    func note(_ frame: ReceivedFrame) {
        state.update { $0.append(frame) }
    }

    func request(_ id: Int) -> RecordedRequest? {
        state.read { state in id >= state.firstNumber ? state.requests[id - state.firstNumber] : nil }
    }
}
