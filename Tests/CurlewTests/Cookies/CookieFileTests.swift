// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine
import CurlewSupport
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// Jars with files: formats, damaged files, merging, permissions.
@Suite(.timeLimit(.minutes(5)))
struct CookieFileTests {
    let folder: Folder
    private let later = Date(timeIntervalSince1970: (Date().timeIntervalSince1970 + 100_000).rounded())

    init() throws { folder = try Folder() }

    var cookies: [Cookie] {
        [
            Cookie("session", "1", host: "h.test"),
            Cookie("site", "a b=c\"", domain: "example.com", path: "/x", isSecure: false, isHTTPOnly: false),
            Cookie("until", "ü", host: "h.test", expires: later), Cookie("", "nameless", host: "h.test"),
            Cookie("empty", "", host: "127.0.0.1", isSecure: false),
        ]
    }

    func text(_ name: String) -> String { String(decoding: folder.bytes(name) ?? [], as: UTF8.self) }

    func jar(_ name: String = "cookies", _ format: CookieJar.FileFormat = .netscape) async throws -> CookieJar {
        try await CookieJar(file: folder(name), format: format)
    }

    // MARK: Round trips

    @Test(arguments: CookieJar.FileFormat.allCases)
    func cookiesSurviveTheirJar(_ format: CookieJar.FileFormat) async throws {
        let first = try await jar("cookies", format)
        for cookie in cookies { try first.set(cookie) }
        try first.set(Cookie("lax", "1", host: "h.test", sameSite: .lax))
        try await first.save()
        #expect(first.cookies.last?.sameSite == .lax)
        let second = try await jar("cookies", format)
        #expect(second.skippedLines == [])
        #expect(second.cookies.map(\.key) == first.cookies.map(\.key))
        #expect(second.cookies.map(\.value) == first.cookies.map(\.value))
        #expect(second.cookies.map(\.expires) == first.cookies.map(\.expires))
        #expect(second.cookies.map(\.isSecure) == first.cookies.map(\.isSecure))
        #expect(second.cookies.map(\.isHTTPOnly) == first.cookies.map(\.isHTTPOnly))
        if format == .json { #expect(second.cookies == first.cookies) }
        #expect(second.cookies(for: "https://h.test/").map(\.name) == ["session", "until", "", "lax"])
    }

    /// Found by the fuzzer: a server may set a value that contains "=" without a name.
    @Test(arguments: CookieJar.FileFormat.allCases)
    func namelessCookieWithAnEqualsSignSurvives(_ format: CookieJar.FileFormat) async throws {
        let first = try await jar("cookies", format)
        try first.set(field: "=a=b; Path=/", from: "https://h.test/")
        try await first.save()
        let second = try await jar("cookies", format)
        #expect(second.skippedLines == [] && second.lookUp("https://h.test/")?.field == "a=b")
    }

    @Test func netscapeFileHasTheLinesOfCurl() async throws {
        let jar = try await jar()
        for cookie in cookies { try jar.set(cookie) }
        try await jar.save()
        let time = Int64(later.timeIntervalSince1970)
        #expect(
            text("cookies").split(separator: "\n") == [
                "# Netscape HTTP Cookie File", "# Written by Curlew.",
                "#HttpOnly_h.test\tFALSE\t/\tTRUE\t0\tsession\t1",
                ".example.com\tTRUE\t/x\tFALSE\t0\tsite\ta b=c\"",
                "#HttpOnly_h.test\tFALSE\t/\tTRUE\t\(time)\tuntil\tü",
                "#HttpOnly_h.test\tFALSE\t/\tTRUE\t0\t\tnameless",
                "#HttpOnly_127.0.0.1\tFALSE\t/\tFALSE\t0\tempty\t",
            ])
    }

    @Test func fileIsForThisUserOnlyAndReplacedAtomically() async throws {
        let jar = try await jar()
        #expect(folder.names == [])
        try jar.set(cookies[0])
        try await jar.save()
        #expect(folder.names == ["cookies"])
        let attributes = try FileManager.default.attributesOfItem(atPath: folder("cookies"))
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        #expect(jar.file == folder("cookies") && CookieJar().file == nil)
        // Nothing to save leaves the file as it is.
        let before = DiskFile.identity(of: folder("cookies"))
        try await jar.save()
        #expect(DiskFile.identity(of: folder("cookies")) == before)
    }

    @Test func cookieWithATabStaysInMemory() async throws {
        let jar = try await jar()
        try jar.set(Cookie("a", "b\tc", host: "h.test"))
        try jar.set(Cookie("d", "e", host: "h.test"))
        for _ in 0..<2 {
            try await jar.save()
            #expect(jar.cookies.map(\.name) == ["a", "d"])
        }
        #expect(!text("cookies").contains("b\tc"))
        #expect(try await self.jar().cookies.map(\.name) == ["d"])
        let json = try await self.jar("json", .json)
        try json.set(Cookie("a", "b\tc", host: "h.test"))
        try await json.save()
        #expect(try await self.jar("json", .json).cookies.map(\.value) == ["b\tc"])
    }

    // MARK: Merging

    @Test(arguments: CookieJar.FileFormat.allCases)
    func jarsOfOneFileKeepEachOthersCookies(_ format: CookieJar.FileFormat) async throws {
        let (one, other) = (try await jar("cookies", format), try await jar("cookies", format))
        try one.set(Cookie("a", "one", host: "h.test"))
        try other.set(Cookie("b", "other", host: "h.test"))
        try await one.save()
        try await other.save()
        #expect(Set(other.cookies.map(\.name)) == ["a", "b"])
        try await one.save()
        #expect(Set(one.cookies.map(\.name)) == ["a", "b"])
        // The later change wins.
        try one.set(Cookie("a", "1", host: "h.test"))
        try other.set(Cookie("a", "2", host: "h.test"))
        try await one.save()
        try await other.save()
        try await one.save()
        #expect(one.cookies(for: "https://h.test/").first { $0.name == "a" }?.value == "2")
        // A removal reaches the other jar, and does not come back.
        one.remove(Cookie("b", "", host: "h.test"))
        try await one.save()
        try await other.save()
        #expect(other.cookies.map(\.name) == ["a"])
        #expect(try await jar("cookies", format).cookies.map(\.name) == ["a"])
    }

    @Test func olderChangeDoesNotReplaceALaterOne() async throws {
        let (one, other) = (try await jar("cookies", .json), try await jar("cookies", .json))
        try one.set(Cookie("a", "earlier", host: "h.test"))
        try other.set(Cookie("a", "later", host: "h.test"))
        try await other.save()
        try await one.save()
        #expect(one.cookies.map(\.value) == ["later"])
        #expect(try await jar("cookies", .json).cookies.map(\.value) == ["later"])
    }

    @Test(arguments: CookieJar.FileFormat.allCases)
    func removalOfAllReachesCookiesOfOtherJars(_ format: CookieJar.FileFormat) async throws {
        let (one, other) = (try await jar("cookies", format), try await jar("cookies", format))
        try other.set(Cookie("unseen", "1", host: "h.test"))
        try await other.save()
        one.removeAll()
        try one.set(Cookie("new", "1", host: "h.test"))
        try await one.save()
        #expect(one.cookies.map(\.name) == ["new"])
        try await other.save()
        #expect(other.cookies.map(\.name) == ["new"])
    }

    /// A server ends a cookie that this jar has not read yet.
    @Test func expiredSetCookieRemovesTheCookieOfTheFile() async throws {
        let (one, other) = (try await jar(), try await jar())
        try other.set(Cookie("sid", "1", host: "h.test"))
        try await other.save()
        try one.set(field: "sid=; Max-Age=0; Path=/", from: "https://h.test/")
        try await one.save()
        #expect(try await jar().cookies == [])
    }

    @Test(arguments: CookieJar.FileFormat.allCases)
    func manyJarsOfOneFileLoseNothing(_ format: CookieJar.FileFormat) async throws {
        let path = folder("cookies")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<8 {
                group.addTask {
                    let jar = try await CookieJar(file: path, format: format)
                    for count in 0..<20 {
                        try jar.set(Cookie("c\(count)", "\(number)", host: "h\(number).test"))
                        if count % 5 == 0 { try await jar.save() }
                    }
                    try await jar.save()
                }
            }
            try await group.waitForAll()
        }
        #expect(try await jar("cookies", format).cookies.count == 160)
    }

    /// A change of the jar replaces all lines of a cookie, not only the first.
    @Test func lastLineOfACookieCounts() async throws {
        folder.write("cookies", Array("h.test\tFALSE\t/\tTRUE\t0\ta\t1\nh.test\tFALSE\t/\tTRUE\t0\ta\t2\n".utf8))
        let jar = try await jar()
        #expect(jar.cookies.map(\.value) == ["2"])
        try jar.set(Cookie("a", "3", host: "h.test"))
        try await jar.save()
        let expired = "h.test\tFALSE\t/\tTRUE\t0\ta\t1\nh.test\tFALSE\t/\tTRUE\t1\ta\t2\n"
        #expect(try CookieJar(contents: Data(expired.utf8)).cookies == [])
        #expect(jar.cookies.map(\.value) == ["3"] && text("cookies").split(separator: "\n").count == 3)
    }

    /// A file with many cookies of one domain, some of them twice.
    @Test func fileWithTooManyCookiesIsCutToTheLimits() async throws {
        let lines = (0..<12_000).map { ".big.test\tTRUE\t/\tTRUE\t0\tn\($0 % 10_000)\t\($0)" }
        folder.write("cookies", Array(lines.joined(separator: "\n").utf8))
        let jar = try await jar("cookies")
        #expect(jar.cookies.count == 180)
        let values = jar.cookies(for: "https://big.test/").compactMap { Int($0.value) }
        #expect(values.count == 180 && values.allSatisfy { $0 >= 2000 })
    }

    // MARK: Saving

    @Test(arguments: CookieJar.FileFormat.allCases)
    func emptiedFileGetsAllCookiesAgain(_ format: CookieJar.FileFormat) async throws {
        let jar = try await jar("cookies", format)
        for cookie in cookies { try jar.set(cookie) }
        try await jar.save()
        for step in 0..<3 {
            switch step {
            case 0: folder.write("cookies", [])
            case 1: folder.write("cookies", [0x0A])
            default: try FileManager.default.removeItem(atPath: folder("cookies"))
            }
            try await jar.save()
            #expect(jar.cookies.map(\.key) == cookies.map(\.key))
            #expect(try await self.jar("cookies", format).cookies.count == cookies.count)
            try jar.set(Cookie("step", "\(step)", host: "step.test"))
            try await jar.save()
            #expect(try await self.jar("cookies", format).cookies.count == cookies.count + 1)
            jar.removeAll(ofDomain: "step.test")
            try await jar.save()
        }
    }

    @Test func filesBesideTheFileStay() async throws {
        folder.write("cookies.new", [1])
        let jar = try await jar()
        try jar.set(cookies[0])
        try await jar.save()
        #expect(folder.bytes("cookies.new") == [1] && folder.names.sorted() == ["cookies", "cookies.new"])
    }

    /// The records of removals are bounded, too.
    @Test func removalsOfAllForgetTheChangesBefore() async throws {
        let jar = try await jar()
        try jar.set(Cookie("kept", "1", host: "h.test"))
        try await jar.save()
        for number in 0..<50 {
            try jar.set(Cookie("n\(number)", "1", host: "h.test"))
            if number.isMultiple(of: 2) { jar.removeAll() } else { jar.removeAll(ofDomain: "h.test") }
        }
        #expect(jar.state.withLock { $0.file?.pending.isEmpty } == true)
        try await jar.save()
        #expect(try await self.jar().cookies == [])
    }

    /// An observer can tell an expiry and an eviction from a removal.
    @Test func mergeReportsWhyCookiesEnd() async throws {
        let now = Lock(Date())
        let file = SharedFile(folder("cookies"))
        let limits = CookieTable.Limits(perOwner: 2, total: 10)
        let first = try await jar()
        try first.set(Cookie("old", "1", host: "old.test", expires: now.withLock(\.self) + 10))
        for name in ["a", "b"] { try first.set(Cookie(name, "1", host: "h.test")) }
        try first.set(Cookie("gone", "1", host: "gone.test"))
        try await first.save()
        let jar = CookieJar(
            limits: limits, file: CookieJar.FileState(file, .netscape), now: { now.withLock(\.self) }, suffixes: { nil }
        )
        try await jar.save()
        #expect(jar.cookies.count == 4)

        let lines = text("cookies").split(separator: "\n").filter { !$0.contains("gone.test") }
        let more = "h.test\tFALSE\t/\tTRUE\t0\tc\t1"
        folder.write("cookies", Array((lines.map(String.init) + [more]).joined(separator: "\n").utf8))
        var changes = jar.changes.makeAsyncIterator()
        now.withLock { $0 += 20 }
        try await jar.save()
        try jar.set(Cookie("end", "1", host: "end.test"))
        var reasons: [String: CookieJar.Removal] = [:]
        while let change = await changes.next() {
            if case .removed(let cookie, let reason) = change { reasons[cookie.name] = reason }
            if case .stored(let cookie, _) = change, cookie.name == "end" { break }
        }
        #expect(reasons == ["old": .expired, "gone": .removed, "a": .evicted])
    }

    @Test func changesAreWrittenWithoutACall() async throws {
        let jar = try await jar()
        try jar.set(cookies[0])
        let path = folder("cookies")
        while DiskFile.identity(of: path)?.size ?? 0 == 0 { await Task.yield() }
        #expect(text("cookies").contains("session"))
    }

    @Test(arguments: [Session.Shutdown.graceful(within: .seconds(30)), .immediate])
    func shutdownOfASessionWritesTheFile(_ mode: Session.Shutdown) async throws {
        let server = try MockServer { _ in .text("in").field("Set-Cookie", "sid=1") }
        let jar = try await jar()
        let session = Session(cookies: jar)
        _ = try await session.data(for: Request(server.url("/")))
        try await session.shutdown(mode)
        #expect(text("cookies").contains("\tsid\t1"))
    }

    @Test func shutdownThrowsIfTheFileCannotBeWritten() async throws {
        let jar = try await jar()
        let session = Session(cookies: jar)
        try jar.set(cookies[0])
        folder.write("cookies", Array("Dear diary".utf8))
        let error = try await networkError { try await session.shutdown() }
        #expect(error.kind == .destinationFailed && text("cookies") == "Dear diary")
    }

    /// Another program wrote more cookies than a jar keeps, and text that is not UTF-8.
    @Test func largeFileIsCutToTheLimits() async throws {
        let header = Array("# Netscape HTTP Cookie File\n".utf8)
        let lines = (0..<21_000).map { "h\($0 / 100).test\tFALSE\t/\tFALSE\t0\tn\($0)\tv\n" }.joined()
        let latin = Array("latin.test\tFALSE\t/\tFALSE\t0\ta\t".utf8) + [0xE9, 0x0A]
        folder.write("cookies", header + latin + Array(lines.utf8))
        let jar = try await jar()
        #expect(jar.cookies.count == 3000 && jar.skippedLines.count == 1000)
        folder.write("cookies", header + latin)
        #expect(try await self.jar().cookies(for: "http://latin.test/").map(\.value) == ["\u{E9}"])
    }

    @Test func failedSaveIsReportedAndChangesAreKept() async throws {
        let jar = try await jar("cookies")
        var changes = jar.changes.makeAsyncIterator()
        folder.write("cookies", Array("Dear diary".utf8))
        try jar.set(cookies[0])
        var path: String?
        while path == nil, let change = await changes.next() {
            if case .fileFailed(let failed, _) = change { path = failed }
        }
        #expect(path == folder("cookies") && jar.cookies.count == 1)
        folder.write("cookies", [])
        try await jar.save()
        #expect(text("cookies").contains("session"))
    }

    /// A server sets and ends cookies while the file cannot be written.
    @Test func changesThatWaitForTheFileAreBounded() async throws {
        try FileManager.default.createDirectory(atPath: folder("missing"), withIntermediateDirectories: false)
        let jar = try await jar("missing/cookies")
        try FileManager.default.removeItem(atPath: folder("missing"))
        try jar.set(Cookie("mine", "1", host: "h.test"))
        jar.remove(Cookie("mine", "", host: "h.test"))
        for number in 0..<10_500 { try? jar.set(field: "n\(number)=; Max-Age=0", from: "https://h.test/") }
        try jar.set(Cookie("kept", "1", host: "h.test"))
        for _ in 0..<100 { jar.removeSessionCookies() }
        try jar.set(Cookie("kept", "2", host: "h.test"))
        let file = jar.state.withLock { $0.file }
        #expect((file?.pending.count ?? 0) <= 10_000 && file?.removals.count == 1)
        // The removal by the program is not forgotten.
        #expect(file?.pending.values.contains { $0.isRequested } == true)
        try FileManager.default.createDirectory(atPath: folder("missing"), withIntermediateDirectories: false)
        try await jar.save()
        #expect(try await self.jar("missing/cookies").cookies.map(\.value) == ["2"])
    }

    // MARK: Ephemeral sessions

    @Test func ephemeralSessionRefusesFiles() async throws {
        let server = try MockServer { _ in .text("x") }
        let jar = try await jar()
        let hsts = try await HSTSStore(file: folder("hsts"))
        for session in [Session(.ephemeral, cookies: jar), Session(.ephemeral, hsts: hsts)] {
            let error = try await networkError { _ = try await session.data(for: Request(server.url("/"))) }
            #expect(error.kind == .invalidRequest && error.message.contains("ephemeral"))
        }
        #expect(throws: NetworkError.self) {
            try Session.Configuration {
                $0.isEphemeral = true
                $0.tls.keyLogFile = "/tmp/keys"
            }.validate()
        }
        let session = Session(.ephemeral)
        _ = try await session.data(for: Request(server.url("/")))
        #expect(session.cookies?.file == nil && session.hsts?.file == nil && session.configuration.isEphemeral)
        let decoded = try JSONDecoder().decode(
            Session.Configuration.self, from: JSONEncoder().encode(Session.Configuration.ephemeral))
        #expect(decoded.isEphemeral)
    }
}
