// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// The values of a body that holds one JSON text in each line, as they arrive: NDJSON, JSON Lines.
///
/// Lines of white space alone are skipped. The first line that cannot be decoded ends the stream; the error names its
/// number, from 1, and the place in it, and has its start in `body`.
///
/// ```swift
/// for try await user in api.stream("users", using: .ndjson(User.self)) { print(user.name) }
/// ```
public struct NDJSON<Value: Decodable & Sendable>: StreamSerializer {
    private let format: JSON
    private let limit: ByteCount

    /// Reads JSON line by line.
    ///
    /// - Parameters:
    ///   - type: What each line holds.
    ///   - format: How the JSON is read.
    ///   - limit: How many bytes a line may have, 1 MiB unless given; a longer one is `.bodyTooLarge`.
    public init(_ type: Value.Type = Value.self, _ format: JSON = JSON(), limit: ByteCount = .mebibytes(1)) {
        self.format = format
        self.limit = limit
    }

    /// The names that NDJSON and JSON Lines have, none of which is registered, and what servers call it instead.
    public var accepts: [MediaType] { lineTypes }

    /// What is kept between chunks: the start of a line.
    public struct State: Sendable {
        fileprivate let head: ResponseHead
        fileprivate var mark = StartMark()
        fileprivate var splitter: LineSplitter
    }

    /// Begins with a response.
    public func begin(_ head: ResponseHead) -> State { State(head: head, splitter: LineSplitter(limit: limit)) }

    /// The values of the lines that a chunk completes.
    ///
    /// - Throws: `NetworkError`: `.decodingFailed` or `.bodyTooLarge`.
    public func decode(_ chunk: ByteChunk?, _ state: inout State) throws -> [Value] {
        try elements(of: chunk, &state)
    }

    /// Adds the values of the lines that a chunk completes.
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

private let lineTypes: [MediaType] = [
    "application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines",
    "application/stream+json", "application/json;q=0.5", "application/x-jsonl;q=0.1", "application/json-lines;q=0.1",
    "application/jsonlines;q=0.1", "text/x-ndjson;q=0.1", "text/plain;q=0.1",
]

extension Span<UInt8> {
    /// Whether there is nothing but white space.
    var isBlank: Bool {
        for index in indices where !self[index].isBlank { return false }
        return true
    }
}

extension StreamSerializer {
    /// One JSON text in each line: NDJSON, JSON Lines.
    ///
    /// - Parameters:
    ///   - type: What each line holds.
    ///   - format: How the JSON is read.
    ///   - limit: How many bytes a line may have; a longer one is `.bodyTooLarge`.
    public static func ndjson<Value: Decodable & Sendable>(
        _ type: Value.Type = Value.self, _ format: JSON = JSON(), limit: ByteCount = .mebibytes(1)
    ) -> NDJSON<Value> where Self == NDJSON<Value> {
        NDJSON(type, format, limit: limit)
    }
}
