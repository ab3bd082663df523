// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import Testing

@testable import Curlew

/// File names that servers suggest, `Content-Range` fields and checksums.
struct DownloadNameTests {
    // MARK: Content-Disposition (examples of RFC 6266 §5)

    @Test(arguments: [
        ("Attachment; filename=example.html", "attachment", "example.html"),
        ("INLINE; FILENAME= \"an example.html\"", "inline", "an example.html"),
        ("attachment; filename*= UTF-8''%e2%82%ac%20rates", "attachment", "€ rates"),
        ("attachment; filename=\"EURO rates\"; filename*=utf-8''%e2%82%ac%20rates", "attachment", "€ rates"),
        ("attachment; filename*=UTF-8''%ff; filename=\"plain\"", "attachment", "plain"),
        ("attachment; filename*=ISO-8859-1'en'%a3%20rates", "attachment", "£ rates"),
        ("attachment; filename*=koi8-r''a; filename=b", "attachment", "b"),
        ("attachment; filename=\"a\\\"b\"", "attachment", "a\"b"), ("attachment", "attachment", nil),
        ("form-data; name=x", "form-data", nil),
    ])
    func dispositionIsParsed(text: String, type: String, name: String?) throws {
        let disposition = try #require(ResponseHead.ContentDisposition(text))
        #expect(disposition.type == type && disposition.filename == name)
        #expect(disposition.isAttachment == (type != "inline"))
    }

    @Test func invalidContentDispositionIsNil() {
        #expect(ResponseHead.ContentDisposition("") == nil && ResponseHead.ContentDisposition("; filename=a") == nil)
        #expect(ResponseHead.ContentDisposition("a b; filename=a") == nil)
    }

    @Test(arguments: [
        "UTF-8''%4", "UTF-8''%+1", "UTF-8''%zz", "UTF-8'a", "a", "", "UTF-16''a",
    ])
    func invalidExtendedValueIsNil(text: String) { #expect(text.extendedValue == nil) }

    // MARK: Names

    @Test(arguments: [
        ("x.part", "x_part"), ("x.PART.json", "x_PART.json"), ("x.part.json.new", "x_part.json.new"),
        ("x.part.zip", "x.part.zip"),
        ("a.txt", "a.txt"), ("../../etc/passwd", "passwd"), ("C:\\Users\\x\\a.txt", "a.txt"), ("..", nil), (".", nil),
        ("", nil), ("a/", nil), (".bashrc", "bashrc"), ("a\u{0}b\n.txt", "ab.txt"), (" a. ", "a"),
        ("\u{202E}gpj.exe", "gpj.exe"), ("a\u{200B}b\u{FEFF}", "ab"), ("\u{85}", nil), ("résumé", "résumé"),
        ("…", "…"), ("... ...", nil), ("\u{FFF9}x", "x"),
    ])
    func fileNamesAreMadeSafe(name: String, safe: String?) { #expect(FileName.safe(name) == safe) }

    private static func some(_ character: Character, _ count: Int) -> String {
        String(repeating: character, count: count)
    }

    private static let disguised: [(String, String?)] = [
        ("/\u{200D}..\u{200D}/\u{200D}etc/\u{200D}passwd", "passwd"), ("x/\u{301}evil", "\u{301}evil"),
        ("..\u{200C}/\u{200C}..", nil), ("\u{200D}.\u{200D}.bashrc", "bashrc"), ("x\u{600}.part", "x\u{600}_part"),
        ("\u{61C}x", "x"), (some("a", 195) + ".part" + some("x", 30), some("a", 195) + "_part"),
        (some("a", 190) + ".part.json" + some("x", 30), some("a", 190) + "_part.json"),
        (some("a", 199) + ". " + some("x", 30), some("a", 199)),
    ]

    /// The file system sees the bytes of slashes and dots, even where Swift joins them with other scalars.
    @Test(arguments: disguised)
    func safeNameRemovesDisguisedSlashesDotsAndSuffixes(name: String, safe: String?) {
        #expect(FileName.safe(name).map { Array($0.utf8) } == safe.map { Array($0.utf8) })
    }

    @Test func safeNameTruncatesOneLongCharacter() throws {
        let accents = "a" + String(repeating: "\u{301}", count: 100)
        let name = try #require(FileName.safe(accents + ".bashrc"))
        #expect(name.utf8.first == UInt8(ascii: "a") && name.hasSuffix(".bashrc") && name.utf8.count <= 200)
        #expect(try #require(FileName.safe(accents)).utf8.count <= 200)
    }

    @Test(arguments: UInt64(0)..<20)
    func safeNamesOfRandomPiecesAreSafeAndStable(_ seed: UInt64) {
        let pieces = [
            "/", "\\", ".", "..", " ", "\u{200D}", "\u{301}", "\u{600}", "a", "é", "日", "😀", "👩\u{200D}👩", ".part",
            ".PART",
            ".json", ".new", "\n", "\u{0}", "\u{202E}", String(repeating: "x", count: 97),
            String(repeating: "日", count: 31),
        ]
        var chance = SeededChance(seed)
        for _ in 0..<500 {
            let name = (0...chance.next() % 12).map { _ in pieces[Int(chance.next() % UInt64(pieces.count))] }.joined()
            guard let safe = FileName.safe(name) else { continue }
            let bytes = Array(safe.utf8)
            #expect(!bytes.isEmpty && bytes.count <= 200 && bytes.first != UInt8(ascii: "."))
            let separators = [UInt8(ascii: "/"), UInt8(ascii: "\\")]
            #expect(!bytes.contains { $0 < 0x20 || separators.contains($0) })
            let end = String(decoding: bytes.suffix(14), as: Unicode.ASCII.self).lowercased()
            #expect(
                ![".part", ".part.json", ".part.json.new"].contains { end.hasSuffix($0) }, "\(safe.debugDescription)")
            #expect(FileName.safe(safe) == safe)
        }
    }

    @Test func longNamesKeepTheirExtension() throws {
        let long = try #require(FileName.safe(String(repeating: "é", count: 300) + ".tar"))
        #expect(long.utf8.count <= 200 && long.utf8.count > 190 && long.hasSuffix("é.tar"))
        let odd = try #require(FileName.safe("a." + String(repeating: "x", count: 300)))
        #expect(odd.utf8.count == 200)
    }

    @Test(arguments: [
        ("http://h/a/b.zip?x=/c", "b.zip"), ("http://h/", nil), ("http://h", nil), ("http://h/a%2F..%2Fb", "b"),
        ("http://h/a%ffb", "a%ffb"), ("http://h/a/", "a"),
    ])
    func fileNameIsTakenFromTheURLPath(url: String, name: String?) { #expect(FileName.ofPath(of: url) == name) }

    @Test(arguments: [
        ("a.zip", "a (2).zip"), ("a", "a (2)"), ("a.tar.gz", "a (2).tar.gz"), (".x", ".x (2)"), ("a.b.c", "a.b (2).c"),
        (".tar.gz", ".tar.gz (2)"),
    ])
    func fileNamesAreNumbered(name: String, numbered: String) {
        #expect(FileName.numbered(name, 2) == numbered)
        #expect(FileName.numbered(path: "/x.y/" + name, 2) == "/x.y/" + numbered)
        #expect(FileName.numbered(path: name, 2) == numbered)
    }

    // MARK: Content-Range

    @Test(arguments: [
        ("bytes 0-499/1234", ResponseHead.ContentRange(0...499, of: 1234)),
        ("bytes 734-1233/1234", ResponseHead.ContentRange(734...1233, of: 1234)),
        ("bytes 42-1233/*", ResponseHead.ContentRange(42...1233, of: nil)),
        ("BYTES 0-0/1", ResponseHead.ContentRange(0...0, of: 1)),
        ("bytes */1234", ResponseHead.ContentRange(nil, of: 1234)),
    ])
    func contentRangeIsParsed(text: String, range: ResponseHead.ContentRange) {
        #expect(ResponseHead.ContentRange(text) == range)
        #expect(ResponseHead.ContentRange(range.description) == range)
    }

    @Test(arguments: [
        "", "bytes", "bytes 0-1", "items 0-1/2", "bytes 1-0/2", "bytes 0-2/2", "bytes */*", "bytes -1-0/2",
        "bytes 0-1/x",
        "bytes +0-1/2", "bytes 0-99999999999999999999/*", "bytes 0-1/2/3", "bytes 0-1-2/3", "bytes 0/1", "bytes /1",
    ])
    func invalidContentRangeIsNil(text: String) { #expect(ResponseHead.ContentRange(text) == nil) }

    // MARK: Checksums

    private let digits = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

    @Test func checksumsParseFromHexBase64AndDigestFields() throws {
        let known = Checksum.sha256(digits)
        #expect(known.digest.count == 32 && known.description == "sha256:" + digits)
        #expect(known == .sha256(digits.uppercased()) && known == Checksum("sha256:" + digits))
        let base64 = "n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg="
        #expect(known == .sha256(base64) && known == Checksum("sha256-" + base64))
        #expect(known == Checksum(digestField: "sha-512=:AA==:;a=1, sha-256=:\(base64):"))
        #expect(Checksum.md5("d41d8cd98f00b204e9800998ecf8427e").digest.count == 16)
        #expect(Checksum.sha1("da39a3ee5e6b4b0d3255bfef95601890afd80709").digest.count == 20)
        #expect(Checksum.sha512(String(repeating: "0a", count: 64)).digest.count == 64)
    }

    @Test func invalidChecksumsHaveAnEmptyDigest() {
        #expect(
            Checksum.sha256("abc").digest.isEmpty && Checksum.sha256(String(repeating: "x", count: 64)).digest.isEmpty)
        #expect(Checksum.sha256("").description == "sha256, no digest")
        #expect(Checksum(.md5, digest: [1]).digest.isEmpty)
        for text in ["", "sha256", "crc32:00", "sha256:abc", ":"] { #expect(Checksum(text) == nil) }
        for text in ["", "sha-256=abc", "sha-256=:AA==", "sha-256=:AA==:", "md5=:AA==:"] {
            #expect(Checksum(digestField: text) == nil)
        }
    }

    @Test(arguments: Checksum.Algorithm.allCases)
    func messageDigestSupportsEveryChecksumAlgorithm(algorithm: Checksum.Algorithm) throws {
        let digest = try #require(MessageDigest(algorithm.openSSL))
        digest.update([1, 2])
        let start = digest.current()
        #expect(start == MessageDigest.digest(algorithm.openSSL, of: [1, 2]) && start.count == algorithm.count)
        digest.update([3])
        #expect(digest.finish() == MessageDigest.digest(algorithm.openSSL, of: [1, 2, 3]))
    }
}
