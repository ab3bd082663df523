// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

extension Streams {
    /// A serializer that reads a body with one JSON text per line as it arrives: NDJSON, JSON Lines.
    ///
    /// Lines that contain only white space are skipped. The first invalid line ends the stream. The error names the
    /// line's number, from 1, and the position in the line, and its `body` has the start of the line.
    ///
    /// ```swift
    /// for try await user in api.stream("users", using: .ndjson(User.self)) { print(user.name) }
    /// ```
    public struct NDJSON<Value: Decodable & Sendable>: StreamSerializer {
        private let format: JSON
        private let limit: ByteCount

        /// Creates a serializer of JSON lines.
        ///
        /// - Parameters:
        ///   - type: The type of each line's value.
        ///   - format: The JSON decoder.
        ///   - limit: The maximum size of a line, 1 MiB by default; a longer line is `.bodyTooLarge`.
        public init(_ type: Value.Type = Value.self, _ format: JSON = JSON(), limit: ByteCount = .mebibytes(1)) {
            self.format = format
            self.limit = limit
        }

        /// The media types in use for NDJSON and JSON Lines, which are not registered, and other types that servers
        /// send for them.
        public var accepts: [MediaType] { lineTypes }

        /// The state between chunks: the start of a line.
        public struct State: Sendable {
            fileprivate let head: ResponseHead
            fileprivate var mark = ByteOrderMarkDetector()
            fileprivate var splitter: LineSplitter
        }

        /// Creates the state for a response.
        public func begin(_ head: ResponseHead) -> State { State(head: head, splitter: LineSplitter(limit: limit)) }

        /// Returns the values of the lines that a chunk completes.
        ///
        /// - Throws: `NetworkError`: `.decodingFailed` or `.bodyTooLarge`.
        public func decode(_ chunk: ByteChunk?, _ state: inout State) throws -> [Value] {
            try elements(of: chunk, &state)
        }

        /// Appends the values of the lines that a chunk completes.
        ///
        /// - Throws: `NetworkError`: `.decodingFailed` or `.bodyTooLarge`.
        public func decode(_ chunk: ByteChunk?, _ state: inout State, into values: inout [Value]) throws {
            let head = state.head
            func take(_ line: Span<UInt8>, _ number: Int) throws {
                if line.isBlank { return }
                values.append(try format.value(of: line, at: "Line \(number)", head))
            }
            guard let chunk else {
                let held = state.mark.end()
                try state.splitter.split(held.span, take)
                return try state.splitter.end(take)
            }
            try chunk.withSpan { bytes in
                guard let (held, start) = state.mark.skip(in: bytes) else { return }
                if !held.isEmpty { try state.splitter.split(held.span, take) }
                try state.splitter.split(bytes.extracting(start..<bytes.count), take)
            }
        }
    }
}

private let lineTypes: [MediaType] = [
    "application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines",
    "application/stream+json", "application/json;q=0.5", "application/x-jsonl;q=0.1", "application/json-lines;q=0.1",
    "application/jsonlines;q=0.1", "text/x-ndjson;q=0.1", "text/plain;q=0.1",
]

extension Span<UInt8> {
    /// Whether all bytes are white space.
    var isBlank: Bool {
        for index in indices where !self[index].isBlank { return false }
        return true
    }
}

extension StreamSerializer {
    /// One JSON text per line: NDJSON, JSON Lines.
    ///
    /// - Parameters:
    ///   - type: The type of each line's value.
    ///   - format: The JSON decoder.
    ///   - limit: The maximum size of a line; a longer line is `.bodyTooLarge`.
    public static func ndjson<Value: Decodable & Sendable>(
        _ type: Value.Type = Value.self, _ format: JSON = JSON(), limit: ByteCount = .mebibytes(1)
    ) -> Streams.NDJSON<Value> where Self == Streams.NDJSON<Value> {
        Streams.NDJSON(type, format, limit: limit)
    }
}
