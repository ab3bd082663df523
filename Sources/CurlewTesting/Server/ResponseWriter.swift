// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Writes one response to a connection, with its pace and its faults.
///
/// The writer throws `Disconnect` if the script or the client ends the connection.
struct ResponseWriter {
    /// Properties of the request and the connection that the response depends on.
    struct Context {
        let isHead: Bool
        let isHTTP10: Bool
        /// Whether the connection closes after the response for a reason outside the script.
        let mustClose: Bool
    }

    private let stream: any ByteStream
    private let response: MockResponse
    private let context: Context
    private let framing: MockResponse.Framing
    private let didSend: (Int) -> Void
    private var pending: [UInt8] = []

    /// The number of bytes that the writer collects before it sends them.
    private static let batch = 64 * 1024

    init(_ response: MockResponse, on stream: any ByteStream, context: Context, didSend: @escaping (Int) -> Void) {
        self.stream = stream
        self.response = response
        self.context = context
        self.didSend = didSend
        if case .chunked = response.framing, context.isHTTP10 {
            framing = .untilClose
        } else {
            framing = response.framing
        }
    }

    /// Whether the connection has to close after the response.
    var closes: Bool {
        if response.closes || context.mustClose { return true }
        if case .untilClose = framing { return true }
        return false
    }

    mutating func write() throws {
        try perform { $0 == .start }
        if case .raw = framing {
            try writeBody()
        } else {
            for item in response.informational {
                pending += Self.head(item.status, nil, item.fields)
            }
            try writeHead()
            if hasBody { try writeBody() }
        }
        try flush()
        try perform { $0 == .end }
    }

    // MARK: Head

    private mutating func writeHead() throws {
        let head = Self.head(response.status, response.reason, fields)
        var position = 0
        let points = Set(
            response.faults.compactMap { fault -> Int? in
                guard case .head(let offset) = fault.point else { return nil }
                return min(max(0, offset), head.count)
            })
        for point in points.sorted() {
            pending += head[position..<point]
            position = point
            try perform {
                guard case .head(let offset) = $0 else { return false }
                return min(max(0, offset), head.count) == point
            }
        }
        pending += head[position...]
    }

    private var hasBody: Bool {
        !context.isHead && response.status != 204 && response.status != 304
    }

    private var fields: [(name: String, value: String)] {
        var added: [(name: String, value: String)] = []
        switch framing {
        case .length where response.status != 204 && response.status != 304:
            added.append(("Content-Length", String(response.body.count)))
        case .chunked where response.status != 204:
            added.append(("Transfer-Encoding", "chunked"))
            if !response.trailers.isEmpty {
                added.append(("Trailer", response.trailers.map(\.name).joined(separator: ", ")))
            }
        default:
            break
        }
        if closes { added.append(("Connection", "close")) }
        let own = Set(response.fields.map { $0.name.lowercased() })
        return response.fields + added.filter { !own.contains($0.name.lowercased()) }
    }

    private static func head(
        _ status: Int, _ reason: String?, _ fields: [(name: String, value: String)]
    ) -> [UInt8] {
        var text = "HTTP/1.1 \(status) \(reason ?? reasonPhrases[status] ?? "")\r\n"
        for field in fields { text += "\(field.name): \(field.value)\r\n" }
        return Array((text + "\r\n").utf8)
    }

    // MARK: Body

    private mutating func writeBody() throws {
        let length = response.body.count
        var position = 0
        var leftInChunk = 0
        var points = bodyPoints(length)[...]
        while true {
            while points.first == position {
                points.removeFirst()
                try performBodyFaults(at: position, length)
            }
            if position == length { break }
            if leftInChunk == 0 { leftInChunk = beginChunk(length - position) }
            let pace = response.pace?.bytes ?? Self.batch
            let step = min(leftInChunk, pace, Self.batch, (points.first ?? length) - position)
            response.body.append(position..<(position + step), to: &pending)
            position += step
            leftInChunk -= step
            if leftInChunk == 0, case .chunked = framing { pending += [13, 10] }
            try pause(isLast: position == length)
        }
        if case .chunked = framing { endChunks() }
    }

    private mutating func pause(isLast: Bool) throws {
        if let pace = response.pace, !isLast {
            try flush()
            try stream.waiter.pause(pace.pause)
        } else if pending.count >= Self.batch {
            try flush()
        }
    }

    /// Begins a chunk and returns its size; without chunked framing, returns the size of the remaining body.
    private mutating func beginChunk(_ rest: Int) -> Int {
        guard case .chunked(let size) = framing else { return rest }
        let count = min(size, rest)
        pending += Array((String(count, radix: 16) + "\r\n").utf8)
        return count
    }

    private mutating func endChunks() {
        var text = "0\r\n"
        for field in response.trailers { text += "\(field.name): \(field.value)\r\n" }
        pending += Array((text + "\r\n").utf8)
    }

    private func bodyPoints(_ length: Int) -> [Int] {
        Set(
            response.faults.compactMap { fault -> Int? in
                guard case .body(let offset) = fault.point else { return nil }
                return min(max(0, offset), length)
            }
        ).sorted()
    }

    private mutating func performBodyFaults(at position: Int, _ length: Int) throws {
        try perform {
            guard case .body(let offset) = $0 else { return false }
            return min(max(0, offset), length) == position
        }
    }

    // MARK: Connection

    /// Sends all bytes before the point and then performs the faults at that point.
    private mutating func perform(at isPoint: (MockResponse.Point) -> Bool) throws {
        for (point, fault) in response.faults where isPoint(point) {
            try flush()
            try fault.perform(on: stream)
        }
    }

    private mutating func flush() throws {
        guard !pending.isEmpty else { return }
        // Send in small parts, so that the count stays correct while the client does not read.
        var rest = pending[...]
        while !rest.isEmpty {
            let part = rest.prefix(16 * 1024)
            try stream.send(part)
            didSend(part.count)
            rest = rest.dropFirst(part.count)
        }
        pending.removeAll(keepingCapacity: true)
    }
}

extension MockResponse.Body {
    var count: Int {
        switch self {
        case .bytes(let bytes): bytes.count
        case .pattern(let pattern): pattern.length
        }
    }

    func append(_ range: Range<Int>, to buffer: inout [UInt8]) {
        switch self {
        case .bytes(let bytes): buffer += bytes[range]
        case .pattern(let pattern): buffer += pattern.bytes(in: range)
        }
    }
}

extension SocketFault {
    /// Performs the fault; throws if the fault ends the connection.
    func perform(on stream: any ByteStream) throws {
        let socket = stream.waiter.socket
        switch self {
        case .stall(let gate):
            try gate.pass(stream.waiter)
        case .pause(let duration):
            try stream.waiter.pause(duration)
        case .send(let bytes):
            try stream.send(bytes[...])
        case .reset:
            // RST would discard the bytes that the kernel has not delivered yet.
            while Socket.unacknowledged(socket) > 0 { try stream.waiter.pause(.milliseconds(1)) }
            Socket.resetOnClose(socket)
            throw Disconnect.ended
        case .close:
            stream.announceEnd()
            throw Disconnect.ended
        case .cut:
            throw Disconnect.ended
        }
    }
}

private let reasonPhrases: [Int: String] = [
    100: "Continue", 101: "Switching Protocols", 102: "Processing", 103: "Early Hints",
    200: "OK", 201: "Created", 202: "Accepted", 204: "No Content", 205: "Reset Content", 206: "Partial Content",
    300: "Multiple Choices", 301: "Moved Permanently", 302: "Found", 303: "See Other", 304: "Not Modified",
    307: "Temporary Redirect", 308: "Permanent Redirect",
    400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
    406: "Not Acceptable", 407: "Proxy Authentication Required", 408: "Request Timeout", 409: "Conflict", 410: "Gone",
    411: "Length Required", 412: "Precondition Failed", 413: "Content Too Large", 414: "URI Too Long",
    415: "Unsupported Media Type", 416: "Range Not Satisfiable", 417: "Expectation Failed", 421: "Misdirected Request",
    422: "Unprocessable Content", 425: "Too Early", 426: "Upgrade Required", 428: "Precondition Required",
    429: "Too Many Requests", 431: "Request Header Fields Too Large",
    500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable",
    504: "Gateway Timeout", 505: "HTTP Version Not Supported", 511: "Network Authentication Required",
]
