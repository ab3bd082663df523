// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine
import CurlewSupport
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// Cookies of whole transfers.
@Suite(.timeLimit(.minutes(5)))
struct CookieTransferTests {
    /// A server that sets a cookie at `/in` and returns the request's `Cookie` field as the body.
    private func server() throws -> MockServer {
        let server = try MockServer { .text($0.field("Cookie") ?? "-") }
        server.on("GET", "/in", .text("in").field("Set-Cookie", "sid=31d4; Path=/"))
        return server
    }

    private func text(_ session: Session, _ request: Request) async throws -> String {
        String(decoding: try await session.data(for: request).0, as: UTF8.self)
    }

    @Test(arguments: Taking.allCases)
    func cookieOfAResponseIsSentWithLaterRequests(_ way: Taking) async throws {
        let server = try server()
        let session = Session()
        _ = try await way(Request(server.url("/in")), by: session)
        #expect(try await way(Request(server.url("/a")), by: session).body == Data("sid=31d4".utf8))
        #expect(try await way(Request(server.url("/b?c")), by: session).body == Data("sid=31d4".utf8))
        #expect(server.requests.map { $0.fields("Cookie") } == [[], ["sid=31d4"], ["sid=31d4"]])
    }

    /// A transfer is planned when it is created, but its cookies are those at its start.
    @Test(arguments: Taking.allCases.filter { $0 != .data })
    func transferThatWaitsForItsStartSendsTheCookiesOfItsStart(_ way: Taking) async throws {
        let server = try server()
        let session = Session()
        let transfer = session.transfer(Request(.post, server.url("/a"), body: .text("body")))
        let unused = session.transfer(Request(server.url("/a")))
        _ = try await session.data(for: Request(server.url("/in")))
        let body = try await transfer.value
        #expect(String(decoding: body, as: UTF8.self) == "sid=31d4")
        #expect(server.requests.map(\.bodyText) == ["", "body"])
        unused.cancel()
        try await session.idle()
        #expect(server.requestCount == 2)
    }

    @Test(arguments: [301, 302, 303, 307, 308])
    func redirectMaySetTheCookieThatItsTargetNeeds(_ status: Int) async throws {
        let server = try server()
        server.on(nil, "/login", .redirect(to: "/a", status: status).field("Set-Cookie", "step=2; Path=/"))
        let session = Session()
        #expect(try await text(session, Request(.post, server.url("/login"), body: .text("x"))) == "step=2")
        let all = try await session.data(for: Request(server.url("/a"))).1
        #expect(all.status == .ok && session.cookies?.cookies.map(\.name) == ["step"])
    }

    /// The redirect to another origin removes the caller's field, but not the cookies of the jar.
    @Test func redirectToAnotherOriginSendsTheCookiesOfThatOrigin() async throws {
        let (first, second) = (try server(), try server())
        first.on("GET", "/out", .redirect(to: second.url("/in2")))
        second.on("GET", "/in2") { .text($0.field("Cookie") ?? "-") }
        let session = Session { $0.tcp.addresses = ["one.test": ["127.0.0.1"], "two.test": ["127.0.0.1"]] }
        first.on("GET", "/out", .redirect(to: "http://two.test:\(second.port)/a"))
        try session.cookies?.set(Cookie("own", "2", host: "two.test", isSecure: false))
        try session.cookies?.set(Cookie("own", "1", host: "one.test", isSecure: false))
        let request = Request("http://one.test:\(first.port)/out", fields: [.cookie: "mine=1"])
        #expect(try await text(session, request) == "own=2")
        #expect(first.requests.last?.field("Cookie") == "mine=1; own=1")
    }

    @Test func challengeMaySetTheCookieThatItsResponseNeeds() async throws {
        let server = try MockServer { request in
            guard request.field("Authorization") == nil else { return .text(request.field("Cookie") ?? "-") }
            return .status(401).field("WWW-Authenticate", "Digest realm=r, nonce=n, qop=auth")
                .field("Set-Cookie", "turn=1")
        }
        let session = Session(interceptors: [.digest("anna", "open sesame")])
        #expect(try await text(session, Request(server.url("/"))) == "turn=1")
        #expect(server.requests.map { $0.field("Cookie") } == [nil, "turn=1"])
    }

    @Test func refusedDownloadStoresItsCookie() async throws {
        let server = try server()
        server.on("GET", "/file", .text("no", status: 403).field("Set-Cookie", "seen=1; Path=/"))
        let folder = try Folder()
        let session = Session()
        let error = try await networkError {
            _ = try await session.download(Request(server.url("/file")), to: .directory(folder.path))
        }
        #expect(error.kind == .unacceptableStatus)
        #expect(try await text(session, Request(server.url("/a"))) == "seen=1")
    }

    @Test(arguments: [Taking.data, .value, .started, .bytes])
    func responseThatBreaksOffStillSetsItsCookie(_ way: Taking) async throws {
        let server = try server()
        server.on(
            "GET", "/broken", .text("broken body").field("Set-Cookie", "seen=1; Path=/").fault(.close, at: .body(3)))
        let session = Session()
        let error = try await networkError { _ = try await way(Request(server.url("/broken")), by: session) }
        #expect(error.kind == .connectionLost)
        #expect(try await text(session, Request(server.url("/a"))) == "seen=1")
    }

    @Test func retriedResponseSetsItsCookie() async throws {
        let server = try MockServer { .text($0.field("Cookie") ?? "-") }
        server.on("GET", "/", inOrder: [.status(503).field("Set-Cookie", "try=1"), .text("there")])
        let session = Session { $0.retry = RetryPolicy(limit: 1, backoff: .none) }
        _ = try await session.data(for: Request(server.url("/")))
        #expect(server.requests.map { $0.field("Cookie") } == [nil, "try=1"])
    }

    /// An interceptor makes a new request, which does not know of the redirect.
    @Test func fieldOfTheSessionDoesNotReachAnotherOrigin() async throws {
        let (first, second) = (try server(), try server())
        first.on("GET", "/out", .redirect(to: "http://two.test:\(second.port)/a"))
        let renewing: any Interceptor = .intercept(scope: .attempt) { request, _, next in
            try await next(Request(request.url))
        }
        let session = Session(interceptors: [renewing]) {
            $0.fields[.cookie] = "secret=1"
            $0.tcp.addresses = ["one.test": ["127.0.0.1"], "two.test": ["127.0.0.1"]]
        }
        try session.cookies?.set(Cookie("own", "2", host: "two.test", isSecure: false))
        #expect(try await text(session, Request("http://one.test:\(first.port)/out")) == "own=2")
        #expect(first.requests.last?.field("Cookie") == "secret=1")
    }

    // MARK: The caller's field

    @Test func fieldOfTheCallerIsMergedByName() async throws {
        let server = try server()
        let session = Session()
        for name in ["a", "b", "c"] { try session.cookies?.set(field: "\(name)=jar", from: server.url("/")) }
        let request = Request(server.url("/"), fields: [.cookie: "b=mine; plain"])
        #expect(try await text(session, request) == "b=mine; plain; a=jar; c=jar")
        #expect(server.requests.last?.fields("Cookie").count == 1)
        let both = Request(server.url("/"), fields: ["Cookie": "a=1", "cookie": "d=2"])
        #expect(try await text(session, both) == "a=1; d=2; b=jar; c=jar")
    }

    @Test func fieldOfTheSessionIsMergedByName() async throws {
        let server = try server()
        let session = Session { $0.fields[.cookie] = "common=1; a=2" }
        try session.cookies?.set(field: "a=jar", from: server.url("/"))
        try session.cookies?.set(field: "b=jar", from: server.url("/"))
        #expect(try await text(session, Request(server.url("/"))) == "common=1; a=2; b=jar")
        #expect(try await text(session, Request(server.url("/"), fields: [.cookie: "x=y"])) == "x=y; a=jar; b=jar")
    }

    // MARK: Uses

    @Test(arguments: Request.CookieUse.allCases, Taking.allCases)
    func requestDecidesHowTheJarIsUsed(_ use: Request.CookieUse, _ way: Taking) async throws {
        let server = try server()
        let session = Session()
        try session.cookies?.set(field: "old=1; Path=/", from: server.url("/"))
        var request = Request(server.url("/in"))
        request.options.cookies = use
        _ = try await way(request, by: session)
        #expect(server.requests.last?.field("Cookie") == (use == .none ? nil : "old=1"))
        #expect(session.cookies?.cookies.map(\.name) == (use == .jar ? ["old", "sid"] : ["old"]))
    }

    @Test func sessionWithoutAJarHandlesNoCookies() async throws {
        let server = try server()
        let session = Session(cookies: nil)
        _ = try await text(session, Request(server.url("/in")))
        #expect(session.cookies == nil)
        #expect(try await text(session, Request(server.url("/a"))) == "-")
        #expect(try await text(session, Request(server.url("/a"), fields: [.cookie: "mine=1"])) == "mine=1")
    }

    @Test func sessionsMayShareAJar() async throws {
        let server = try server()
        let jar = CookieJar()
        let (one, other) = (Session(cookies: jar), Session(cookies: jar))
        _ = try await text(one, Request(server.url("/in")))
        #expect(try await text(other, Request(server.url("/a"))) == "sid=31d4")
        #expect(try await text(one.copy(), Request(server.url("/a"))) == "sid=31d4")
        #expect(try await text(Session(), Request(server.url("/a"))) == "-")
        #expect(try await text(one.copy { $0.isEphemeral = true }, Request(server.url("/a"))) == "-")
    }

    @Test func clientPassesTheOptionOn() async throws {
        let server = try server()
        let session = Session()
        let api = try Client(BaseURL(server.url("/")), session: session)
        _ = try await text(session, Request(server.url("/in")))
        let none = try await api.get("a", options: .cookies(.none), using: .text)
        #expect(none == "-")
        let sent = try await api.get("a", using: .text)
        #expect(sent == "sid=31d4")
    }

    // MARK: The chain

    /// A response without `Set-Cookie` must not cost a run of the chain.
    @Test func responseWithoutCookiesBypassesTheChain() async throws {
        let server = try server()
        let session = Session()
        try session.cookies?.set(field: "a=1", from: server.url("/"))
        let chain = session.core.chain(for: Request(server.url("/")))
        let folded = try #require(chain.fold(Request(server.url("/"))))
        #expect(folded.request?.fields[.cookie] == "a=1")
        #expect(!folded.interest.values.includes(status: 200, []))
        #expect(folded.interest.values.includes(status: 200, .setCookie))
        #expect(chain.fold(Request("http://other.test/"))?.request == nil)
        var quiet = Request(server.url("/"))
        quiet.options.cookies = .readOnly
        #expect(chain.fold(quiet)?.interest.values.includes(status: 200, .setCookie) == false)
    }

    /// The cookies of the jar are added behind the interceptors of the user.
    @Test func interceptorsDoNotSeeTheCookiesOfTheJar() async throws {
        let server = try server()
        let seen = Lock<[String?]>([])
        var request = Request(server.url("/a"))
        request.interceptors = [
            .intercept(scope: .attempt) { request, _, next in
                seen.withLock { $0.append(request.fields[.cookie]) }
                return try await next(request)
            }
        ]
        let session = Session()
        try session.cookies?.set(field: "a=1; Path=/", from: server.url("/"))
        #expect(try await text(session, request) == "a=1")
        #expect(seen.withLock { $0 } == [nil])
    }

    @Test func manyTransfersShareAJar() async throws {
        let server = try MockServer { request in
            .text("x").field("Set-Cookie", "c\(request.path.dropFirst())=1; Path=/")
        }
        let session = Session()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<100 {
                group.addTask { _ = try await session.data(for: Request(server.url("/\(number)"))) }
            }
            try await group.waitForAll()
        }
        #expect(Set(session.cookies?.cookies.map(\.name) ?? []) == Set((0..<100).map { "c\($0)" }))
    }
}
