// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

/// The content codings dcz and dcb (RFC 9842 §4, §5), with bodies that zstd and a newer brotli have compressed.
@Suite(.timeLimit(.minutes(5)))
struct DictionaryCodingTests {
    private static let old = Array("const version = 1; ".utf8) + Encoded.text
    private static let new = Array("const version = 22; ".utf8) + Encoded.text + Array(" // end".utf8)

    /// Codings with the brotli of the peers, which accepts dictionaries.
    private static let newer = ContentCodings(
        zlib: .system, brotli: BrotliLibrary(library: BrotliEncoder.library), zstandard: .system)

    private func dictionary(_ bytes: [UInt8] = old) throws -> CompressionDictionary {
        try #require(CompressionDictionary(Data(bytes)))
    }

    private func failure(_ wire: [UInt8], _ encoding: String, codings: ContentCodings = .system) throws -> NetworkError?
    {
        let dictionary = try dictionary()
        do throws(NetworkError) {
            _ = try Encoded.decode(wire, encoding, with: dictionary, codings: codings)
            return nil
        } catch {
            return error
        }
    }

    @Test func zstandardIsDecodedWholeAndInPieces() throws {
        let wire = try ZstandardEncoder.dcz(Self.new, dictionary: Self.old)
        #expect(wire.count < 200)
        for piece in [Int.max / 2, 1, 2, 7, 39, 40, 41] {
            #expect(try Encoded.decode(wire, "dcz", with: dictionary(), piece: piece) == Self.new)
        }
    }

    /// Each frame of a body begins with the dictionary.
    @Test func severalFramesAreDecoded() throws {
        let first = try ZstandardEncoder.dcz(Self.new, dictionary: Self.old)
        let second = try ZstandardEncoder.dcz(Self.new, dictionary: Self.old, header: [])
        for piece in [Int.max / 2, 1, 50] {
            #expect(
                try Encoded.decode(first + second + second, "dcz", with: dictionary(), piece: piece)
                    == Self.new + Self.new + Self.new)
        }
    }

    /// The bytes are raw content, even if they begin like a dictionary that zstd has trained.
    @Test func dictionaryIsRawContent() throws {
        let trained = [0x37, 0xA4, 0x30, 0xEC] + Self.old
        let wire = try ZstandardEncoder.dcz(Self.new, dictionary: trained)
        #expect(try Encoded.decode(wire, "dcz", with: dictionary(trained)) == Self.new)
    }

    @Test func codingsAreNested() throws {
        let wire = try Encoded.deflated(ZstandardEncoder.dcz(Self.new, dictionary: Self.old))
        #expect(try Encoded.decode(wire, "DCZ, gzip", with: dictionary()) == Self.new)
    }

    /// RFC 9842 §5: the window may have 8 MiB, and 1.25 times the dictionary if that is larger.
    @Test func windowIsLimitedByTheDictionary() throws {
        let small = try ZstandardEncoder.dcz(Self.new, dictionary: Self.old, windowLog: 23)
        #expect(try Encoded.decode(small, "dcz", with: dictionary()) == Self.new)
        let error = try failure(ZstandardEncoder.dcz(Self.new, dictionary: Self.old, windowLog: 24), "dcz")
        #expect(error?.kind == .corruptEncoding)
        #expect(error?.message.contains("its window is larger than the maximum of 8 MiB") == true)
        var large = [UInt8](repeating: 0, count: 12 << 20)
        for index in large.indices { large[index] = UInt8(truncatingIfNeeded: index &* 2_654_435_761 >> 13) }
        let changed = Array(large[..<5_000_000]) + Self.new + large[5_000_000...]
        let wire = try ZstandardEncoder.dcz(changed, dictionary: large, windowLog: 24)
        #expect(try Encoded.decode(wire, "dcz", with: dictionary(large), piece: 4_000).sha256 == changed.sha256)
    }

    @Test func bodyForAnotherDictionaryIsRefused() throws {
        let error = try failure(ZstandardEncoder.dcz(Self.new, dictionary: Self.new), "dcz")
        #expect(error?.kind == .corruptEncoding && error?.phase == .decoding)
        #expect(error?.message.contains("it was not compressed with the dictionary of the request") == true)
        #expect(error?.hint?.contains("usesDictionaries") == true)
    }

    @Test func invalidHeaderIsRefused() throws {
        let wire = try ZstandardEncoder.plain(Self.new)
        #expect(try failure(wire, "dcz")?.message.contains("its header is invalid") == true)
        let header = try ZstandardEncoder.header(for: Self.old)
        let late = try failure(Array(header.dropLast()) + [header[39] ^ 1], "dcz")
        #expect(late?.message.contains("not compressed with the dictionary") == true)
    }

    @Test(arguments: [1, 8, 20, 39, 40, 41, 60]) func truncatedBodyIsRefused(_ count: Int) throws {
        let wire = try ZstandardEncoder.dcz(Self.new, dictionary: Self.old)
        #expect(try failure(Array(wire.prefix(count)), "dcz")?.kind == .truncatedEncoding)
    }

    @Test func emptyBodyIsComplete() throws {
        #expect(try Encoded.decode([], "dcz", with: dictionary()).isEmpty)
        let wire = try ZstandardEncoder.dcz([], dictionary: Self.old)
        #expect(try Encoded.decode(wire, "dcz", with: dictionary()).isEmpty)
    }

    @Test(arguments: ["dcz", "dcb", "gzip, dcz"]) func codingThrowsIfTheRequestNamedNoDictionary(_ encoding: String) {
        let error = #expect(throws: NetworkError.self) { try Encoded.decode([1], encoding) }
        #expect(error?.kind == .invalidResponse)
        #expect(error?.message.contains("but the request named no dictionary") == true)
    }

    @Test func codingsAreOfferedWithADictionaryOnly() {
        let all = ContentCodings.system.acceptEncoding ?? ""
        #expect(!all.contains("dc"))
        #expect(ContentCodings.system.acceptEncodingWithDictionary?.hasPrefix(all) == true)
        #expect(ContentCodings.system.acceptEncodingWithDictionary?.hasSuffix("dcz") == true)
        var none = ContentCodings.system
        none.zstandard = nil
        if none.brotli?.acceptsDictionaries == true { none.brotli = nil }
        #expect(none.acceptEncodingWithDictionary == nil)
    }

    @Test func missingLibraryIsNamed() throws {
        var codings = ContentCodings.system
        (codings.zstandard, codings.brotli) = (nil, nil)
        #expect(try failure([1], "dcz", codings: codings)?.message.contains("libzstd.so.1 is not installed") == true)
        let error = try failure([1], "dcb", codings: codings)
        #expect(error?.kind == .unsupported && error?.message.contains("libbrotlidec.so.1") == true)
    }

    @Test(.enabledIfInstalled(.brotli), .peer(.brotli)) func brotliIsDecodedWholeAndInPieces() throws {
        #expect(Self.newer.acceptEncodingWithDictionary?.hasSuffix("dcb, dcz") == true)
        let wire = try BrotliEncoder.dcb(Self.new, dictionary: Self.old)
        #expect(wire.count < 250)
        for piece in [Int.max / 2, 1, 2, 7, 35, 36, 37] {
            #expect(
                try Encoded.decode(wire, "dcb", with: dictionary(), piece: piece, codings: Self.newer) == Self.new)
        }
    }

    @Test(.enabledIfInstalled(.brotli), .peer(.brotli)) func damagedBrotliIsRefused() throws {
        let wire = try BrotliEncoder.dcb(Self.new, dictionary: Self.old)
        let other = try BrotliEncoder.dcb(Self.new, dictionary: Self.new)
        #expect(try failure(other, "dcb", codings: Self.newer)?.kind == .corruptEncoding)
        #expect(try failure(Array(wire.dropLast(3)), "dcb", codings: Self.newer)?.kind == .truncatedEncoding)
        #expect(try failure(wire + [1, 2], "dcb", codings: Self.newer)?.kind == .corruptEncoding)
        let flipped = wire.prefix(50) + [wire[50] ^ 0xFF] + wire.dropFirst(51)
        #expect(try failure(Array(flipped), "dcb", codings: Self.newer) != nil)
    }

    /// A dictionary would change what brotli without one decodes to.
    @Test(.enabledIfInstalled(.brotli), .peer(.brotli)) func plainBrotliIgnoresTheDictionary() throws {
        #expect(try Encoded.decode(Encoded.br, "br", with: dictionary(), codings: Self.newer) == Encoded.text)
    }
}
