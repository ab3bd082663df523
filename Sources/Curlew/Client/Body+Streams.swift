// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

// Bodies that are encoded element by element while the peer reads them. An element that cannot be encoded fails the
// transfer with `.bodyFailed`; its cause is a `NetworkError` of kind `encodingFailed` with the number of the element.

extension Body {
    // MARK: NDJSON

    /// Sends the values of an asynchronous sequence as NDJSON, one JSON text per line, each as it arrives.
    ///
    /// ```swift
    /// try await api.post("_bulk", .ndjson(operations))
    /// ```
    ///
    /// `Content-Type` is `application/x-ndjson`, the name that servers accept; no name is registered for NDJSON.
    /// - Parameters:
    ///   - values: An asynchronous sequence.
    ///   - canReplay: Whether iterating it again yields the same values.
    ///   - format: The encoder; line breaks between its tokens become spaces.
    public static func ndjson<S: AsyncSequence & Sendable>(
        _ values: S, canReplay: Bool = false, by format: JSON = JSON()
    ) -> Body where S.Element: Encodable {
        written(values, canReplay, .ndjson) { try format.line($0, $1) }
    }

    /// Sends the values of a sequence as NDJSON, one JSON text per line.
    ///
    /// `Content-Type` is `application/x-ndjson`. A retry or redirect can send the body again if the sequence is a
    /// collection.
    /// - Parameters:
    ///   - values: A sequence, such as an array.
    ///   - format: The encoder; line breaks between its tokens become spaces.
    public static func ndjson<S: Sequence & Sendable>(_ values: S, by format: JSON = JSON()) -> Body
    where S.Element: Encodable {
        written(values, .ndjson) { try format.line($0, $1) }
    }

    // MARK: JSON arrays

    /// Sends the values of an asynchronous sequence as one JSON array, each as it arrives, without buffering the array.
    ///
    /// ```swift
    /// try await api.post("import", .jsonArray(rows))
    /// ```
    ///
    /// `Content-Type` is `application/json`.
    /// - Parameters:
    ///   - values: An asynchronous sequence.
    ///   - canReplay: Whether iterating it again yields the same values.
    ///   - format: The encoder.
    public static func jsonArray<S: AsyncSequence & Sendable>(
        _ values: S, canReplay: Bool = false, by format: JSON = JSON()
    ) -> Body where S.Element: Encodable {
        written(values, canReplay, .json, .array) { try format.member($0, $1) }
    }

    /// Sends the values of a sequence as one JSON array, encoded a few at a time; `.json(values)` encodes all at once.
    ///
    /// A retry or redirect can send the body again if the sequence is a collection.
    /// - Parameters:
    ///   - values: A sequence, such as an array.
    ///   - format: The encoder.
    public static func jsonArray<S: Sequence & Sendable>(_ values: S, by format: JSON = JSON()) -> Body
    where S.Element: Encodable {
        written(values, .json, .array) { try format.member($0, $1) }
    }

    // MARK: JSON text sequences

    /// Sends the values of an asynchronous sequence as a JSON text sequence (RFC 7464), each as it arrives.
    ///
    /// `Content-Type` is `application/json-seq`.
    ///
    /// - Parameters:
    ///   - values: An asynchronous sequence.
    ///   - canReplay: Whether iterating it again yields the same values.
    ///   - format: The encoder.
    public static func jsonSequence<S: AsyncSequence & Sendable>(
        _ values: S, canReplay: Bool = false, by format: JSON = JSON()
    ) -> Body where S.Element: Encodable {
        written(values, canReplay, .jsonSequence) { try format.record($0, $1) }
    }

    /// Sends the values of a sequence as a JSON text sequence (RFC 7464).
    ///
    /// `Content-Type` is `application/json-seq`. A retry or redirect can send the body again if the sequence is a
    /// collection.
    /// - Parameters:
    ///   - values: A sequence, such as an array.
    ///   - format: The encoder.
    public static func jsonSequence<S: Sequence & Sendable>(_ values: S, by format: JSON = JSON()) -> Body
    where S.Element: Encodable {
        written(values, .jsonSequence) { try format.record($0, $1) }
    }

    // MARK: Frames

    /// Sends the frames of an asynchronous sequence as they arrive, each after its length.
    ///
    /// - Parameters:
    ///   - frames: An asynchronous sequence of bytes, each element a frame.
    ///   - lengthPrefix: The size and byte order of the lengths.
    ///   - canReplay: Whether iterating it again yields the same frames.
    ///   - type: The `Content-Type`; `application/octet-stream` by default.
    public static func frames<S: AsyncSequence & Sendable>(
        _ frames: S, lengthPrefix: Streams.LengthPrefix, canReplay: Bool = false, type: MediaType = .octetStream
    ) -> Body where S.Element: Sequence, S.Element.Element == UInt8 {
        written(frames, canReplay, type) { try lengthPrefix.frame($0, $1) }
    }

    /// Sends the frames of a sequence, each after its length.
    ///
    /// A retry or redirect can send the body again if the sequence is a collection.
    /// - Parameters:
    ///   - frames: A sequence of bytes, each element a frame.
    ///   - lengthPrefix: The size and byte order of the lengths.
    ///   - type: The `Content-Type`; `application/octet-stream` by default.
    public static func frames<S: Sequence & Sendable>(
        _ frames: S, lengthPrefix: Streams.LengthPrefix, type: MediaType = .octetStream
    ) -> Body where S.Element: Sequence, S.Element.Element == UInt8 {
        written(frames, type) { try lengthPrefix.frame($0, $1) }
    }

    // MARK: Any

    private static func written<S: AsyncSequence & Sendable>(
        _ elements: S, _ canReplay: Bool, _ type: MediaType, _ ends: BodyEnds = BodyEnds(),
        _ write: @escaping @Sendable (S.Element, Int) throws -> [UInt8]
    ) -> Body {
        stream(EncodedSequence(base: elements, ends: ends, write: write), canReplay: canReplay, type: type)
    }

    private static func written<S: Sequence & Sendable>(
        _ elements: S, _ type: MediaType, _ ends: BodyEnds = BodyEnds(),
        _ write: @escaping @Sendable (S.Element, Int) throws -> [UInt8]
    ) -> Body {
        stream(
            EncodedElements(base: elements, ends: ends, write: write), canReplay: elements is any Collection, type: type
        )
    }
}

extension BodyEnds {
    /// The brackets of a JSON array.
    fileprivate static let array = BodyEnds(start: [UInt8(ascii: "[")], end: [UInt8(ascii: "]")])
}

extension MediaType {
    /// `application/x-ndjson`; no name is registered for NDJSON.
    static let ndjson: MediaType = "application/x-ndjson"
    /// `application/json-seq` (RFC 7464 §4).
    static let jsonSequence: MediaType = "application/json-seq"
}
