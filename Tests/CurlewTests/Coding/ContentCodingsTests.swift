// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Curlew

/// Offered codings, missing libraries, and the fields of content codings in response heads.
@Suite("ContentCodings")
struct ContentCodingsTests {
    @Test func missingLibrariesAreNotInAcceptEncoding() {
        var codings = ContentCodings.system
        #expect(codings.acceptEncoding == "gzip, deflate, br, zstd")
        codings.brotli = nil
        #expect(codings.acceptEncoding == "gzip, deflate, zstd")
        codings.zlib = nil
        #expect(codings.acceptEncoding == "zstd")
        codings.zstandard = nil
        #expect(codings.acceptEncoding == nil)
    }

    @Test func missingLibrariesAreNil() {
        #expect(ZlibLibrary(library: "libcurlew-missing.so.9") == nil)
        #expect(BrotliLibrary(library: ZlibLibrary.soname) == nil)
        #expect(ZstandardLibrary(library: ZlibLibrary.soname) == nil)
        #expect(ZlibLibrary(library: ZstandardLibrary.soname) == nil)
    }

    @Test(arguments: [("gzip", "libz.so.1"), ("deflate", "zlib1g"), ("br", "libbrotlidec.so.1"), ("zstd", "libzstd1")])
    func errorNamesTheMissingLibrary(name: String, library: String) throws {
        let none = ContentCodings(zlib: nil, brotli: nil, zstandard: nil)
        let error = #expect(throws: NetworkError.self) { _ = try none.decoder(for: [name]) }
        #expect(error?.kind == .unsupported && error?.phase == .decoding)
        #expect(error?.message.contains("“\(name)”") == true)
        let text = "\(error?.message ?? "") \(error?.hint ?? "")"
        #expect(text.contains(library))
    }

    @Test(arguments: ["compress", "x-compress", "aws-chunked", "g\nzip", "gzip;q=1"])
    func unknownCodingFailsWithItsName(name: String) {
        let error = #expect(throws: NetworkError.self) { _ = try ContentCodings.system.decoder(for: ["gzip", name]) }
        #expect(error?.kind == .invalidResponse && error?.phase == .decoding && error?.retriability == .never)
        #expect(error?.message.contains("The server used") == true && error?.message.contains("\n") == false)
        #expect(error?.message.contains("installed") == false && error?.hint?.contains("Install") == false)
    }

    @Test(
        arguments: [
            ("", []), ("identity", []), (" , ,", []), ("GZip", ["gzip"]), ("gzip, br", ["gzip", "br"]),
            ("\tx-gzip ,identity,\tzstd", ["x-gzip", "zstd"]),
        ] as [(String, [String])])
    func codingNamesInAFieldAreParsed(value: String, names: [String]) {
        #expect(ContentCodings.names(in: value) == names)
    }

    @Test func fieldsAreRemovedFromAHead() {
        let block = Array(
            ("HTTP/1.1 200 Fine\r\nContent-Length: 7\r\nA: 1\r\ncontent-encoding: gzip,\r\n br\r\nB: 2\r\n"
                + "Content-Encoding: zstd\r\n\r\n").utf8)
        let rest = HeaderFields.block(block, without: [.contentEncoding, .contentLength], from: 0)
        #expect(String(decoding: rest, as: UTF8.self) == "HTTP/1.1 200 Fine\r\nA: 1\r\nB: 2\r\n\r\n")
        #expect(HeaderFields.block(block, without: ["X"], from: 0) == block)
    }
}
