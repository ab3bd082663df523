// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Reads one request's body as its route specifies and keeps the recorded request up to date.
struct BodyReader {
    private(set) var request: RecordedRequest
    private let reading: BodyReading
    private let core: ServerCore
    private let id: Int
    private var decoder: BodyDecoder
    private var digest = SHA256Stream()
    private var stalls: ArraySlice<(offset: Int, gate: Gate)>

    init(_ head: RequestHead, _ request: RecordedRequest, reading: BodyReading, core: ServerCore, id: Int) {
        self.request = request
        self.reading = reading
        self.core = core
        self.id = id
        decoder = BodyDecoder(head.framing)
        stalls = reading.stalls[...]
    }

    /// Whether the connection can carry another request after this one.
    var leavesConnectionUsable: Bool {
        if case .afterResponse = reading.extent { return true }
        return request.isBodyComplete
    }

    mutating func readBeforeResponse(_ input: RequestInput) throws {
        switch reading.extent {
        case .whole: try read(input, upTo: .max)
        case .prefix(let bytes): try read(input, upTo: bytes)
        case .none: try stall(input.stream)
        case .afterResponse: break
        }
    }

    mutating func readAfterResponse(_ input: RequestInput) throws {
        if case .afterResponse = reading.extent { try read(input, upTo: .max) }
    }

    private mutating func read(_ input: RequestInput, upTo limit: Int) throws {
        defer { publish() }
        try stall(input.stream)
        try sendContinue(input)
        while request.bodyLength < limit {
            let nextStall = (stalls.first?.offset ?? .max) - request.bodyLength
            let step = min(limit - request.bodyLength, nextStall, reading.pace?.bytes ?? .max)
            guard let piece = try decoder.next(from: input, limit: step) else { break }
            take(piece)
            try stall(input.stream)
            if let pace = reading.pace, !decoder.isComplete { try input.stream.waiter.pause(pace.pause) }
        }
        request.trailers = decoder.trailers
        request.isBodyComplete = decoder.isComplete
    }

    private mutating func take(_ piece: ArraySlice<UInt8>) {
        digest.update(piece)
        request.bodyLength += piece.count
        request.body += piece.prefix(core.options.requestBodyLimit - request.body.count)
        core.update(id) { [length = request.bodyLength] in $0.bodyLength = length }
    }

    private mutating func stall(_ stream: any ByteStream) throws {
        while let next = stalls.first, next.offset <= request.bodyLength {
            stalls.removeFirst()
            try next.gate.pass(stream.waiter)
        }
    }

    private mutating func sendContinue(_ input: RequestInput) throws {
        guard request.expectsContinue, reading.sendsContinue, !decoder.isComplete, input.isEmpty else { return }
        try input.stream.send(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)[...])
        request.sentContinue = true
    }

    private mutating func publish() {
        request.bodySHA256 = digest.hex
        core.update(id) { [request] in $0 = request }
    }
}
