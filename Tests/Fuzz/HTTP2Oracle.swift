// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Runs a connection that gets the input in parts, and checks that the server's records match the input and that its
/// output respects the client's limits.
func examineConnection(_ input: [UInt8], step: Int, hasPreface: Bool) {
    guard let core = ConnectionBench.core else { return }
    core.state.update { $0 = ServerState() }
    let preface = hasPreface ? Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) : []
    let oracle = HTTP2Oracle(client: input)
    let stream = MemoryStream(preface + input, step: step * 7, latch: core.stop) { oracle.take($0) }
    var options = HTTP2Server.Options()
    options.requestBodyLimit = 100
    let connection = HTTP2Connection(core, number: 1, io: stream, tls: nil, options: options, respond: answer)
    try? connection.run()
    let state = core.state.read { $0 }
    examineRecords(state, hasPreface ? input : [])
}

enum ConnectionBench {
    /// A server that is never started, because no client connects to it.
    static let core = try? ServerCore(MockServer.Options(), tls: nil, address: .v4, fallback: .stopped)
}

/// Returns one of several scripts, selected by the first byte of the path after its slash.
private func answer(_ request: RecordedRequest) -> HTTP2Script {
    switch (request.path.utf8.dropFirst().first ?? 0) % 8 {
    case 0: .respond(200, body: [UInt8](repeating: 1, count: 20_000))
    case 1: .now.withholdingWindow().reading(bytes: 10).head(200).body([1, 2, 3], frameSize: 2).trailers([("a", "b")])
    case 2: .now.reset(.refusedStream)
    case 3: .now.head(103).head(200, [("long", String(repeating: "x", count: 20_000))], endStream: true)
    case 4: .now.goAway().respond(204)
    case 5: .afterRequest { .now.respond(200, body: $0.body) }
    case 6: .now.settings([.initialWindowSize(10), .maxConcurrentStreams(1)]).respond(200, text: "less")
    default: .now.flood(.ping(), times: 3).fault(.close)
    }
}

private func examineRecords(_ state: ServerState, _ input: [UInt8]) {
    var rest = input[...]
    for received in state.frames {
        guard let frame = HTTP2Frame.decode(from: &rest) else { return demand(false, "\(received) never came") }
        demand(ReceivedFrame(frame, connection: 1) == received, "\(frame) is recorded as \(received)")
    }
    demand(state.violations.count <= ServerState.violationLimit, "\(state.violations.count) violations")
    for request in state.requests {
        demand(request.body.count <= 100 && request.body.count <= request.bodyLength, "\(request.body.count) bytes")
        demand(request.bodyLength <= input.count, "a body of \(request.bodyLength) bytes")
    }
}

/// A parser that checks the server's output.
final class HTTP2Oracle {
    private var output: [UInt8] = []
    private var decoder = HPACKDecoder()
    private var block: (stream: Int, bytes: [UInt8])?
    /// The maximum that the client's SETTINGS and WINDOW_UPDATE permit, regardless of their order.
    private var frameSize = 16_384
    private var initialWindow = 65_535
    private var windows: [Int: Int] = [:]

    init(client: [UInt8]) {
        var rest = client[...]
        while let frame = HTTP2Frame.decode(from: &rest) {
            windows[frame.stream, default: 0] += frame.increment ?? 0
            guard !frame.flags.contains(.ack) else { continue }
            for setting in frame.settings where setting.identifier == HTTP2Setting.Number.maxFrameSize {
                frameSize = max(frameSize, min(Int(setting.value), 1 << 24 - 1))
            }
            for setting in frame.settings where setting.identifier == HTTP2Setting.Number.initialWindowSize {
                initialWindow = max(initialWindow, min(Int(setting.value), 1 << 31 - 1))
            }
        }
    }

    /// Checks the next bytes of the output.
    func take(_ bytes: ArraySlice<UInt8>) {
        output += bytes
        var rest = output[...]
        while let frame = HTTP2Frame.decode(from: &rest) { take(frame) }
        output = Array(rest)
    }

    private func take(_ frame: HTTP2Frame) {
        demand(frame.payload.count <= frameSize, "\(frame) is longer than \(frameSize)")
        let isContinued = frame.kind == .continuation && frame.stream == block?.stream
        demand(block == nil ? frame.kind != .continuation : isContinued, "\(frame) is out of place")
        switch frame.kind {
        case .data:
            use(frame.payload.count, of: 0, with: 65_535)
            use(frame.payload.count, of: frame.stream, with: initialWindow)
        case .headers, .continuation:
            block = (frame.stream, (block?.bytes ?? []) + frame.payload)
            if frame.flags.contains(.endHeaders) { endBlock() }
        case .goAway:
            demand(frame.lastStream != nil && frame.errorCode != nil, "a GOAWAY frame is too short")
        default:
            break
        }
    }

    private func use(_ count: Int, of stream: Int, with initial: Int) {
        windows[stream, default: 0] -= count
        demand(windows[stream, default: 0] + initial >= 0, "the window of stream \(stream) is overrun")
    }

    private func endBlock() {
        let fields = try? decoder.decode((block?.bytes ?? [])[...])
        demand(fields?.isEmpty == false, "a block of fields cannot be decoded")
        block = nil
    }
}
