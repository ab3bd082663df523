// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// Damaged files, files of other programs, and contents without a file.
extension CookieFileTests {
    @Test func damagedLineIsSkippedAndReported() async throws {
        let lines = [
            "# HTTP Cookie File", "", "h.test\tFALSE\t/\tFALSE\t0\ta\t1", "nonsense",
            "h.test\tMAYBE\t/\tFALSE\t0\tb\t2",
            "h.test\tFALSE\t/\tFALSE\tsoon\tc\t3", "h test\tFALSE\t/\tFALSE\t0\td\t4",
            "#HttpOnly_h.test\tFALSE\t/\tFALSE\t0\te", "h.test\tFALSE\t/\tFALSE\t1\told\t5",
            "h.test\tFALSE\tx\tFALSE\t0.5\tf\t6\r", "h.test\tFALSE\t/\tFALSE\t0\tg\t7\t8", "# comment",
            "h.test\tFALSE\t/\tFALSE\t0\t__Host-h\t9", ".127.0.0.1\tTRUE\t/\tFALSE\t0\ti\t1",
            "h.test\tFALSE\t/\tFALSE\t\tj\t10",
        ]
        folder.write("cookies", Array(lines.joined(separator: "\n").utf8) + [0x0A, 0xFF, 0x0A])
        let jar = try await jar()
        #expect(jar.cookies.map(\.name) == ["a", "e", "f", "i", "j"])
        #expect(jar.skippedLines.map(\.line) == [4, 5, 6, 7, 11, 13, 16])
        #expect("\(jar.skippedLines[0])" == "line 4 has 1 fields instead of 7")
        #expect(jar.skippedLines.map(\.reason).allSatisfy { !$0.contains("nonsense") && !$0.contains("h test") })
        #expect(jar.cookies(for: "http://127.0.0.1/").map(\.name) == ["i"])
        try jar.set(Cookie("new", "1", host: "h.test"))
        try await jar.save()
        #expect(jar.cookies.map(\.name) == ["a", "e", "f", "i", "j", "new"])
        #expect(try await self.jar().skippedLines == [])
    }

    @Test func damagedElementOfJSONIsSkippedAndReported() async throws {
        let jar = try await jar("cookies", .json)
        for cookie in cookies { try jar.set(cookie) }
        try await jar.save()
        var lines = text("cookies").split(separator: "\n").map(String.init)
        #expect(lines.count == cookies.count + 2)
        lines[2] = "{\"name\": 7},"
        folder.write("cookies", Array(lines.joined(separator: "\n").utf8))
        let damaged = try await self.jar("cookies", .json)
        #expect(damaged.cookies.map(\.name) == ["session", "until", "", "empty"])
        #expect(damaged.skippedLines.map(\.line) == [3])
        // Another layout of the same array.
        let whole = "[\(lines[1].dropLast()),\n\n\n 5, \(lines[3].dropLast())]".replacing("{", with: "{\n")
        folder.write("cookies", Array(whole.utf8))
        let other = try await self.jar("cookies", .json)
        #expect(other.cookies.map(\.name) == ["session", "until"] && other.skippedLines.map(\.line) == [2])
    }

    /// Another process had a clock that was fast.
    @Test func changeInTheFutureDoesNotWinForever() async throws {
        let future = Date(timeIntervalSinceNow: 100_000).microseconds
        let record = """
            [{"changed": \(future), "created": 0, "domain": "h.test", "hostOnly": true, "httpOnly": true, "name": "a", "path": "/", \
            "secure": true, "value": "old"}]
            """
        folder.write("cookies", Array(record.utf8))
        let jar = try await jar("cookies", .json)
        try jar.set(Cookie("a", "new", host: "h.test"))
        try await jar.save()
        #expect(jar.cookies.map(\.value) == ["new"])
        jar.removeAll()
        try await jar.save()
        #expect(try await self.jar("cookies", .json).cookies == [])
    }

    @Test func fileWithoutValidCookiesIsStillACookieFile() async throws {
        let jar = try await jar("cookies", .json)
        try jar.set(Cookie("a", "b", host: "h.test", expires: Date(timeIntervalSinceNow: 1000)))
        try await jar.save()
        let expires = "\"expires\":1"
        var lines = text("cookies").split(separator: "\n").map(String.init)
        lines[1] = lines[1].replacing(/"expires":[0-9.]+/, with: expires) + ","
        folder.write("cookies", Array((lines[..<2] + ["{\"name\":", "]"]).joined(separator: "\n").utf8))
        let read = try await self.jar("cookies", .json)
        #expect(read.cookies == [] && read.skippedLines.map(\.line) == [3])
    }

    @Test(arguments: [Int64.min, -1, 0, Int64.max], ["1e300", "-1e300", "0", "null"])
    func impossibleTimesOfJSONAreLimited(_ created: Int64, _ expires: String) async throws {
        let record = """
            [{"created": \(created), "changed": \(created), "domain": "h.test", "hostOnly": true, "httpOnly": true, \
            "name": "a", "path": "/", "secure": true, "value": "b", "expires": \(expires)}]
            """
        folder.write("cookies", Array(record.utf8))
        let jar = try await jar("cookies", .json)
        #expect(jar.skippedLines == [] && jar.cookies.count == (expires == "1e300" || expires == "null" ? 1 : 0))
        try jar.set(Cookie("c", "d", host: "h.test"))
        try await jar.save()
        #expect(try await self.jar("cookies", .json).cookies.count == jar.cookies.count)
    }

    @Test(
        arguments: CookieJar.FileFormat.allCases,
        [
            "Dear diary\nIt rained.", "{\"a\": 1}", "\u{0}\u{1}\u{2}", "[1,2]", "[{\"name\": 1}]", "# a comment",
            "# HTTP",
        ])
    func otherFileIsNeitherUsedNorOverwritten(_ format: CookieJar.FileFormat, _ contents: String) async throws {
        folder.write("cookies", Array(contents.utf8))
        let error = try await networkError { _ = try await jar("cookies", format) }
        #expect(
            error.kind == .destinationFailed && error.phase == .saving && error.message.contains("not a cookie file"))
        // The file may also change later.
        let other = try await jar("other", format)
        try other.set(cookies[0])
        folder.write("other", Array(contents.utf8))
        #expect(try await networkError { try await other.save() }.kind == .destinationFailed)
        #expect(text("other") == contents && text("cookies") == contents && other.cookies.count == 1)
        try FileManager.default.removeItem(atPath: folder("other"))
        try await other.save()
        #expect(try await jar("other", format).cookies.count == 1)
    }

    @Test(arguments: CookieJar.FileFormat.allCases, ["", "\n\n", " \n"])
    func emptyFileHasNoCookies(_ format: CookieJar.FileFormat, _ contents: String) async throws {
        folder.write("cookies", Array(contents.utf8))
        let jar = try await jar("cookies", format)
        try jar.set(cookies[0])
        try await jar.save()
        #expect(try await self.jar("cookies", format).cookies.count == 1)
    }

    @Test func foreignFilesAreRefused() async throws {
        folder.write("real", Array("# HTTP Cookie File\n".utf8))
        try FileManager.default.createSymbolicLink(atPath: folder("link"), withDestinationPath: folder("real"))
        #expect(try await networkError { _ = try await jar("link") }.kind == .destinationFailed)
        #expect(try await networkError { _ = try await jar("missing/cookies") }.message.contains("no directory"))
        try FileManager.default.setAttributes([.posixPermissions: 0o666], ofItemAtPath: folder("real"))
        #expect(try await networkError { _ = try await jar("real") }.message.contains("other users may write"))
        #expect(try await networkError { _ = try await jar("nul\u{0}") }.kind == .destinationFailed)
        #expect(try await networkError { _ = try await CookieJar(file: folder.path) }.kind == .destinationFailed)
    }

    @Test func cookiesBeyondTheLimitsAreReported() async throws {
        let lines = (0..<182).map { "h.test\tFALSE\t/\tTRUE\t0\tn\($0)\tv" }
        folder.write("cookies", Array(lines.joined(separator: "\n").utf8))
        let jar = try await jar()
        #expect(jar.skippedLines.map(\.line) == [1, 2] && jar.cookies.count == 180)
    }

    /// The export of a browser has fields that this jar would lose.
    @Test func exportOfABrowserIsNoCookieFile() async throws {
        let export = """
            [{"domain": ".h.test", "expirationDate": 4102444800, "hostOnly": false, "httpOnly": false, "name": "a",
            "path": "/", "sameSite": "lax", "secure": true, "session": false, "storeId": "0", "value": "1"}]
            """
        for text in [export, export.replacing("\n", with: "")] {
            folder.write("cookies", Array(text.utf8))
            await #expect(throws: NetworkError.self) { try await self.jar("cookies", .json) }
        }
    }

    /// A dot at the end of the host of a response neither widens its cookies nor disappears in the file.
    @Test(arguments: CookieJar.FileFormat.allCases)
    func finalDotStaysInTheFile(_ format: CookieJar.FileFormat) async throws {
        let first = try await jar("cookies", format)
        try first.set(field: "a=1; Domain=h.test.", from: "https://www.h.test./")
        try first.set(field: "a=2; Secure", from: "https://h.test/")
        try first.set(field: "a=3", from: "http://h.test./")
        try await first.save()
        let second = try await jar("cookies", format)
        #expect(second.skippedLines == [] && second.cookies.map(\.key) == first.cookies.map(\.key))
        #expect(second.cookies(for: "https://h.test/").map(\.value) == ["2"])
        #expect(Set(second.cookies(for: "https://h.test./").map(\.value)) == ["1", "3"])
    }

    /// curl writes TRUE for Domain=localhost, and some exporters write -1 for session cookies.
    @Test func linesOfOtherProgramsAreRead() async throws {
        let lines = [".localhost\tTRUE\t/\tFALSE\t0\ta\t1", "h.test\tFALSE\t/\tFALSE\t-1\tb\t2"]
        folder.write("cookies", Array(lines.joined(separator: "\n").utf8))
        let jar = try await jar()
        #expect(jar.skippedLines == [] && jar.cookies.allSatisfy { $0.isHostOnly && $0.isSession })
        #expect(jar.cookies.map(\.domain) == ["localhost", "h.test"])
    }

    @Test func publicSuffixInAFileIsSkipped() async throws {
        try #require(PublicSuffixes.system != nil)
        folder.write("cookies", Array(".co.uk\tTRUE\t/\tFALSE\t0\ta\t1\nh.test\tFALSE\t/\tFALSE\t0\tb\t2".utf8))
        let jar = try await jar()
        #expect(jar.cookies.map(\.name) == ["b"] && jar.skippedLines.map(\.line) == [1])
    }

    // MARK: Contents

    @Test(arguments: CookieJar.FileFormat.allCases)
    func contentsAreReadAndWritten(_ format: CookieJar.FileFormat) throws {
        let jar = CookieJar()
        for cookie in cookies { try jar.set(cookie) }
        let read = try CookieJar(contents: jar.contents(format: format), format: format)
        #expect(
            read.cookies.map(\.key) == jar.cookies.map(\.key) && read.cookies.map(\.value) == jar.cookies.map(\.value))
        #expect(read.file == nil && read.skippedLines == [])
        let damaged = try CookieJar(contents: jar.contents(format: format) + Data("damaged\n".utf8), format: format)
        #expect(damaged.cookies.count == read.cookies.count && damaged.skippedLines.count == 1)
        let error = #expect(throws: NetworkError.self) {
            try CookieJar(contents: Data("Dear diary".utf8), format: format)
        }
        #expect(error?.kind == .decodingFailed && error?.phase == .decoding)
        #expect(try CookieJar(contents: [], format: format).cookies == [])
    }
}
