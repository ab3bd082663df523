// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The handling of the client's frames.
///
/// The connection is strict, so that tests detect lax clients: connection errors end it with GOAWAY (RFC 9113 §5.4.1);
/// other errors are only recorded as violations.
extension HTTP2Connection {
    private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
    /// The maximum size of a block of fields in bytes.
    private static let blockLimit = 1 << 20
    private static let largestWindow = Int(Int32.max)

    /// Handles every complete frame in the input.
    func consumeInput() {
        guard hasPreface || readPreface() else { return }
        var rest = input[...]
        while ending == nil, let header = HTTP2Frame.Header(rest) {
            guard header.length <= own.maxFrameSize else {
                fail(.frameSizeError, "A \(header.kind) frame has \(header.length) bytes.")
                break
            }
            guard let frame = HTTP2Frame.decode(from: &rest) else { break }
            core.note(ReceivedFrame(frame, connection: number))
            take(frame)
        }
        input = ending == nil ? Array(rest) : []
    }

    private func readPreface() -> Bool {
        guard input.prefix(Self.preface.count).elementsEqual(Self.preface.prefix(input.count)) else {
            fail(.protocolError, "The connection does not begin with HTTP/2's preface.")
            return false
        }
        guard input.count >= Self.preface.count else { return false }
        input.removeFirst(Self.preface.count)
        hasPreface = true
        return true
    }

    private func take(_ frame: HTTP2Frame) {
        if let block, frame.kind != .continuation || frame.stream != block.stream {
            return fail(.protocolError, "A \(frame.kind) frame interrupts a block of fields.")
        }
        if frame.kind == .rstStream || frame.kind == .windowUpdate, frame.payload.count != 4 {
            return fail(.frameSizeError, "A \(frame.kind) frame has \(frame.payload.count) bytes.")
        }
        switch frame.kind {
        case .data: takeData(frame)
        case .headers: takeHeaders(frame)
        case .continuation: takeContinuation(frame)
        case .rstStream: takeReset(frame)
        case .settings: takeSettings(frame)
        case .ping: takePing(frame)
        case .windowUpdate: takeWindowUpdate(frame)
        case .goAway: if frame.lastStream == nil { fail(.frameSizeError, "A GOAWAY frame is too short.") }
        case .pushPromise: fail(.protocolError, "A client sends PUSH_PROMISE.")
        default: break
        }
    }

    func fail(_ code: HTTP2ErrorCode, _ reason: String) {
        core.record(violation: reason)
        send(.goAway(lastStream: highestStream, code))
        ending = .close
    }

    // MARK: Streams

    private func takeData(_ frame: HTTP2Frame) {
        guard frame.stream > 0, frame.stream <= highestStream, let bytes = frame.content else {
            return fail(.protocolError, "A DATA frame is on the idle stream \(frame.stream), or badly padded.")
        }
        control.receiveWindow -= frame.payload.count
        control.unreturnedWindow += frame.payload.count
        guard control.receiveWindow >= 0 else { return fail(.flowControlError, "The connection's window is overrun.") }
        // Ignore DATA that was in flight when the stream ended (RFC 9113 §5.1).
        guard let stream = streams[frame.stream], !stream.isReset else { return }
        guard !stream.isRequestComplete else { return fail(.streamClosed, "DATA follows the end of a stream.") }
        stream.receiveWindow -= frame.payload.count
        stream.unreturnedWindow += frame.payload.count
        if stream.receiveWindow < 0 { core.record(violation: "The window of stream \(stream.id) is overrun.") }
        stream.bodyLength += bytes.count
        stream.digest.update(bytes)
        update(stream) { [limit = options.requestBodyLimit] request in
            request.bodyLength += bytes.count
            request.body += bytes.prefix(limit - request.body.count)
        }
        if frame.flags.contains(.endStream) { completeRequest(stream) }
    }

    private func completeRequest(_ stream: HTTP2Stream) {
        stream.isRequestComplete = true
        if let announced = stream.announcedLength, announced != stream.bodyLength {
            core.record(violation: "The body has \(stream.bodyLength) bytes, but content-length is \(announced).")
        }
        update(stream) { [digest = stream.digest.hex] request in
            request.bodySHA256 = digest
            request.isBodyComplete = true
        }
    }

    private func takeReset(_ frame: HTTP2Frame) {
        guard let code = frame.errorCode, frame.stream > 0, frame.stream <= highestStream else {
            return fail(.protocolError, "An RST_STREAM frame is on an idle stream.")
        }
        guard let stream = streams[frame.stream] else {
            return core.update(connection: number, stream: frame.stream) { $0.resetCode = code }
        }
        stream.isReset = true
        stream.steps = []
        update(stream) { [digest = stream.digest.hex] request in
            request.bodySHA256 = digest
            request.resetCode = code
        }
    }

    private func update(_ stream: HTTP2Stream, _ change: (inout RecordedRequest) -> Void) {
        if let record = stream.record { core.update(record, change) }
    }

    // MARK: Heads

    private func takeHeaders(_ frame: HTTP2Frame) {
        guard frame.stream % 2 == 1, let bytes = frame.content else {
            return fail(.protocolError, "A HEADERS frame is on stream \(frame.stream), or badly padded.")
        }
        block = (frame.stream, frame.flags.contains(.endStream), Array(bytes))
        if frame.flags.contains(.endHeaders) { finishBlock() }
    }

    private func takeContinuation(_ frame: HTTP2Frame) {
        guard var block else { return fail(.protocolError, "A CONTINUATION frame does not follow HEADERS.") }
        block.bytes += frame.payload
        guard block.bytes.count <= Self.blockLimit else { return fail(.enhanceYourCalm, "A head is too large.") }
        self.block = block
        if frame.flags.contains(.endHeaders) { finishBlock() }
    }

    private func finishBlock() {
        guard let block else { return }
        self.block = nil
        do {
            let fields = try decoder.decode(block.bytes[...])
            if let stream = streams[block.stream] {
                takeTrailers(fields, stream, endStream: block.endStream)
            } else if block.stream > highestStream {
                try begin(block.stream, fields, endStream: block.endStream)
            }
        } catch {
            fail(.compressionError, (error as? MalformedFields)?.reason ?? "\(error)")
        }
    }

    private func takeTrailers(_ fields: [HPACK.Field], _ stream: HTTP2Stream, endStream: Bool) {
        guard endStream, !stream.isRequestComplete, !fields.contains(where: { $0.name.hasPrefix(":") }) else {
            return fail(.protocolError, "Trailers do not end stream \(stream.id), or come after its end.")
        }
        update(stream) { $0.trailers = fields }
        completeRequest(stream)
    }

    private func begin(_ id: Int, _ fields: [HPACK.Field], endStream: Bool) throws {
        highestStream = id
        let ordinal = (id + 1) / 2
        var request = try RecordedRequest(
            http2: fields, stream: id, connection: number, ordinal: ordinal, tls: tls,
            violation: core.record(violation:))
        request.isBodyComplete = endStream
        // Update the count before the request is visible: a test that waits for the request reads the count next.
        let open = 1 + streams.values.count { $0.isOpen }
        core.state.update { $0.mostOpenStreams = max($0.mostOpenStreams, open) }
        let record = core.begin(request).id
        let stream = HTTP2Stream(
            id, record: record, steps: [], sendWindow: peer.initialWindow, receiveWindow: own.initialWindow)
        stream.isRequestComplete = endStream
        stream.announcedLength = request.field("content-length").flatMap(Int.init)
        streams[id] = stream
        if open > own.maxStreams { core.record(violation: "\(open) streams are open, the limit is \(own.maxStreams).") }
        // Do not process streams above the last stream of a GOAWAY (RFC 9113 §6.8).
        if id <= lastStream { stream.steps = respond(request).steps[...] }
    }

    // MARK: The connection

    private func takeSettings(_ frame: HTTP2Frame) {
        guard frame.stream == 0, frame.payload.count % 6 == 0 else {
            return fail(.frameSizeError, "A SETTINGS frame has \(frame.payload.count) bytes on stream \(frame.stream).")
        }
        if frame.flags.contains(.ack) { return takeAcknowledgement(frame) }
        for setting in frame.settings {
            if let code = setting.fault { return fail(code, "Setting \(setting.identifier) is \(setting.value).") }
        }
        let change = peer.take(frame.settings)
        for stream in streams.values { stream.sendWindow += change }
        guard streams.values.allSatisfy({ $0.sendWindow <= Self.largestWindow }) else {
            return fail(.flowControlError, "Settings make a window larger than 2^31-1 bytes.")
        }
        if options.acknowledgesSettings { send(.settingsAck) }
    }

    private func takeAcknowledgement(_ frame: HTTP2Frame) {
        guard frame.payload.isEmpty else {
            return fail(.frameSizeError, "An acknowledgement of SETTINGS has \(frame.payload.count) bytes.")
        }
        guard !unacknowledged.isEmpty else { return }
        let change = own.take(unacknowledged.removeFirst())
        for stream in streams.values { stream.receiveWindow += change }
    }

    private func takePing(_ frame: HTTP2Frame) {
        guard frame.stream == 0, frame.payload.count == 8 else {
            return fail(.frameSizeError, "A PING frame has \(frame.payload.count) bytes on stream \(frame.stream).")
        }
        if options.acknowledgesPings, !frame.flags.contains(.ack) { send(.ping(frame.payload, ack: true)) }
    }

    private func takeWindowUpdate(_ frame: HTTP2Frame) {
        guard let increment = frame.increment, increment > 0 else {
            return fail(.protocolError, "A WINDOW_UPDATE frame has no valid increment.")
        }
        guard let stream = frame.stream == 0 ? control : streams[frame.stream] else { return }
        stream.sendWindow += increment
        if stream.sendWindow > Self.largestWindow { fail(.flowControlError, "A window is larger than 2^31-1 bytes.") }
    }
}

extension HTTP2Connection.Limits {
    /// Applies settings and returns the change of the windows of open streams (RFC 9113 §6.9.2).
    mutating func take(_ settings: [HTTP2Setting]) -> Int {
        let before = initialWindow
        for setting in settings {
            switch setting.identifier {
            case HTTP2Setting.Number.maxConcurrentStreams: maxStreams = Int(setting.value)
            case HTTP2Setting.Number.initialWindowSize: initialWindow = Int(setting.value)
            case HTTP2Setting.Number.maxFrameSize: maxFrameSize = Int(setting.value)
            default: break
            }
        }
        return initialWindow - before
    }
}

extension ServerCore {
    /// Changes the recorded request of a stream that the connection has already released.
    func update(connection: Int, stream: Int, _ change: (inout RecordedRequest) -> Void) {
        state.update { state in
            let place = state.requests.lastIndex { $0.connection == connection && $0.stream == stream }
            if let place { change(&state.requests[place]) }
        }
    }
}
