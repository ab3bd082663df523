// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
// Coding decodes the content codings of response bodies (RFC 9110 §8.4) in small steps, and compresses request bodies.
// It uses only bytes, fields and errors; Transfer and Session decide which bodies are decoded or compressed.

/// A content coding that Curlew can decode; the raw value is its name in `Content-Encoding`.
enum ContentCoding: String, CaseIterable {
    case gzip, deflate, br, zstd

    /// Finds the coding of a token in lower case (RFC 9110 §8.4.1); nil for an unknown token.
    init?(token: String) {
        // RFC 9110 §8.4.1.3: x-gzip is gzip.
        self.init(rawValue: token == "x-gzip" ? "gzip" : token)
    }

    /// The library that decodes the coding, and its package in Debian.
    var library: (soname: String, package: String) {
        switch self {
        case .gzip, .deflate: (ZlibLibrary.soname, "zlib1g")
        case .br: (BrotliLibrary.soname, "libbrotli1")
        case .zstd: (ZstandardLibrary.soname, "libzstd1")
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
        case .zstd: zstandard != nil
        }
    }

    /// The value of `Accept-Encoding` (RFC 9110 §12.5.3); nil when no library is installed.
    var acceptEncoding: String? {
        let names = ContentCoding.allCases.filter(has).map(\.rawValue)
        return names.isEmpty ? nil : names.joined(by: ", ")
    }

    /// Returns the codings in a value of `Content-Encoding`, in the order they were applied, without "identity".
    static func names(in value: String) -> [String] {
        value.split(separator: ",")
            .map { $0.lowercased().filter { $0 != " " && $0 != "\t" } }
            .filter { !$0.isEmpty && $0 != "identity" }
    }

    /// Creates a decoder for codings that were applied in this order.
    /// - Throws: `NetworkError` of kind `invalidResponse` for an unknown coding, which Curlew never requests;
    ///   `unsupported` for a coding whose library is missing, with the name of its package, and for too many codings;
    ///   `resourceExhausted` without memory for a decoder.
    func decoder(for names: [String]) throws(NetworkError) -> ContentDecoder {
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
            stages.append(ContentDecoder.Stage(coding, try codec(for: coding)))
        }
        return ContentDecoder(stages)
    }

    private static let way = "Set options.decompression to .off to receive the encoded bytes."

    private func codec(for coding: ContentCoding) throws(NetworkError) -> any Codec {
        do throws(CodecFailure) {
            switch coding {
            case .gzip: if let zlib { return Inflater(zlib, .gzip) }
            case .deflate: if let zlib { return Inflater(zlib, .deflate) }
            case .br: if let brotli { return try BrotliDecoder(brotli) }
            case .zstd: if let zstandard { return try ZstandardDecoder(zstandard) }
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
