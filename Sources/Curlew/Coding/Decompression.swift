// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// What happens to responses that are compressed (RFC 9110 §8.4).
///
/// ```swift
/// request.options.decompression = .off     // the archive as it is stored
/// ```
public enum Decompression: String, Sendable, Hashable, Codable, CaseIterable {
    /// gzip, deflate, br and zstd are offered as far as their libraries are installed, and undone; the response's head
    /// is handed over without `Content-Encoding` and `Content-Length`. At most two codings, one in another, are undone;
    /// more are an error of kind `unsupported`.
    ///
    /// `Accept-Encoding` is left alone when the request sets it, and is "identity" beside a `Range`, since part of a
    /// compressed body is of no use. Partial responses (206) are never decoded.
    case automatic
    /// Nothing is offered and nothing undone: head and bytes are handed over as they came.
    case off
}

/// Whether and how request bodies are compressed (RFC 9110 §8.4).
///
/// A server has to be known to understand it; most answer 415 otherwise. Bodies whose request sets `Content-Encoding`
/// itself are left alone. Bytes at hand are compressed at once, by whoever makes the transfer, which for many megabytes
/// takes its time; streams and files are compressed where they are read.
///
/// ```swift
/// request.options.compression = .gzip(above: .kibibytes(16))
/// ```
public struct RequestCompression: Sendable, Hashable {
    /// Bodies known to have no more bytes than this are sent as they are; nil compresses none.
    public let threshold: ByteCount?

    private init(threshold: ByteCount?) { self.threshold = threshold }

    /// Bodies are sent as they are.
    public static let off = RequestCompression(threshold: nil)

    /// Bodies are compressed with gzip (RFC 1952), in the task or thread that produces them.
    ///
    /// Bytes at hand and text keep a `Content-Length`, and go as they are when that is shorter; files, descriptors and
    /// streams are sent in chunks, since their compressed length is not known before. A declared length counts the
    /// bytes of the source.
    /// - Parameter threshold: Bodies known to have no more bytes than this are sent as they are; 1 KiB by default.
    public static func gzip(above threshold: ByteCount = .kibibytes(1)) -> RequestCompression {
        RequestCompression(threshold: threshold)
    }
}

extension RequestCompression: Codable {
    private enum CodingKeys: CodingKey {
        case gzipAbove
    }

    /// Decodes an object: `gzipAbove` is the threshold in bytes, and without it nothing is compressed.
    /// - Throws: `DecodingError` when it is something else, or negative.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        threshold = try container.decodeIfPresent(ByteCount.self, forKey: .gzipAbove)
        if let threshold, threshold < 0 {
            throw DecodingError.dataCorruptedError(
                forKey: .gzipAbove, in: container, debugDescription: "It must not be negative.")
        }
    }

    /// Encodes an object that `init(from:)` reads.
    /// - Throws: What the encoder throws.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encodeIfPresent(threshold, forKey: .gzipAbove)
    }
}
