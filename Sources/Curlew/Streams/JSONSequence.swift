// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

extension Streams {
    /// A serializer that reads a JSON text sequence (RFC 7464) as it arrives: each text is between RS (0x1E) and LF.
    ///
    /// A text is complete at the LF after it, so the serializer returns it without waiting for the next one. A number,
    /// true, false or null without white space after it may have been cut (§2.4) and is never returned.
    ///
    /// ```swift
    /// for try await entry in api.stream("journal", using: .jsonSequence(Entry.self)) { print(entry) }
    /// ```
    public struct JSONSequence<Value: Decodable & Sendable>: StreamSerializer {
        private let format: JSON
        private let limit: ByteCount
        private let malformed: Streams.MalformedElements

        /// Creates a serializer of JSON text sequences.
        ///
        /// - Parameters:
        ///   - type: The type of each text's value.
        ///   - format: The JSON decoder.
        ///   - malformed: The treatment of texts that cannot be decoded or were cut; an error by default.
        ///   - limit: The maximum size of a text, 1 MiB by default; a longer text is `.bodyTooLarge`.
        public init(
            _ type: Value.Type = Value.self, _ format: JSON = JSON(), malformed: Streams.MalformedElements = .fail,
            limit: ByteCount = .mebibytes(1)
        ) {
            self.format = format
            self.malformed = malformed
            self.limit = limit
        }

        /// `application/json-seq` (RFC 7464 §4), and every type with the suffix `+json-seq` (RFC 8091).
        public var accepts: [MediaType] { sequenceTypes }

        /// The state between chunks: the start of a text.
        public struct State: Sendable {
            fileprivate let head: ResponseHead
            fileprivate var splitter: TextSequenceSplitter
        }

        /// Creates the state for a response.
        public func begin(_ head: ResponseHead) -> State {
            State(head: head, splitter: TextSequenceSplitter(limit: limit))
        }

        /// Returns the values of the texts that a chunk completes.
        ///
        /// - Throws: `NetworkError`: `.decodingFailed` or `.bodyTooLarge`.
        public func decode(_ chunk: ByteChunk?, _ state: inout State) throws -> [Value] {
            try elements(of: chunk, &state)
        }

        /// Appends the values of the texts that a chunk completes.
        ///
        /// - Throws: `NetworkError`: `.decodingFailed` or `.bodyTooLarge`.
        public func decode(_ chunk: ByteChunk?, _ state: inout State, into values: inout [Value]) throws {
            let head = state.head
            func take(_ text: Span<UInt8>, _ number: Int, _ fault: TextSequenceSplitter.Fault?) throws {
                do {
                    if let fault { throw NetworkError.malformedFraming("Element \(number) \(fault.reason).") }
                    values.append(try format.value(of: text, at: "Element \(number)", head))
                } catch  where malformed == .skip {}
            }
            guard let chunk else { return try state.splitter.end(take) }
            try chunk.withSpan { try state.splitter.split($0, take) }
        }
    }
}

private let sequenceTypes: [MediaType] = ["application/json-seq", "application/*+json-seq"]

extension Streams {
    /// The treatment of a stream's malformed elements.
    public enum MalformedElements: Hashable, Sendable {
        /// The first malformed element ends the stream with an error.
        case fail
        /// Malformed elements are omitted, and the stream continues with the next element, as RFC 7464 §2.3 recommends.
        case skip
    }
}

extension StreamSerializer {
    /// A JSON text sequence (RFC 7464).
    ///
    /// - Parameters:
    ///   - type: The type of each text's value.
    ///   - format: The JSON decoder.
    ///   - malformed: The treatment of texts that cannot be decoded or were cut; an error by default.
    ///   - limit: The maximum size of a text; a longer text is `.bodyTooLarge`.
    public static func jsonSequence<Value: Decodable & Sendable>(
        _ type: Value.Type = Value.self, _ format: JSON = JSON(), malformed: Streams.MalformedElements = .fail,
        limit: ByteCount = .mebibytes(1)
    ) -> Streams.JSONSequence<Value> where Self == Streams.JSONSequence<Value> {
        Streams.JSONSequence(type, format, malformed: malformed, limit: limit)
    }
}
