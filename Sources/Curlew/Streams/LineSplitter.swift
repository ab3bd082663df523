// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A splitter of bytes into lines, which end with LF or CRLF.
///
/// The splitter searches each byte once: for an incomplete line, it searches only the new bytes.
struct LineSplitter: Sendable {
    private let limit: ByteCount
    /// The start of the incomplete line.
    private var rest: [UInt8] = []
    /// The number of complete lines.
    private(set) var count = 0

    /// - Parameter limit: The maximum size of a line, without its line end.
    init(limit: ByteCount) { self.limit = limit }

    /// Passes the lines that the bytes complete to the closure, without their line ends.
    /// - Throws: `NetworkError` of kind `bodyTooLarge` for a line beyond the limit, or the error of the closure.
    mutating func split(_ bytes: Span<UInt8>, _ handler: (Span<UInt8>, _ number: Int) throws -> Void) throws {
        var start = 0
        while let end = bytes.firstIndex(of: UInt8(ascii: "\n"), from: start) {
            count += 1
            let piece = bytes.extracting(start..<end)
            if rest.isEmpty {
                try emit(piece, handler)
            } else {
                var line: [UInt8] = []
                swap(&line, &rest)
                piece.append(to: &line)
                try emit(line.span, handler)
                line.removeAll(keepingCapacity: true)
                swap(&line, &rest)
            }
            start = end + 1
        }
        bytes.extracting(start..<bytes.count).append(to: &rest)
        // The last byte may be the CR of the line end, which does not count.
        if rest.count - (rest.last == UInt8(ascii: "\r") ? 1 : 0) > limit.bytes { throw tooLong(count + 1) }
    }

    /// Passes the last line to the closure, unless the stream ended with a line end.
    /// - Throws: The error of the closure.
    mutating func end(_ handler: (Span<UInt8>, _ number: Int) throws -> Void) throws {
        if rest.isEmpty { return }
        count += 1
        try emit(rest.span, handler)
        rest = []
    }

    private func emit(_ line: Span<UInt8>, _ handler: (Span<UInt8>, _ number: Int) throws -> Void) throws {
        let length = line.count
        let end = length > 0 && line[length - 1] == UInt8(ascii: "\r") ? length - 1 : length
        guard end <= limit.bytes else { throw tooLong(count) }
        try handler(line.extracting(0..<end), count)
    }

    private func tooLong(_ number: Int) -> NetworkError { .elementTooLarge("Line \(number)", limit) }
}

extension NetworkError {
    /// Creates an error for an element of a stream that exceeds its decoder's limit.
    static func elementTooLarge(_ what: String, _ limit: ByteCount) -> NetworkError {
        NetworkError(
            .bodyTooLarge, phase: .decoding, "\(what) of the stream has more than \(limit).",
            hint: "Raise the decoder's limit if the server may send elements of this size.")
    }

    /// Creates an error for a stream with invalid framing.
    static func malformedFraming(_ message: String, hint: String? = nil) -> NetworkError {
        NetworkError(.decodingFailed, phase: .decoding, message, hint: hint)
    }
}
