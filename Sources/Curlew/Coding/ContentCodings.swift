// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
// Coding decodes the content codings of response bodies (RFC 9110 §8.4) in small steps, and compresses request bodies.
// It uses only bytes, fields and errors; Transfer and Session decide which bodies are decoded or compressed.

/// A content coding that Curlew can decode; the raw value is its name in `Content-Encoding`.
enum ContentCoding: String, CaseIterable {
    case gzip, deflate, br, zstd
    /// Brotli and zstd with a dictionary that the request names (RFC 9842 §4, §5).
    case dcb, dcz

    /// Whether the coding needs a dictionary.
    var needsDictionary: Bool { self == .dcb || self == .dcz }

    /// Finds the coding of a token in lower case (RFC 9110 §8.4.1); nil for an unknown token.
    init?(token: String) {
        // RFC 9110 §8.4.1.3: x-gzip is gzip.
        self.init(rawValue: token == "x-gzip" ? "gzip" : token)
    }

    /// The library that decodes the coding, and its package in Debian.
    var library: (soname: String, package: String) {
        switch self {
        case .gzip, .deflate: (ZlibLibrary.soname, "zlib1g")
        case .br, .dcb: (BrotliLibrary.soname, "libbrotli1")
        case .zstd, .dcz: (ZstandardLibrary.soname, "libzstd1")
        }
    }
}

/// The content codings whose libraries are installed on this machine.
struct ContentCodings: Sendable {
    var zlib: ZlibLibrary?
    var brotli: BrotliLibrary?
    var zstandard: ZstandardLibrary?

    static let system = ContentCodings(
        zlib: ZlibLibrary.system, brotli: BrotliLibrary.system, zstandard: ZstandardLibrary.system)

    /// The maximum number of nested codings: each coding multiplies the possible size of the body, and needs memory.
    private static let maximumNested = 2

    func has(_ coding: ContentCoding) -> Bool {
        switch coding {
        case .gzip, .deflate: zlib != nil
        case .br: brotli != nil
        case .zstd, .dcz: zstandard != nil
        case .dcb: brotli?.acceptsDictionaries ?? false
        }
    }

    /// The value of `Accept-Encoding` for requests without a dictionary (RFC 9110 §12.5.3); nil when no library is
    /// installed.
    var acceptEncoding: String? { accepting { !$0.needsDictionary } }

    /// The value of `Accept-Encoding` for requests with a dictionary (RFC 9842 §6.1); nil if no library can decode with
    /// one.
    var acceptEncodingWithDictionary: String? { has(.dcb) || has(.dcz) ? accepting { _ in true } : nil }

    private func accepting(_ isAccepted: (ContentCoding) -> Bool) -> String? {
        let names = ContentCoding.allCases.filter { has($0) && isAccepted($0) }.map(\.rawValue)
        return names.isEmpty ? nil : names.joined(by: ", ")
    }

    /// Returns the codings in a value of `Content-Encoding`, in the order they were applied, without "identity".
    static func names(in value: String) -> [String] {
        value.split(separator: ",")
            .map { $0.lowercased().filter { $0 != " " && $0 != "\t" } }
            .filter { !$0.isEmpty && $0 != "identity" }
    }

    /// Creates a decoder for codings that were applied in this order.
    ///
    /// - Parameter dictionary: The dictionary that the request named; nil without one.
    /// - Throws: `NetworkError` of kind `invalidResponse` for an unknown coding, and for a coding with a
    ///   dictionary if the request named no dictionary;
    ///   `unsupported` for a coding whose library is missing, with the name of its package, and for too many codings;
    ///   `resourceExhausted` without memory for a decoder.
    func decoder(
        for names: [String], with dictionary: CompressionDictionary? = nil
    ) throws(NetworkError) -> ContentDecoder {
        guard names.count <= Self.maximumNested else {
            throw NetworkError(
                .unsupported, phase: .decoding,
                "The response has \(names.count) nested content codings; at most \(Self.maximumNested) can be decoded.",
                hint: Self.way)
        }
        var stages: [ContentDecoder.Stage] = []
        for name in names.reversed() {
            guard let coding = ContentCoding(token: name) else {
                throw NetworkError(
                    .invalidResponse, phase: .decoding,
                    "The server used the content coding “\(name.shortened(to: 64).escapingControls)”, which Curlew does "
                        + "not support and did not request.", hint: Self.way)
            }
            if coding.needsDictionary, dictionary == nil {
                throw NetworkError(
                    .invalidResponse, phase: .decoding,
                    "The server used the content coding “\(coding.rawValue)”, but the request named no dictionary.",
                    hint: Self.way)
            }
            stages.append(ContentDecoder.Stage(coding, try codec(for: coding, dictionary)))
        }
        return ContentDecoder(stages)
    }

    /// The bytes before the digest of the dictionary (RFC 9842 §4).
    private static let dcb: [UInt8] = [0xFF, 0x44, 0x43, 0x42]
    /// The header of a frame that zstd skips, which has the digest (RFC 9842 §5).
    private static let dcz: [UInt8] = [0x5E, 0x2A, 0x4D, 0x18, 0x20, 0, 0, 0]

    private static let way = "Set options.decompression to .off to receive the encoded bytes."

    private func codec(
        for coding: ContentCoding, _ dictionary: CompressionDictionary?
    ) throws(NetworkError) -> any Codec {
        do throws(CodecFailure) {
            switch coding {
            case .gzip: if let zlib { return Inflater(zlib, .gzip) }
            case .deflate: if let zlib { return Inflater(zlib, .deflate) }
            case .br: if let brotli { return try BrotliDecoder(brotli) }
            case .zstd: if let zstandard { return try ZstandardDecoder(zstandard) }
            case .dcb:
                if let brotli, brotli.acceptsDictionaries, let dictionary {
                    return DictionaryDecoder(Self.dcb, dictionary, try BrotliDecoder(brotli, with: dictionary))
                }
            case .dcz:
                if let zstandard, let dictionary {
                    return DictionaryDecoder(Self.dcz, dictionary, try ZstandardDecoder(zstandard, with: dictionary))
                }
            }
        } catch {
            throw ContentDecoder.error(error, in: coding)
        }
        throw missing(coding)
    }

    private func missing(_ coding: ContentCoding) -> NetworkError {
        let (soname, package) = coding.library
        return NetworkError(
            .unsupported, phase: .decoding,
            "The response has the content coding “\(coding.rawValue)”, but \(soname) is not installed.",
            hint: "Install it (\(package) in Debian), or set options.decompression to .off.")
    }
}
