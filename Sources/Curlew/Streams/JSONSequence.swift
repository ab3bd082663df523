// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// The values of a JSON text sequence (RFC 7464), as they arrive: each text stands between RS (0x1E) and LF.
///
/// A text is complete with the LF behind it, so that nobody waits for the next one. A number, true, false or null that no
/// white space follows may have been cut (§2.4), and is never given.
///
/// ```swift
/// for try await entry in api.stream("journal", using: .jsonSequence(Entry.self)) { print(entry) }
/// ```
public struct JSONSequence<Value: Decodable & Sendable>: StreamSerializer {
    private let format: JSON
    private let limit: ByteCount
    private let malformed: MalformedElements

    /// Reads a sequence.
    ///
    /// - Parameters:
    ///   - type: What each text holds.
    ///   - format: How the JSON is read.
    ///   - malformed: What happens to texts that cannot be decoded or were cut; an error unless said otherwise.
    ///   - limit: How many bytes a text may have, 1 MiB unless given; a longer one is `.bodyTooLarge`.
    public init(
        _ type: Value.Type = Value.self, _ format: JSON = JSON(), malformed: MalformedElements = .fail,
        limit: ByteCount = .mebibytes(1)
    ) {
        self.format = format
        self.malformed = malformed
        self.limit = limit
    }

    /// `application/json-seq` (RFC 7464 §4), and every type with the suffix `+json-seq` (RFC 8091).
    public var accepts: [MediaType] { sequenceTypes }

    /// What is kept between chunks: the start of a text.
    public struct State: Sendable {
        fileprivate let head: ResponseHead
        fileprivate var splitter: TextSequenceSplitter
    }

    /// Begins with a response.
    public func begin(_ head: ResponseHead) -> State { State(head: head, splitter: TextSequenceSplitter(limit: limit)) }

    /// The values of the texts that a chunk completes.
    ///
    /// - Throws: `NetworkError`: `.decodingFailed` or `.bodyTooLarge`.
    public func decode(_ chunk: ByteChunk?, _ state: inout State) throws -> [Value] {
        try elements(of: chunk, &state)
    }

    /// Adds the values of the texts that a chunk completes.
    ///
    /// - Throws: `NetworkError`: `.decodingFailed` or `.bodyTooLarge`.
    public func decode(_ chunk: ByteChunk?, _ state: inout State, into values: inout [Value]) throws {
        let head = state.head
        func take(_ text: Span<UInt8>, _ number: Int, _ fault: TextSequenceSplitter.Fault?) throws {
            do {
                if let fault { throw NetworkError.misframed("Element \(number) \(fault.reason).") }
                values.append(try format.value(of: text, at: "Element \(number)", head))
            } catch  where malformed == .skip {}
        }
        guard let chunk else { return try state.splitter.end(take) }
        try chunk.withSpan { try state.splitter.split($0, take) }
    }
}

private let sequenceTypes: [MediaType] = ["application/json-seq", "application/*+json-seq"]

/// What happens to the elements of a stream that make no sense.
public enum MalformedElements: Hashable, Sendable {
    /// The first one ends the stream with an error.
    case fail
    /// They are left out, and the stream goes on with the next one, as RFC 7464 §2.3 would have it.
    case skip
}

extension StreamSerializer {
    /// A JSON text sequence (RFC 7464).
    ///
    /// - Parameters:
    ///   - type: What each text holds.
    ///   - format: How the JSON is read.
    ///   - malformed: What happens to texts that cannot be decoded or were cut; an error unless said otherwise.
    ///   - limit: How many bytes a text may have; a longer one is `.bodyTooLarge`.
    public static func jsonSequence<Value: Decodable & Sendable>(
        _ type: Value.Type = Value.self, _ format: JSON = JSON(), malformed: MalformedElements = .fail,
        limit: ByteCount = .mebibytes(1)
    ) -> JSONSequence<Value> where Self == JSONSequence<Value> {
        JSONSequence(type, format, malformed: malformed, limit: limit)
    }
}
