// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

@Suite("Text of responses", .timeLimit(.minutes(5)))
struct ResponseTextTests {
    static let charsets: [(String?, String?)] = [
        (nil, nil), ("text/plain", nil), ("text/plain;charset=utf-8", "utf-8"), ("text/plain; charset=UTF-8", "UTF-8"),
        ("text/html; Charset=\"latin1\"", "latin1"), ("text/html ; \tCHARSET= koi8-r \t", "koi8-r"),
        ("a/b; x=1; charset=big5; y=2", "big5"), ("a/b; x=\"; charset=no\"; charset=yes", "yes"),
        ("a/b; x=\"\\\"; charset=no\"; charset=yes", "yes"), ("a/b; charset=\"u\\tf-8\"", "utf-8"),
        ("a/b; charset=\"utf-8", "utf-8"), ("a/b; charset=\"utf-8\\", "utf-8\\"), ("a/b; charset", nil),
        ("a/b; charset=", nil), ("a/b; charset=\"\"", nil), ("a/b; charset=; charset=gbk", "gbk"),
        ("a/b; charset=gbk; charset=big5", "gbk"), ("a/b; xcharset=gbk", nil), ("a/b; charset =gbk", "gbk"),
        ("a/b;;charset=gbk;", "gbk"), ("a/b; charset='gbk'", "'gbk'"), ("charset=gbk", nil), (";charset=gbk", "gbk"),
        ("a/b; charset=gbk, c/d; charset=big5", "gbk"), ("a/b; charset=\"gbk\" x; charset=big5", "gbk"), ("", nil),
        ("a/b; \"charset=gbk\"", nil),
    ]

    @Test(arguments: charsets)
    func charsetIsReadFromTheContentType(contentType: String?, charset: String?) {
        var fields = HeaderFields()
        fields[.contentType] = contentType
        #expect(ResponseHead(status: .ok, fields: fields).charset == charset)
    }

    private func response(_ hex: String, _ contentType: String? = nil) -> Response<Data> {
        var fields = HeaderFields()
        fields[.contentType] = contentType
        return Response(head: ResponseHead(status: .ok, fields: fields), value: Data(EncodedText.bytes(hex)))
    }

    @Test func byteOrderMarkOverridesCharsetOverridesDefault() throws {
        #expect(try response("efbbbfc3a9", "text/plain; charset=iso-8859-1").text() == "é")
        #expect(try response("fffe6100", "text/plain; charset=utf-8").text() == "a")
        #expect(try response("feff0061", "text/plain; charset=utf-16le").text(assuming: .windows1252) == "a")
        #expect(try response("feff0061", "text/plain; charset=no-such").text() == "a")
        #expect(try response("61e9", "text/plain; charset=iso-8859-1").text() == "aé")
        #expect(try response("c3a9", "text/plain; charset=utf-8").text(assuming: .windows1252) == "é")
        #expect(try response("61e9", "text/plain").text(assuming: .windows1252) == "aé")
        #expect(try response("00e9").text(assuming: .utf16BigEndian) == "é")
        #expect(try response("c3a9").text() == "é")
        #expect(try response("", "text/plain; charset=no-such").text() == "")
        #expect(try response("efbbbf").text() == "")
        // The decoder drops one mark, and only at the start.
        #expect(try response("efbbbfefbbbf61").text() == "\u{FEFF}a")
        #expect(try response("61fffe", "text/plain; charset=iso-8859-1").text() == "aÿþ")
    }

    @Test func unknownCharsetIsNamedInTheError() throws {
        let error = try #require(throws: NetworkError.self) {
            try response("61", "text/plain; charset=\"x-\u{1B}[2J" + String(repeating: "y", count: 99) + "\"").text()
        }
        #expect(error.kind == .decodingFailed && error.phase == .decoding)
        let shown = "x-\\u{1B}[2J" + String(repeating: "y", count: 58)
        #expect(error.message == "The server names the charset “\(shown)”, which is not known.")
        #expect(error.hint?.contains("TextEncoding") == true)
        #expect(error.response?.charset?.count == 105 && error.body == [0x61])
    }

    @Test func textErrorHasHeadAndBody() throws {
        let broken = response(String(repeating: "61", count: 5000) + "ff", "text/plain; charset=utf-8")
        let error = try #require(throws: NetworkError.self) { try broken.text() }
        #expect(error.message == "The body is not UTF-8: the bytes at offset 5000 are not a character.")
        #expect(error.response == broken.head && error.body.count == 4096)
        #expect(try broken.text(lossy: true) == String(repeating: "a", count: 5000) + "\u{FFFD}")
    }

    @Test func textIsDecodedByTheCharsetOfTheServer() async throws {
        let server = try MockServer { request in
            let index = Int(request.target.dropFirst()) ?? 0
            let sample = EncodedText.texts[index]
            return .status(
                200, [("Content-Type", "text/plain; charset=\"\(sample.label.uppercased())\"")],
                body: EncodedText.bytes(sample.hex))
        }
        let session = Session()
        for (index, sample) in EncodedText.texts.enumerated() {
            let text = try await session.transfer(Request(server.url("/\(index)"))).response().text()
            #expect(text == sample.text, "\(sample.label)")
        }
    }

    @Test func compressedTextIsDecompressedAndDecoded() async throws {
        let bytes = EncodedText.bytes("93fa967b8cea")
        let zlib = try #require(ZlibLibrary.system)
        let wire = try Deflater(zlib).finish(after: bytes)
        let server = try MockServer { _ in
            .status(
                200, [("Content-Type", "text/plain; charset=Shift_JIS"), ("Content-Encoding", "gzip")], body: wire)
        }
        let response = try await Session().transfer(Request(server.url("/"))).response()
        #expect(try response.text() == "日本語")
    }
}

extension Deflater {
    fileprivate func finish(after bytes: [UInt8]) throws -> [UInt8] {
        try transform(bytes, flush: false) + finish()
    }
}
