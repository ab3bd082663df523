// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Cuts bytes into lines, which end with LF or CRLF.
///
/// Each byte is looked at once: of a line that is not complete only what is new is searched.
struct LineSplitter: Sendable {
    private let limit: ByteCount
    /// The start of the line that is not complete.
    private var rest: [UInt8] = []
    /// How many lines have ended.
    private(set) var count = 0

    /// - Parameter limit: How many bytes a line may have, its end aside.
    init(limit: ByteCount) { self.limit = limit }

    /// Gives the lines that the bytes complete, without their ends.
    /// - Throws: `NetworkError` of kind `bodyTooLarge` for a line beyond the limit, or what the closure throws.
    mutating func split(_ bytes: Span<UInt8>, _ take: (Span<UInt8>, _ number: Int) throws -> Void) throws {
        var start = 0
        while let end = bytes.firstIndex(of: UInt8(ascii: "\n"), from: start) {
            count += 1
            let piece = bytes.extracting(start..<end)
            if rest.isEmpty {
                try give(piece, take)
            } else {
                var line: [UInt8] = []
                swap(&line, &rest)
                piece.append(to: &line)
                try give(line.span, take)
                line.removeAll(keepingCapacity: true)
                swap(&line, &rest)
            }
            start = end + 1
        }
        bytes.extracting(start..<bytes.count).append(to: &rest)
        // Its last byte may be the CR of its end.
        if rest.count - (rest.last == UInt8(ascii: "\r") ? 1 : 0) > limit.bytes { throw tooLong(count + 1) }
    }

    /// Gives the last line, unless it is empty: what ends with a line's end has no line behind it.
    /// - Throws: What the closure throws.
    mutating func end(_ take: (Span<UInt8>, _ number: Int) throws -> Void) throws {
        if rest.isEmpty { return }
        count += 1
        try give(rest.span, take)
        rest = []
    }

    private func give(_ line: Span<UInt8>, _ take: (Span<UInt8>, _ number: Int) throws -> Void) throws {
        let length = line.count
        let end = length > 0 && line[length - 1] == UInt8(ascii: "\r") ? length - 1 : length
        guard end <= limit.bytes else { throw tooLong(count) }
        try take(line.extracting(0..<end), count)
    }

    private func tooLong(_ number: Int) -> NetworkError { .elementTooLarge("Line \(number)", limit) }
}

extension NetworkError {
    /// An element of a stream that is larger than its decoder takes.
    static func elementTooLarge(_ what: String, _ limit: ByteCount) -> NetworkError {
        NetworkError(
            .bodyTooLarge, phase: .decoding, "\(what) of the stream has more than \(limit).",
            hint: "Raise the decoder's limit if the server is right to send it.")
    }

    /// A stream that is not framed as its decoder wants it.
    static func misframed(_ message: String, hint: String? = nil) -> NetworkError {
        NetworkError(.decodingFailed, phase: .decoding, message, hint: hint)
    }
}
