// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The execution of scripts.
extension HTTP2Connection {
    /// Performs the next step of a script, or one frame of the step; returns false if no step is left or it must wait.
    func perform(on stream: HTTP2Stream) -> Bool {
        guard let step = stream.steps.first else { return false }
        switch step {
        case .readRequest(let bytes):
            guard stream.isRequestComplete || stream.bodyLength >= bytes ?? .max else { return false }
        case .then(let makeScript):
            guard let request = stream.record.flatMap(core.request) else { break }
            stream.finishStep()
            stream.steps = (makeScript(request).steps + stream.steps)[...]
            return true
        case .body(let body, let frameSize, let endStream):
            return sendBody(body, frameSize, endStream, on: stream)
        case .frame(let frame, let times):
            send(frame)
            recordSent(frame)
            stream.repetitions += 1
            if stream.repetitions != times { return true }
        case .fault(let fault):
            guard perform(fault, on: stream) else { return false }
        default:
            performAtOnce(step, on: stream)
        }
        stream.finishStep()
        return true
    }

    private func performAtOnce(_ step: HTTP2Script.Step, on stream: HTTP2Stream) {
        switch step {
        case .fields(let fields, let endStream):
            sendFields(fields, endStream: endStream, on: stream)
        case .end:
            send(.data(stream.id, endStream: true))
            stream.hasEndedResponse = true
        case .reset(let code):
            send(.rstStream(stream.id, code))
            stream.isReset = true
        case .goAway(let last, let code, let debug):
            goAway(upTo: last ?? highestStream, code, debug, for: stream)
        case .settings(let settings):
            send(.settings(settings))
            unacknowledged.append(settings)
        case .windowUpdate(let increment):
            send(.windowUpdate(stream.id, by: increment))
            stream.receiveWindow += increment
        case .withholdsWindow(let isWithheld):
            stream.withholdsWindow = isWithheld
        default:
            break
        }
    }

    private func perform(_ fault: SocketFault, on stream: HTTP2Stream) -> Bool {
        switch fault {
        case .stall(let gate):
            guard gate.isOpen else { return false }
            if !stream.hasArrived { gate.arrive() }
        case .pause(let duration):
            let end = stream.pauseEnd ?? .now + duration
            stream.pauseEnd = end
            return .now >= end
        case .send(let bytes):
            send(bytes)
        case .reset, .close, .cut:
            ending = fault
        }
        return true
    }

    private func sendBody(_ body: MockResponse.Body, _ frameSize: Int, _ endStream: Bool, on stream: HTTP2Stream)
        -> Bool
    {
        let rest = body.count - stream.bodyOffset
        let window = min(control.sendWindow, stream.sendWindow)
        guard rest == 0 || window > 0 else { return false }
        let count = min(rest, frameSize, peer.maxFrameSize, window)
        let isLast = count == rest
        if count > 0 || endStream {
            var frame: [UInt8] = []
            let flags: HTTP2Frame.Flags = isLast && endStream ? .endStream : []
            HTTP2Frame.encodeHeader(.data, flags, stream.id, length: max(0, count), to: &frame)
            if count > 0 { body.append(stream.bodyOffset..<(stream.bodyOffset + count), to: &frame) }
            send(frame)
        }
        stream.bodyOffset += count
        stream.sendWindow -= count
        control.sendWindow -= count
        guard isLast else { return true }
        if endStream { stream.hasEndedResponse = true }
        stream.finishStep()
        return true
    }

    private func sendFields(_ fields: [(name: String, value: String)], endStream: Bool, on stream: HTTP2Stream) {
        var rest = HPACK.encode(fields)[...]
        var kind = HTTP2Frame.Kind.headers
        repeat {
            let part = rest.prefix(peer.maxFrameSize)
            rest = rest.dropFirst(part.count)
            var flags: HTTP2Frame.Flags = endStream && kind == .headers ? .endStream : []
            if rest.isEmpty { flags.insert(.endHeaders) }
            send(HTTP2Frame(kind, flags: flags, stream: stream.id, payload: Array(part)))
            kind = .continuation
        } while !rest.isEmpty
        if endStream { stream.hasEndedResponse = true }
    }

    private func goAway(upTo last: Int, _ code: HTTP2ErrorCode, _ debug: [UInt8], for acting: HTTP2Stream) {
        send(.goAway(lastStream: last, code, debug: debug))
        lastStream = min(lastStream, last)
        for stream in streams.values where stream.id > lastStream && stream !== acting { stream.steps = [] }
    }

    /// Updates the stream if a scripted frame ends it.
    private func recordSent(_ frame: HTTP2Frame) {
        guard let stream = streams[frame.stream] else { return }
        switch frame.kind {
        case .data, .headers: if frame.flags.contains(.endStream) { stream.hasEndedResponse = true }
        case .rstStream: stream.isReset = true
        case .windowUpdate: stream.receiveWindow += frame.increment ?? 0
        default: break
        }
    }

    /// Sends WINDOW_UPDATE for the received bytes, unless the script withholds the window.
    func replenish(_ stream: HTTP2Stream) {
        guard stream.unreturnedWindow > 0, !stream.withholdsWindow, !stream.isReset, !stream.isRequestComplete else {
            return
        }
        send(.windowUpdate(stream.id, by: stream.unreturnedWindow))
        stream.receiveWindow += stream.unreturnedWindow
        stream.unreturnedWindow = 0
    }
}
