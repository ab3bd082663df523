// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// Cookie and HSTS files shared with curl.
@Suite(.enabledIfInstalled(.curl), .peer(.curl), .timeLimit(.minutes(5)))
struct CookieCurlTests {
    private let folder: Folder
    private let server: MockServer

    init() throws {
        folder = try Folder()
        server = try MockServer { .text($0.field("Cookie") ?? "-") }
        var response = MockResponse.text("in")
        let fields = [
            "sid=31d4; Path=/", "deep=1; Path=/deep", "kept=x y; Max-Age=1000; Path=/", "shown=1; HttpOnly; Path=/",
            "quoted=\"a,b\"; Path=/", "empty=; Path=/",
        ]
        for field in fields { response = response.field("Set-Cookie", field) }
        server.on("GET", "/in", response)
    }

    private func curl(_ arguments: String) async throws -> String {
        String(decoding: try await ShellCommand.output("curl -s \(arguments)"), as: UTF8.self)
    }

    private func text(_ session: Session, _ path: String) async throws -> String {
        String(decoding: try await session.data(for: Request(server.url(path))).0, as: UTF8.self)
    }

    private func pairs(_ field: String) -> Set<String> { Set(field.split(separator: "; ").map(String.init)) }

    @Test func jarReadsTheFileOfCurl() async throws {
        _ = try await curl("-c '\(folder("cookies"))' '\(server.url("/in"))'")
        let jar = try await CookieJar(file: folder("cookies"))
        #expect(jar.skippedLines == [])
        let session = Session(cookies: jar)
        for path in ["/", "/deep/er"] {
            let expected = try await curl("-b '\(folder("cookies"))' '\(server.url(path))'")
            #expect(pairs(try await text(session, path)) == pairs(expected) && expected.contains("sid=31d4"))
        }
        #expect(jar.cookies.filter(\.isHTTPOnly).map(\.name) == ["shown"])
        #expect(jar.cookies.filter { !$0.isSession }.map(\.name) == ["kept"])
    }

    @Test func curlReadsTheFileOfAJar() async throws {
        let jar = try await CookieJar(file: folder("cookies"))
        let session = Session(cookies: jar)
        _ = try await text(session, "/in")
        try await jar.save()
        for path in ["/", "/deep/er"] {
            let expected = try await text(session, path)
            #expect(pairs(try await curl("-b '\(folder("cookies"))' '\(server.url(path))'")) == pairs(expected))
        }
        // curl replaces the file without a lock, and the jar reads what curl has changed.
        server.on(
            "GET", "/more", .text("in").field("Set-Cookie", "more=1; Path=/").field("Set-Cookie", "sid=2; Path=/"))
        let path = folder("cookies")
        _ = try await curl("-b '\(path)' -c '\(path)' '\(server.url("/more"))'")
        try await jar.save()
        #expect(Set(jar.cookies.map(\.name)) == ["sid", "deep", "kept", "shown", "quoted", "empty", "more"])
        #expect(jar.cookies.first { $0.name == "sid" }?.value == "2")
    }

    @Test func curlAndAStoreShareTheirHosts() async throws {
        let store = try await HSTSStore(file: folder("hsts"))
        try store.set(
            HSTSStore.Host("kept.test", includesSubdomains: true, expires: Date(timeIntervalSinceNow: 10_000)))
        try await store.save()
        // curl reads the file, and writes it again with its own comment.
        let arguments =
            "--hsts '\(folder("hsts"))' -o /dev/null -w '%{scheme} %{url_effective}' --resolve a.kept.test:443:127.0.0.1"
        let output = try await curl("\(arguments) --connect-timeout 5 http://a.kept.test/")
        #expect(output.hasPrefix("HTTPS") || output.contains("https://"))
        let again = try await HSTSStore(file: folder("hsts"))
        #expect(again.hosts == store.hosts && again.isKnown("b.a.kept.test"))
    }
}

/// Cookie files shared with wget.
@Suite(.enabledIfInstalled(.wget), .peer(.wget), .timeLimit(.minutes(5)))
struct CookieWgetTests {
    @Test func wgetAndAJarShareAFile() async throws {
        let folder = try Folder()
        let server = try MockServer { .text($0.field("Cookie") ?? "-") }
        let response = MockResponse.text("in").field("Set-Cookie", "sid=31d4; Path=/")
        server.on("GET", "/in", response.field("Set-Cookie", "kept=1; Max-Age=1000; Path=/"))
        let file = folder("cookies")
        let save = "--save-cookies='\(file)' --keep-session-cookies"
        _ = try await ShellCommand.output("wget -q -O /dev/null \(save) '\(server.url("/in"))'")
        let jar = try await CookieJar(file: file)
        #expect(jar.skippedLines == [])
        let session = Session(cookies: jar)
        let body = try await session.data(for: Request(server.url("/"))).0
        #expect(Set(String(decoding: body, as: UTF8.self).split(separator: "; ")) == ["sid=31d4", "kept=1"])
        try jar.set(field: "more=2; Path=/; Max-Age=1000", from: server.url("/"))
        try await jar.save()
        let sent = try await ShellCommand.output("wget -q -O - --load-cookies='\(file)' '\(server.url("/"))'")
        #expect(Set(String(decoding: sent, as: UTF8.self).split(separator: "; ")).contains("more=2"))
    }
}

/// Cookies of Werkzeug, which quotes and escapes values.
@Suite(.enabledIfInstalled(.werkzeug), .peer(.werkzeug), .timeLimit(.minutes(5)))
struct CookieWerkzeugTests {
    struct Setting: Codable, Sendable {
        var name: String
        var value: String
        var path = "/"
        var maxAge: Int?
        var httponly = false
        var samesite: String?
    }

    @Test func cookiesReturnAsTheyWereSet() async throws {
        let api = try WerkzeugServer.shared().client()
        let settings = [
            Setting(name: "sid", value: "31d4", httponly: true, samesite: "Lax"),
            Setting(name: "spaces", value: "a b  c"), Setting(name: "special", value: "a;b,c=\"d\"\\e"),
            Setting(name: "umlaut", value: "größe 漢👴🏻"), Setting(name: "empty", value: ""),
            Setting(name: "deep", value: "1", path: "/api/cookies/deep"),
            Setting(name: "aged", value: "1", maxAge: 100),
        ]
        try await api.post("cookies", .json(settings), using: .empty)
        #expect(api.session.cookies?.cookies.count == settings.count)
        let read: [String: String] = try await api.get("cookies")
        #expect(
            read == Dictionary(uniqueKeysWithValues: settings.filter { $0.path == "/" }.map { ($0.name, $0.value) }))
        let deep: [String: String] = try await api.get("cookies/deep/x")
        #expect(deep["deep"] == "1" && deep.count == settings.count)
        // The server ends all cookies.
        try await api.delete("cookies", using: .empty)
        #expect(api.session.cookies?.cookies.map(\.name) == ["deep"])
    }
}
