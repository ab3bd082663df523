// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

/// Bodies in content codings, compressed by Curlew where it can, and stored as bytes otherwise.
enum Encoded {
    static let text = Array(
        (0..<12).map { "\($0): the quick brown curlew wades over the lazy mudflat\n" }.joined().utf8)

    /// `text`, compressed by brotli 1.0.9, quality 11, window 22 (BrotliEncoderCompress).
    static let br = bytes(
        "1b8902208dd45eb539908ddc606c5ecad49375253dd70f8dc2cc401c1c804de58099051266a1061eb2f4d24d20880a7f343283e8d7a9"
            + "f0c5d2bc61d1827fc8b1b4ef85022f6f1f5fbefdf8f5b7c15e0c00")
    /// An empty body, compressed by brotli 1.0.9; `brBomb` is 64 MiB of zeros.
    static let emptyBr = bytes("06")
    static let brBomb = bytes(
        "cbffff3f002400e2b14072effff8ffff078004401c1680eefd1fffffff00900088c302d0bdffe3ffff1f001200715800baf77ffcffff"
            + "034002200e0b40f7fe8fffff7f004800c46101e8defff1ffff0f000980382c00ddfbbffcffff032001108705a07bff07")

    /// `text`, compressed by the command zstd 1.5.4 with its default options.
    static let zstd = bytes(
        "28b52ffd04580d0300d403303a2074686520717569636b2062726f776e206375726c6577207761646573206f7665726c617a79206d75"
            + "64666c61740a3132333435363738393130310c000b21a790fa3a51e06402a7089c277032815304ce133899c02928aba35804f504"
            + "8dbc7b62")
    static let emptyZstd = bytes("28b52ffd240001000099e9d851")
    /// "curlewcurlewcurlew", compressed by `zstd --long=24`; `allowedZstd` by `--long=23`: windows of 16 and of 8 MiB.
    static let wideZstd = bytes("28b52ffd0070650000306375726c65770100e14a11")
    static let allowedZstd = bytes("28b52ffd0068650000306375726c65770100e14a11")
    /// A skippable frame of four bytes (RFC 8878 §3.1.2).
    static let skippedZstd = bytes("502a4d180400000001020304")

    /// `text`, compressed by the command gzip 1.12, `-9 -n`.
    static let gzipCommand = bytes(
        "1f8b08000000000002039dd2cb0d80201444d1bd554c09fe7fdd203ca311252248b47a134b98fd9cd5dc7c445804675cf586c9bb7440"
            + "476f2521292317dc2dfe5f58f53ed8a399ad0a5941a9925215a56a4a35946a29d551aaa7d4c0bd9c738cabe3037a718aec8a020000"
    )

    /// Compresses with zlib, in the formats of RFC 1950, 1951 and 1952.
    static func deflated(_ bytes: [UInt8], _ format: ZlibFormat = .gzip) throws -> [UInt8] {
        let deflater = try Deflater(try #require(ZlibLibrary.system), format)
        return try deflater.transform(bytes, flush: false) + deflater.finish()
    }

    static func gzip(_ text: String) throws -> [UInt8] { try deflated(Array(text.utf8)) }

    /// Returns gzip members of 16 MiB of zeros each, compressed to 16 KiB each.
    static func zeros(members: Int) throws -> [UInt8] {
        repeated(try deflated([UInt8](repeating: 0, count: 16 << 20)), members)
    }

    /// Returns gzip in gzip: the inner members are empty, so that decoding takes many steps and produces no bytes.
    static func nothing(members: Int) throws -> [UInt8] {
        try deflated(repeated(deflated([]), members))
    }

    private static func repeated(_ bytes: [UInt8], _ count: Int) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count * count)
        for _ in 0..<count { result += bytes }
        return result
    }

    static func bytes(_ hex: String) -> [UInt8] {
        let digits = Array(hex.utf8).map { $0 > 57 ? $0 - 87 : $0 - 48 }
        return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }

    /// Decodes a whole body that is fed in pieces, and checks that each decoded chunk is small.
    static func decode(
        _ wire: [UInt8], _ encoding: String, with dictionary: CompressionDictionary? = nil, piece: Int = 64 << 10,
        codings: ContentCodings = .system
    ) throws(NetworkError) -> [UInt8] {
        let decoder = try codings.decoder(for: ContentCodings.names(in: encoding), with: dictionary)
        var result: [UInt8] = []
        var offset = 0
        while true {
            switch try decoder.step() {
            case .bytes(let chunk):
                #expect(!chunk.isEmpty && chunk.count <= 64 << 10)
                result += chunk
            case .working: continue
            case .starved:
                guard offset < wire.count else {
                    try decoder.finish()
                    #expect(decoder.consumed == Int64(wire.count) && decoder.produced == Int64(result.count))
                    return result
                }
                let end = min(offset + piece, wire.count)
                decoder.feed(ByteChunk(wire[offset..<end]))
                offset = end
            }
        }
    }
}
