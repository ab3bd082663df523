// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

/// Every coding: whole and in pieces, truncated, corrupt, with trailing bytes, stacked, and as a decompression bomb.
@Suite("ContentDecoder", .timeLimit(.minutes(5)))
struct ContentDecoderTests {
    struct Sample: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let encoding: String
        let wire: [UInt8]
        var plain = Encoded.text
        /// Whether a checksum covers the content.
        var isChecked = true
    }

    static let samples: [Sample] = {
        let text = Encoded.text
        let made: [(String, String, [UInt8]?, Bool)] = [
            ("gzip", "gzip", try? Encoded.deflated(text), true),
            ("gzip by the command", "x-gzip", Encoded.gzipCommand, true),
            ("deflate as zlib", "deflate", try? Encoded.deflated(text, .zlib), true),
            ("deflate, raw", "Deflate", try? Encoded.deflated(text, .raw), false),
            ("br", "br", Encoded.br, false),
            ("zstd", "ZSTD", Encoded.zstd, true),
            ("gzip in deflate", "gzip, deflate", try? Encoded.deflated(Encoded.deflated(text), .zlib), true),
            ("br in gzip", "br,\tidentity , gzip", try? Encoded.deflated(Encoded.br), true),
            ("zstd in raw deflate", "zstd, deflate", try? Encoded.deflated(Encoded.zstd, .raw), true),
        ]
        return made.map { Sample(testDescription: $0, encoding: $1, wire: $2 ?? [], isChecked: $3) }
    }()

    private func failure(_ wire: [UInt8], _ encoding: String) -> NetworkError? {
        do throws(NetworkError) {
            _ = try Encoded.decode(wire, encoding)
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: samples) func contentIsDecodedWholeAndInPieces(_ sample: Sample) throws {
        for piece in [Int.max / 2, 1, 2, 7, 64] {
            #expect(try Encoded.decode(sample.wire, sample.encoding, piece: piece) == sample.plain)
        }
    }

    @Test(arguments: [0, 1, 65_535, 65_536, 65_537, 1_000_000])
    func sizesAroundTheStepSizeAreDecoded(_ length: Int) throws {
        var plain = [UInt8](repeating: 7, count: length)
        for index in stride(from: 0, to: length, by: 3) { plain[index] = UInt8(truncatingIfNeeded: index &* 31) }
        for (format, name) in [(ZlibFormat.gzip, "gzip"), (.zlib, "deflate"), (.raw, "deflate")] {
            let wire = try Encoded.deflated(plain, format)
            #expect(try Encoded.decode(wire, name).sha256 == plain.sha256)
            #expect(try Encoded.decode(wire, name, piece: 999).sha256 == plain.sha256)
        }
    }

    @Test func emptyContentIsDecoded() throws {
        for format in [ZlibFormat.zlib, .raw] {
            #expect(try Encoded.decode(Encoded.deflated([], format), "deflate") == [])
        }
        #expect(try Encoded.decode(Encoded.deflated([]), "gzip") == [])
        #expect(try Encoded.decode(Encoded.emptyBr, "br") == [])
        #expect(try Encoded.decode(Encoded.emptyZstd, "zstd") == [])
        #expect(try Encoded.decode(Encoded.emptyZstd, "zstd", piece: 1) == [])
    }

    @Test(arguments: samples) func everyTruncationFailsAsTruncated(_ sample: Sample) throws {
        #expect(try Encoded.decode([], sample.encoding) == [])
        for length in 1..<sample.wire.count {
            let error = failure(Array(sample.wire.prefix(length)), sample.encoding)
            #expect(error?.kind == .truncatedEncoding && error?.phase == .decoding, "cut at \(length)")
        }
    }

    @Test(arguments: samples) func corruptBytesFail(_ sample: Sample) throws {
        var kinds: Set<NetworkError.Kind> = []
        for index in sample.wire.indices {
            for change: UInt8 in [0x01, 0x10, 0x80, 0xFF] {
                var wire = sample.wire
                wire[index] ^= change
                do throws(NetworkError) {
                    let decoded = try Encoded.decode(wire, sample.encoding)
                    // With a checksum, only a change of the header can decode without an error.
                    if sample.isChecked { #expect(decoded == sample.plain, "byte \(index)") }
                } catch {
                    kinds.insert(error.kind)
                }
            }
        }
        #expect(kinds.contains(.corruptEncoding))
        #expect(kinds.isSubset(of: [.corruptEncoding, .truncatedEncoding]))
    }

    @Test(arguments: ["gzip", "br", "zstd"]) func plainContentFailsAsCorrupt(_ encoding: String) {
        let error = failure(Array(#"{"message":"no coding at all"}"#.utf8), encoding)
        #expect(error?.kind == .corruptEncoding && error?.phase == .decoding)
        #expect(error?.message.contains("“\(encoding)”") == true)
    }

    @Test(arguments: samples) func trailingBytesFailAsCorrupt(_ sample: Sample) {
        #expect(failure(sample.wire + [0x7B], sample.encoding)?.kind == .corruptEncoding)
        #expect(failure(sample.wire + Array("garbage".utf8), sample.encoding)?.kind == .corruptEncoding)
    }

    @Test func gzipMembersAndPaddingAreDecoded() throws {
        let member = try Encoded.gzip("one")
        let other = try Encoded.gzip("two")
        for piece in [1, 3, 1000] {
            #expect(try Encoded.decode(member + other + member, "gzip", piece: piece) == Array("onetwoone".utf8))
            #expect(try Encoded.decode(member + [0, 0, 0, 0, 0], "gzip", piece: piece) == Array("one".utf8))
        }
        #expect(failure(member + other.dropLast(), "gzip")?.kind == .truncatedEncoding)
        #expect(failure(member + [0x1F], "gzip")?.kind == .truncatedEncoding)
        #expect(failure(member + [0, 0] + other, "gzip")?.kind == .corruptEncoding)
        #expect(failure([0] + member, "gzip")?.kind == .corruptEncoding)
        // Only gzip may have padding.
        #expect(failure(try Encoded.deflated(Encoded.text, .zlib) + [0], "deflate")?.kind == .corruptEncoding)
        #expect(failure(Encoded.br + [0], "br")?.kind == .corruptEncoding)
        #expect(failure(Encoded.zstd + [0, 0, 0, 0], "zstd")?.kind == .corruptEncoding)
    }

    @Test func zstdFramesAreDecodedUpToTheWindowLimit() throws {
        let frames = Encoded.zstd + Encoded.skippedZstd + Encoded.emptyZstd + Encoded.zstd
        for piece in [1, 5, 1000] {
            #expect(try Encoded.decode(frames, "zstd", piece: piece) == Encoded.text + Encoded.text)
        }
        #expect(failure(Encoded.zstd + Encoded.zstd.dropLast(), "zstd")?.kind == .truncatedEncoding)
        #expect(try Encoded.decode(Encoded.allowedZstd, "zstd") == Array("curlewcurlewcurlew".utf8))
        let wide = failure(Encoded.wideZstd, "zstd")
        #expect(wide?.kind == .corruptEncoding)
        #expect(wide?.message.contains("8 MiB") == true)
    }

    @Test func stackedCodingsAreLimitedToTwo() throws {
        let wire = try Encoded.deflated(Encoded.deflated(Encoded.text))
        #expect(try Encoded.decode(wire, "gzip, gzip") == Encoded.text)
        #expect(try Encoded.decode(wire, "gzip, identity, gzip", piece: 1) == Encoded.text)
        let error = failure(try Encoded.deflated(wire), "gzip, gzip, gzip")
        #expect(error?.kind == .unsupported && error?.phase == .decoding)
        #expect(error?.message.contains("3 nested content codings; at most 2") == true)
    }

    @Test func decompressionBombsAreDecodedInSmallChunks() throws {
        let bombs = [("gzip", try Encoded.zeros(members: 4)), ("br", Encoded.brBomb)]
        for (encoding, wire) in bombs {
            let decoder = try ContentCodings.system.decoder(for: [encoding])
            decoder.feed(ByteChunk(wire))
            var steps = 0
            walk: while true {
                let before = decoder.consumed
                switch try decoder.step() {
                case .bytes(let chunk): #expect(chunk.count <= 64 << 10)
                case .working: break
                case .starved: break walk
                }
                #expect(decoder.consumed - before <= 64 << 10)
                steps += 1
            }
            try decoder.finish()
            #expect(decoder.produced == 64 << 20 && steps >= 1024)
        }
    }

    @Test func emptyMembersAreDecodedInSmallSteps() throws {
        let wire = try Encoded.nothing(members: 1000)
        let decoder = try ContentCodings.system.decoder(for: ["gzip", "gzip"])
        decoder.feed(ByteChunk(wire))
        var steps = 0
        while case .working = try decoder.step() { steps += 1 }
        try decoder.finish()
        #expect(decoder.produced == 0 && steps >= 1000)
    }
}
