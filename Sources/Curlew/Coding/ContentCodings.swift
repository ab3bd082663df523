// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
// Coding is what a body goes through between the wire and its reader: content codings (RFC 9110 §8.4) undone in small
// steps, and request bodies compressed. It knows bytes, fields and errors; Transfer and Session decide what goes through.

/// A way of compressing bodies that we can undo, by its name in `Content-Encoding`.
enum ContentCoding: String, CaseIterable {
    case gzip, deflate, br, zstd

    /// The coding that a token in lower case names (RFC 9110 §8.4.1); nil for unknown ones.
    init?(token: String) {
        // RFC 9110 §8.4.1.3: x-gzip is gzip.
        self.init(rawValue: token == "x-gzip" ? "gzip" : token)
    }

    /// The library that undoes it, and Debian's package of it.
    var library: (soname: String, package: String) {
        switch self {
        case .gzip, .deflate: (ZlibLibrary.soname, "zlib1g")
        case .br: (BrotliLibrary.soname, "libbrotli1")
        case .zstd: (ZstandardLibrary.soname, "libzstd1")
        }
    }
}

/// The content codings this machine has the libraries for.
struct ContentCodings: Sendable {
    var zlib: ZlibLibrary?
    var brotli: BrotliLibrary?
    var zstandard: ZstandardLibrary?

    static let system = ContentCodings(
        zlib: ZlibLibrary.system, brotli: BrotliLibrary.system, zstandard: ZstandardLibrary.system)

    /// Each layer multiplies what a few bytes can become, and needs memory.
    private static let mostStacked = 2

    func has(_ coding: ContentCoding) -> Bool {
        switch coding {
        case .gzip, .deflate: zlib != nil
        case .br: brotli != nil
        case .zstd: zstandard != nil
        }
    }

    /// The value of `Accept-Encoding` (RFC 9110 §12.5.3); nil when there is nothing to offer.
    var acceptEncoding: String? {
        let names = ContentCoding.allCases.filter(has).map(\.rawValue)
        return names.isEmpty ? nil : names.joined(separator: ", ")
    }

    /// The codings in a value of `Content-Encoding`, in the order they were applied; identity is left out.
    static func names(in value: String) -> [String] {
        value.split(separator: ",")
            .map { $0.lowercased().filter { $0 != " " && $0 != "\t" } }
            .filter { !$0.isEmpty && $0 != "identity" }
    }

    /// What undoes codings applied in this order.
    /// - Throws: `NetworkError` of kind `invalidResponse` for a coding that Curlew does not know and so never asked for;
    ///   `unsupported` for one whose library is missing, naming its package, and for too many.
    func decoder(for names: [String]) throws(NetworkError) -> ContentDecoder {
        guard names.count <= Self.mostStacked else {
            throw NetworkError(
                .unsupported, phase: .decoding,
                "The response has \(names.count) content codings, one in another; at most \(Self.mostStacked) are undone.",
                hint: Self.way)
        }
        var stages: [ContentDecoder.Stage] = []
        for name in names.reversed() {
            guard let coding = ContentCoding(token: name) else {
                throw NetworkError(
                    .invalidResponse, phase: .decoding,
                    "The server used the content coding “\(name.shortened(to: 64).escapingControls)”, which Curlew does "
                        + "not know and did not ask for.", hint: Self.way)
            }
            stages.append(ContentDecoder.Stage(coding, try codec(for: coding)))
        }
        return ContentDecoder(stages)
    }

    private static let way = "Set options.decompression to .off to get the bytes as they came."

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
            "The response is in the content coding “\(coding.rawValue)”, and \(soname) is not installed.",
            hint: "Install it (\(package) in Debian), or set options.decompression to .off.")
    }
}
