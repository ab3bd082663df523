// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension Request {
    /// Whether compressed responses are requested and decoded (RFC 9110 §8.4).
    ///
    /// ```swift
    /// request.options.decompression = .off     // the archive as it is stored
    /// ```
    public enum Decompression: String, Sendable, Hashable, Codable, CaseIterable {
        /// The request offers gzip, deflate, br and zstd, as far as their libraries are installed, and the response is
        /// decoded.
        ///
        /// The head of a decoded response has no `Content-Encoding` and no `Content-Length`. At most two nested codings
        /// are decoded; more codings are an error of kind `unsupported`.
        ///
        /// If the request sets `Accept-Encoding`, the field stays unchanged. With a `Range` it is "identity", since a
        /// part of a compressed body is useless. Partial responses (206) are never decoded.
        case automatic
        /// The request offers no coding, and the response is not decoded: head and bytes are delivered as received.
        case off
    }
}

extension Request {
    /// Whether and how request bodies are compressed (RFC 9110 §8.4).
    ///
    /// Use it only for servers that accept compressed requests; most others respond with 415. The body of a request
    /// that sets `Content-Encoding` is not compressed. Bytes in memory are compressed at once, by the caller that
    /// creates the transfer, which takes time for many megabytes; streams and files are compressed in the task or
    /// thread that reads them.
    ///
    /// ```swift
    /// request.options.compression = .gzip(above: .kibibytes(16))
    /// ```
    public struct Compression: Sendable, Hashable {
        /// The size up to which a body of known size is sent uncompressed; nil for no compression at all.
        public let threshold: ByteCount?

        private init(threshold: ByteCount?) { self.threshold = threshold }

        /// Bodies are sent uncompressed.
        public static let off = Request.Compression(threshold: nil)

        /// Bodies are compressed with gzip (RFC 1952), in the task or thread that produces them.
        ///
        /// Bytes in memory and text keep a `Content-Length`, and are sent uncompressed when that is shorter. Files,
        /// descriptors and streams are sent in chunks, since their compressed length is not known in advance. A
        /// declared length counts the bytes of the source.
        /// - Parameter threshold: The size up to which a body of known size is sent uncompressed; 1 KiB by default.
        public static func gzip(above threshold: ByteCount = .kibibytes(1)) -> Request.Compression {
            Request.Compression(threshold: threshold)
        }
    }
}

extension Request.Compression: Codable {
    private enum CodingKeys: CodingKey {
        case gzipAbove
    }

    /// Decodes an object whose member `gzipAbove` is the threshold in bytes; without the member, no body is compressed.
    /// - Throws: `DecodingError` for another value and for a negative threshold.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        threshold = try container.decodeIfPresent(ByteCount.self, forKey: .gzipAbove)
        if let threshold, threshold < 0 {
            throw DecodingError.dataCorruptedError(
                forKey: .gzipAbove, in: container, debugDescription: "It must not be negative.")
        }
    }

    /// Encodes an object that `init(from:)` reads.
    /// - Throws: Any error of the encoder.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encodeIfPresent(threshold, forKey: .gzipAbove)
    }
}
