// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

// Snippets of Documentation/Cookies.md, README.md and the doc comments about cookies and HSTS, word for word.

// MARK: Cookies.md

private func guideToLogin(_ name: String, _ password: String) async throws -> String {
    let jar = try await CookieJar(file: "cookies.txt")
    let shop = Client("https://shop.example.com", session: Session(cookies: jar))
    if jar.cookie(named: "sid", for: "https://shop.example.com/account") == nil {
        try await shop.post("login", .form(["user": name, "password": password]))
    }
    let account = try await shop.get("account", using: .text)
    try await jar.save()
    return account
}

private func guideToRefusals(_ jar: CookieJar) {
    for refusal in jar.refusals { print(refusal) }
}

private func guideToTasks(_ jar: CookieJar, _ url: String) throws {
    _ = jar.cookie(named: "csrftoken", for: url)?.value
    try jar.set(Cookie("theme", "dark", host: "example.com", isSecure: false))
    let data = jar.contents(format: .json)
    _ = try CookieJar(contents: data, format: .json)
}

private func guideToHSTS() async throws -> Session {
    let hsts = try await HSTSStore(file: "hsts.txt")
    try hsts.set(HSTSStore.Host("example.com", includesSubdomains: true))
    let session = Session(hsts: hsts)
    return session
}

// MARK: Doc comments

// Cookies/Cookie.swift
private func snippetOfCookie(_ jar: CookieJar) throws {
    try jar.set(Cookie("theme", "dark", host: "example.com"))
    for cookie in jar.cookies { print(cookie.name, cookie.expires.map { "\($0)" } ?? "until the end of the session") }
}

// Cookies/Cookie+Refusal.swift
private func snippetOfRefusal(_ jar: CookieJar) {
    for refusal in jar.refusals where refusal.reason == .publicSuffix { print(refusal) }
}

// Cookies/CookieJar.swift
private func snippetOfJar(_ login: Request) async throws {
    let jar = try await CookieJar(file: "cookies.txt")
    let session = Session(cookies: jar)
    _ = try await session.data(for: login)
    print(jar.cookies(for: "https://example.com/account"))
    try await jar.save()
}

// HSTS/HSTSStore.swift
private func snippetOfHSTSStore() async throws -> Session {
    let hsts = try await HSTSStore(file: "hsts.txt")
    try hsts.set(HSTSStore.Host("example.com", includesSubdomains: true, expires: .distantFuture))
    let session = Session(hsts: hsts)
    return session
}

/// The steps of the guide "Log in and stay logged in", with a server.
@Suite(.timeLimit(.minutes(5)))
struct LoginTests {
    @Test func programStaysLoggedIn() async throws {
        let server = try MockServer()
        server.on("POST", "/login") { request in
            guard request.bodyText == "password=sesame&user=anna" else { return .status(401) }
            return .redirect(to: "/account", status: 303).field("Set-Cookie", "sid=31d4; Path=/; HttpOnly")
                .field("Set-Cookie", "theme=dark; Path=/")
        }
        server.on("GET", "/account") { request in
            // The cookie without a login must not look like one.
            request.field("Cookie")?.contains("sid=31d4") == true ? .text("Anna") : .status(403)
        }
        let file = FileManager.default.temporaryDirectory.appending(path: "curlew-login-\(UUID())").path
        defer { try? FileManager.default.removeItem(atPath: file) }
        for run in 0..<2 {
            let jar = try await CookieJar(file: file)
            if run == 0 { try jar.set(Cookie("consent", "1", host: "127.0.0.1")) }
            let shop = Client(try BaseURL(server.url("/")), session: Session(cookies: jar))
            if jar.cookie(named: "sid", for: server.url("/account")) == nil {
                #expect(run == 0)
                try await shop.post("login", .form(["user": "anna", "password": "sesame"]))
            }
            #expect(try await shop.get("account", using: .text) == "Anna")
            try await jar.save()
        }
        #expect(server.requests.map(\.path) == ["/login", "/account", "/account", "/account"])
    }
}
