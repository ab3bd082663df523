// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

// Bodies that are written element by element, each when the peer takes it, in the task that sends. An element that cannot
// be written ends the transfer: `.bodyFailed`, whose cause is a `NetworkError` of kind `encodingFailed` with its number.

extension Body {
    // MARK: NDJSON

    /// Values as NDJSON, one JSON text in each line, each sent as soon as it comes.
    ///
    /// ```swift
    /// try await api.post("_bulk", .ndjson(operations))
    /// ```
    ///
    /// `Content-Type` is `application/x-ndjson`: there is no registered name, and this is what servers that read it know.
    /// - Parameters:
    ///   - values: An asynchronous sequence.
    ///   - canReplay: Whether iterating it again yields the same values.
    ///   - format: What writes them; line breaks that it puts between tokens become spaces.
    public static func ndjson<S: AsyncSequence & Sendable>(
        _ values: S, canReplay: Bool = false, by format: JSON = JSON()
    ) -> Body where S.Element: Encodable {
        written(values, canReplay, .ndjson) { try format.line($0, $1) }
    }

    /// Values at hand as NDJSON, one JSON text in each line.
    ///
    /// `Content-Type` is `application/x-ndjson`. It can be sent again where the sequence is a collection.
    /// - Parameters:
    ///   - values: A sequence, such as an array.
    ///   - format: What writes them; line breaks that it puts between tokens become spaces.
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
    ///   - format: What writes the values.
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
    ///   - format: What writes the values.
    public static func jsonArray<S: Sequence & Sendable>(_ values: S, by format: JSON = JSON()) -> Body
    where S.Element: Encodable {
        written(values, .json, .array) { try format.member($0, $1) }
    }

    // MARK: JSON text sequences

    /// Values as a JSON text sequence (RFC 7464), `application/json-seq`, each sent as soon as it comes.
    ///
    /// - Parameters:
    ///   - values: An asynchronous sequence.
    ///   - canReplay: Whether iterating it again yields the same values.
    ///   - format: What writes them.
    public static func jsonSequence<S: AsyncSequence & Sendable>(
        _ values: S, canReplay: Bool = false, by format: JSON = JSON()
    ) -> Body where S.Element: Encodable {
        written(values, canReplay, .jsonSequence) { try format.record($0, $1) }
    }

    /// Values at hand as a JSON text sequence (RFC 7464), `application/json-seq`.
    ///
    /// It can be sent again where the sequence is a collection.
    /// - Parameters:
    ///   - values: A sequence, such as an array.
    ///   - format: What writes them.
    public static func jsonSequence<S: Sequence & Sendable>(_ values: S, by format: JSON = JSON()) -> Body
    where S.Element: Encodable {
        written(values, .jsonSequence) { try format.record($0, $1) }
    }

    // MARK: Frames

    /// Frames with the length of each before it, `application/octet-stream`, each sent as soon as it comes.
    ///
    /// - Parameters:
    ///   - frames: An asynchronous sequence of bytes, each element a frame.
    ///   - lengthPrefix: How their lengths are written.
    ///   - canReplay: Whether iterating it again yields the same frames.
    ///   - type: What they are.
    public static func frames<S: AsyncSequence & Sendable>(
        _ frames: S, lengthPrefix: LengthPrefix, canReplay: Bool = false, type: MediaType = .octetStream
    ) -> Body where S.Element: Sequence, S.Element.Element == UInt8 {
        written(frames, canReplay, type) { try lengthPrefix.frame($0, $1) }
    }

    /// Frames at hand with the length of each before it, `application/octet-stream`.
    ///
    /// They can be sent again where the sequence is a collection.
    /// - Parameters:
    ///   - frames: A sequence of bytes, each element a frame.
    ///   - lengthPrefix: How their lengths are written.
    ///   - type: What they are.
    public static func frames<S: Sequence & Sendable>(
        _ frames: S, lengthPrefix: LengthPrefix, type: MediaType = .octetStream
    ) -> Body where S.Element: Sequence, S.Element.Element == UInt8 {
        written(frames, type) { try lengthPrefix.frame($0, $1) }
    }

    // MARK: Any

    private static func written<S: AsyncSequence & Sendable>(
        _ elements: S, _ canReplay: Bool, _ type: MediaType, _ ends: WrittenEnds = WrittenEnds(),
        _ write: @escaping @Sendable (S.Element, Int) throws -> [UInt8]
    ) -> Body {
        stream(WrittenSequence(base: elements, ends: ends, write: write), canReplay: canReplay, type: type)
    }

    private static func written<S: Sequence & Sendable>(
        _ elements: S, _ type: MediaType, _ ends: WrittenEnds = WrittenEnds(),
        _ write: @escaping @Sendable (S.Element, Int) throws -> [UInt8]
    ) -> Body {
        stream(
            WrittenElements(base: elements, ends: ends, write: write), canReplay: elements is any Collection, type: type
        )
    }
}

extension WrittenEnds {
    /// The brackets of a JSON array.
    fileprivate static let array = WrittenEnds(start: [UInt8(ascii: "[")], end: [UInt8(ascii: "]")])
}

extension MediaType {
    /// `application/x-ndjson`, which nobody has registered.
    static let ndjson: MediaType = "application/x-ndjson"
    /// `application/json-seq` (RFC 7464 §4).
    static let jsonSequence: MediaType = "application/json-seq"
}
