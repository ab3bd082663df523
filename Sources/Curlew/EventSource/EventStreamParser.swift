// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A parser of `text/event-stream` (HTML §9.2.6); the boundaries of the chunks do not affect the result.
struct EventStreamParser: Sendable {
    private let limit: ByteCount
    private var mark = ByteOrderMarkDetector()
    /// The start of the incomplete line.
    private var rest: [UInt8] = []
    /// Whether the last line ended with a CR at the end of a chunk; a LF that follows belongs to the same line end.
    private var skipsLineFeed = false

    // The current, incomplete event.
    private var data: [UInt8] = []
    private var hasData = false
    private var type = ""
    private var id: String
    private var retry: Duration?

    /// The last event ID string, which a reconnection sends.
    private(set) var lastEventID: String
    /// The last valid `retry` value.
    private(set) var reconnectionTime: Duration?

    /// - Parameters:
    ///   - limit: The maximum size of a line, and of an event's data.
    ///   - lastEventID: The last event ID string of the previous connection.
    init(limit: ByteCount, lastEventID: String = "") {
        self.limit = limit
        self.lastEventID = lastEventID
        id = lastEventID
    }

    /// Appends the events that the bytes complete.
    ///
    /// An event that is incomplete at the end of the stream is discarded.
    /// - Throws: `NetworkError` of kind `bodyTooLarge`.
    mutating func parse(_ bytes: Span<UInt8>, into events: inout [ServerSentEvent]) throws(NetworkError) {
        guard let (held, start) = mark.skip(in: bytes) else { return }
        if !held.isEmpty { try split(held.span, into: &events) }
        try split(bytes.extracting(start..<bytes.count), into: &events)
    }

    /// Splits bytes into lines, which end with CRLF, LF or CR.
    ///
    /// The method remembers the positions of the next CR and the next LF, so it searches each byte only once for each.
    private mutating func split(_ bytes: Span<UInt8>, into events: inout [ServerSentEvent]) throws(NetworkError) {
        let count = bytes.count
        if count == 0 { return }
        var start = skipsLineFeed && bytes[0] == Self.lineFeed ? 1 : 0
        skipsLineFeed = false
        var nextReturn = bytes.firstIndex(of: Self.carriageReturn, from: start) ?? count
        var nextFeed = bytes.firstIndex(of: Self.lineFeed, from: start) ?? count
        while true {
            let end = min(nextReturn, nextFeed)
            if end == count { break }
            try endLine(with: bytes.extracting(start..<end), into: &events)
            start = end + 1
            if end == nextReturn {
                skipsLineFeed = start == count
                if start < count, nextFeed == start { start += 1 }
                nextReturn = bytes.firstIndex(of: Self.carriageReturn, from: start) ?? count
            }
            if nextFeed < start { nextFeed = bytes.firstIndex(of: Self.lineFeed, from: start) ?? count }
        }
        bytes.extracting(start..<count).append(to: &rest)
        if rest.count > limit.bytes { throw .elementTooLarge("A line", limit) }
    }

    private mutating func endLine(
        with piece: Span<UInt8>, into events: inout [ServerSentEvent]
    ) throws(NetworkError) {
        if rest.isEmpty { return try read(piece, into: &events) }
        var line: [UInt8] = []
        swap(&line, &rest)
        piece.append(to: &line)
        try read(line.span, into: &events)
        line.removeAll(keepingCapacity: true)
        swap(&line, &rest)
    }

    private mutating func read(_ line: Span<UInt8>, into events: inout [ServerSentEvent]) throws(NetworkError) {
        if line.isEmpty { return dispatch(into: &events) }
        guard line.count <= limit.bytes else { throw .elementTooLarge("A line", limit) }
        // The name is packed into a number; all known names have at most five letters.
        var (name, length) = (UInt64(0), 0)
        while length < line.count, length < 6, line[length] != Self.colon {
            name = name << 8 | UInt64(line[length])
            length += 1
        }
        guard length < 6 else { return }
        var start = min(length + 1, line.count)
        if start < line.count, line[start] == Self.space { start += 1 }
        let value = line.extracting(start..<line.count)
        switch (length, name) {
        case (4, Self.dataName): try append(value)
        case (5, Self.eventName): type = value.text
        case (2, Self.idName):
            if value.count <= Self.maxIDLength, value.firstIndex(of: 0, from: 0) == nil { id = value.text }
        case (5, Self.retryName): if let time = Self.time(value) { (retry, reconnectionTime) = (time, time) }
        default: break
        }
    }

    private mutating func append(_ value: Span<UInt8>) throws(NetworkError) {
        if hasData { data.append(Self.lineFeed) }
        hasData = true
        value.append(to: &data)
        guard data.count <= limit.bytes else { throw .elementTooLarge("The data of an event", limit) }
    }

    private mutating func dispatch(into events: inout [ServerSentEvent]) {
        lastEventID = id
        if hasData {
            let data = data.span.text
            events.append(ServerSentEvent(type: type.isEmpty ? "message" : type, data: data, id: id, retry: retry))
            self.data.removeAll(keepingCapacity: true)
            hasData = false
        }
        type = ""
        retry = nil
    }

    /// Parses a number of milliseconds in ASCII digits; returns nil for other text, and for unusable times.
    private static func time(_ value: Span<UInt8>) -> Duration? {
        let text = value.text
        guard !text.isEmpty, text.utf8.allSatisfy(ByteSet.digits.contains), let number = Double(text) else {
            return nil
        }
        return Duration(untrustedSeconds: number / 1000)
    }

    /// The maximum size of an ID in bytes; the parser ignores longer ones, because each reconnection sends the ID in a
    /// field.
    private static let maxIDLength = 4096
    private static let lineFeed = UInt8(ascii: "\n")
    private static let carriageReturn = UInt8(ascii: "\r")
    private static let colon = UInt8(ascii: ":")
    private static let space = UInt8(ascii: " ")
    private static let dataName: UInt64 = 0x6461_7461
    private static let eventName: UInt64 = 0x65_7665_6E74
    private static let idName: UInt64 = 0x6964
    private static let retryName: UInt64 = 0x72_6574_7279
}
