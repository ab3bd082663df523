// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import Curlew
import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Testing

/// The target and method of redirected requests, and the responses that are not redirected (RFC 9110 §15.4).
@Suite(.timeLimit(.minutes(5)))
struct RedirectTests {
    private struct Odd: Error {}

    // MARK: Statuses and methods

    typealias MethodRow = (status: Int, method: Curlew.Method, next: String, keepsBody: Bool)

    static let methodRows: [MethodRow] = [
        (301, .get, "GET", false), (301, .post, "GET", false), (301, .put, "PUT", true), (301, .head, "HEAD", false),
        (302, .get, "GET", false), (302, .post, "GET", false), (302, .put, "PUT", true), (302, .head, "HEAD", false),
        (303, .get, "GET", false), (303, .post, "GET", false), (303, .put, "GET", false), (303, .head, "HEAD", false),
        (307, .get, "GET", false), (307, .post, "POST", true), (307, .put, "PUT", true), (307, .head, "HEAD", false),
        (308, .get, "GET", false), (308, .post, "POST", true), (308, .put, "PUT", true), (308, .head, "HEAD", false),
    ]

    @Test(arguments: methodRows)
    func methodsChangeByStatus(_ row: MethodRow) async throws {
        let server = try MockServer { _ in .text("there") }
        server.on(nil, "/from", .redirect(to: "/to", status: row.status))
        let session = Session()
        let hasBody = row.method == .post || row.method == .put
        let body: RequestBody = hasBody ? .text("sent") : .none
        let request = Request(row.method, server.url("/from"), body: body)
        for take in Taking.allCases {
            let before = server.requestCount
            let taken = try await take(request, by: session)
            #expect(taken.body == Data((row.method == .head ? "" : "there").utf8), "\(take)")
            if let head = taken.head { #expect(head.status == .ok && head.url == server.url("/to"), "\(take)") }
            let seen = server.requests[before...]
            #expect(seen.map(\.method) == [row.method.rawValue, row.next] && seen.map(\.path) == ["/from", "/to"])
            #expect(seen.map(\.bodyText) == [hasBody ? "sent" : "", row.keepsBody ? "sent" : ""], "\(take)")
        }
        #expect(server.connectionCount == 1 && server.violations.isEmpty, "\(server.violations)")
    }

    // MARK: References

    typealias Reference = (location: String, path: String, url: String)

    static let referenceRows: [Reference] = [
        ("c", "/a/c", "/a/c#part"), ("/c", "/c", "/c#part"), ("../c?y", "/c?y", "/c?y#part"), ("./", "/a/", "/a/#part"),
        ("?y=2", "/a/b?y=2", "/a/b?y=2#part"), ("c#other", "/a/c", "/a/c#other"), ("/c#", "/c", "/c#"),
        ("//{host}/c", "/c", "/c#part"), ("http://{host}/c?z", "/c?z", "/c?z#part"),
        ("HTTP://{host}/d/../c", "/c", "/c#part"),
    ]

    @Test(arguments: referenceRows)
    func referencesAreResolvedAgainstTheURL(_ row: Reference) async throws {
        let server = try MockServer { _ in .text("there") }
        let location = row.location.replacing("{host}", with: "127.0.0.1:\(server.port)")
        server.on("GET", "/a/b", inOrder: [.redirect(to: location), .text("there")])
        let (_, head) = try await Session().data(for: Request(server.url("/a/b?x=1#part")))
        #expect(head.status == .ok)
        #expect(server.requests.map(\.target) == ["/a/b?x=1", row.path])
        // A path with dot segments is sent as the server wrote it or normalised; both name the same resource.
        #expect(head.url == server.url(row.url))
    }

    // MARK: History

    @Test(arguments: Taking.allCases)
    func historyListsTheRedirects(_ take: Taking) async throws {
        let server = try MockServer { _ in .text("there") }
        server.on("POST", "/1", .redirect(to: "/2", status: 308).field("X-Hop", "1"))
        server.on("POST", "/2", .redirect(to: "/3", status: 303))
        let request = Request(.post, server.url("/1?q=1#part"), body: .text("sent"))
        guard let head = try await take(request, by: Session()).head else { return }
        let history = head.history
        #expect(head.url == server.url("/3#part"))
        #expect(history.map(\.head.status) == [.permanentRedirect, .seeOther])
        #expect(history.map(\.method) == [.post, .post])
        #expect(history.map(\.url) == [server.url("/1?q=1#part"), server.url("/2#part")])
        #expect(history[0].head["X-Hop"] == "1" && history[0].head[.location] == "/2")
        #expect(history.allSatisfy { $0.head.history.isEmpty && $0.metrics.requestBodyBytes == 4 })
        #expect(history.map(\.metrics.isConnectionReused) == [false, true])
        #expect(history.allSatisfy { $0.metrics.responseHeadBytes > 20 && $0.metrics.total > .zero })
        #expect(server.asked == ["POST /1", "POST /2", "GET /3"] && server.connectionCount == 1)
    }

    // MARK: Results

    @Test(arguments: [300, 304, 305, 306, 301, 302, 303, 307, 308])
    func responsesWithoutRedirectAreResults(_ status: Int) async throws {
        let server = try MockServer { request in
            let script = MockResponse.text("choose", status: status)
            return (300..<307) ~= status && request.path == "/located" ? script.field("Location", "/to") : script
        }
        let path = [300, 304, 305, 306].contains(status) ? "/located" : "/"
        for take in Taking.allCases {
            let taken = try await take(Request(server.url(path)), by: Session())
            #expect(taken.body == Data((status == 304 ? "" : "choose").utf8), "\(take)")
            if let head = taken.head { #expect(head.status.code == status && head.history.isEmpty) }
        }
        #expect(Set(server.asked) == ["GET \(path)"] && server.requestCount == Taking.allCases.count)
    }

    @Test(arguments: Taking.allCases)
    func policyNeverReturnsRedirectAndRequestOverridesSession(_ take: Taking) async throws {
        let server = try MockServer { _ in .text("moved", status: 302).field("Location", "/to") }
        var request = Request(server.url("/from"))
        let never = Session { $0.redirects = .never }
        let taken = try await take(request, by: never)
        #expect(taken.body == Data("moved".utf8) && (taken.head?.status ?? .found) == .found)
        // The policy of the request overrides the policy of the session.
        request.options.redirects = RedirectPolicy.never
        #expect(try await take(request, by: Session()).body == Data("moved".utf8))
        request.options.redirects = .follow(max: 1)
        let error = try await networkError { _ = try await take(request, by: never) }
        #expect(error.kind == .tooManyRedirects)
        #expect(server.asked == ["GET /from", "GET /from", "GET /from", "GET /to"])
    }

    @Test(arguments: Taking.allCases)
    func sameOriginPolicyReturnsCrossOriginRedirect(_ take: Taking) async throws {
        let other = try MockServer()
        let pattern = PatternBody(seed: 5, length: 3 << 20)
        let server = try MockServer { _ in .redirect(to: "/2") }
        server.on("GET", "/2", .pattern(pattern, status: 307).field("Location", other.url("/")))
        let request = Request(server.url("/1"), options: Request.Options(redirects: .sameOrigin()))
        let taken = try await take(request, by: Session())
        #expect(taken.body.sha256 == pattern.sha256)
        if let head = taken.head {
            #expect(head.status == .temporaryRedirect && head.history.map(\.head.status) == [.found])
        }
        #expect(server.requestCount == 2 && other.requestCount == 0)
    }

    /// An interceptor inside redirects may send a request elsewhere, and `Location` is relative to that place.
    @Test(arguments: Taking.allCases)
    func redirectIsRelativeToTheRequestThatWasSent(_ take: Taking) async throws {
        let server = try MockServer { request in request.path == "/c/e" ? .text("end") : .redirect(to: "e") }
        let session = Session(interceptors: [
            .intercept(scope: .attempt) { request, _, next in
                var request = request
                if request.url == server.url("/a/b") { request.url = server.url("/c/d") }
                return try await next(request)
            }
        ])
        #expect(try await take(Request(server.url("/a/b")), by: session).body == Data("end".utf8))
        #expect(server.asked == ["GET /c/d", "GET /c/e"])
    }

    /// A redirect from https to http is refused although the request began with http.
    @Test func upgradedRequestIsNotDowngraded() async throws {
        let authority = try TestAuthority()
        let plain = try MockServer { _ in .text("in clear text") }
        let server = try MockServer(tls: try authority.issue()) { _ in .redirect(to: plain.url("/")) }
        let session = try Session(
            trust: CustomRoots(pem: authority.certificatePEM),
            interceptors: [
                .intercept(scope: .attempt) { request, _, next in
                    var request = request
                    if request.url == "http://example.test/" { request.url = server.url("/") }
                    return try await next(request)
                }
            ])
        let error = try await networkError { try await session.data(for: "http://example.test/") }
        #expect(error.kind == .redirectRefused && plain.requestCount == 0)
    }

    // MARK: Closures

    @TaskLocal private static var mark = "default"

    /// The code of a policy sees the task-local values of the task that starts the transfer.
    @Test(arguments: Taking.allCases)
    func customPolicySeesTheTaskLocalValuesOfTheStarter(_ take: Taking) async throws {
        let server = try MockServer { _ in .text("there") }
        server.on(nil, "/1", .redirect(to: "/2"))
        let seen = Lock("")
        let policy = RedirectPolicy.custom { _ in
            seen.withLock { $0 = RedirectTests.mark }
            return .follow
        }
        let request = Request(server.url("/1"), options: Request.Options(redirects: policy))
        let taken = try await RedirectTests.$mark.withValue("starter") { try await take(request, by: Session()) }
        #expect(taken.body == Data("there".utf8))
        #expect(seen.withLock { $0 } == "starter")
    }

    @Test(arguments: Taking.allCases)
    func customPolicyFollowsRewritesAndStops(_ take: Taking) async throws {
        let server = try MockServer { _ in .text("there") }
        server.on(nil, "/1", .redirect(to: "/2", status: 307))
        server.on(nil, "/2", .redirect(to: "/3", status: 303))
        server.on(nil, "/rewritten", .text("end", status: 308).field("Location", "/no"))
        let seen = Lock<[String]>([])
        let policy = RedirectPolicy.custom { redirect in
            seen.withLock { $0.append("\(redirect.count) \(redirect) \(redirect.isSameOrigin)") }
            await Task.yield()
            switch redirect.count {
            case 0: return .follow
            case 1:
                var next = redirect.proposed
                next.url = server.url("/rewritten")
                next.fields["X-New"] = "1"
                return .rewrite(next)
            default: return .stop
            }
        }
        let request = Request(.post, server.url("/1"), body: .text("sent"))
        let taken = try await take(request, by: Session { $0.redirects = policy })
        #expect(taken.body == Data("end".utf8))
        if let head = taken.head {
            #expect(head.status == .permanentRedirect && head.url == server.url("/rewritten"))
            #expect(head.history.map(\.url) == [server.url("/1"), server.url("/2")])
        }
        let origin = server.origin
        #expect(
            seen.withLock { $0 } == [
                "0 307: POST \(origin)/1 → POST \(origin)/2 true", "1 303: POST \(origin)/2 → GET \(origin)/3 true",
                "2 308: GET \(origin)/rewritten → GET \(origin)/no true",
            ])
        #expect(server.asked == ["POST /1", "POST /2", "GET /rewritten"])
        #expect(server.requests.map { $0.field("X-New") } == [nil, nil, "1"])
    }

    @Test(arguments: Taking.allCases, [false, true])
    func customPolicyRefusalThrowsRedirectRefused(_ take: Taking, _ byThrowing: Bool) async throws {
        let server = try MockServer { _ in .redirect(to: "/2") }
        let policy = RedirectPolicy.custom { _ in
            if byThrowing { throw Odd() }
            return .fail(Odd())
        }
        var request = Request(server.url("/1"))
        request.options.redirects = policy
        let error = try await networkError { [request] in _ = try await take(request, by: Session()) }
        #expect(error.kind == .redirectRefused && error.cause is Odd && error.response?.status == .found, "\(error)")
        #expect(server.requestCount == 1)
    }

    // MARK: Too many

    @Test(arguments: Taking.allCases, [0, 2])
    func redirectsBeyondMaximumThrowTooManyRedirects(_ take: Taking, _ max: Int) async throws {
        let server = try MockServer { request in .redirect(to: "/\((Int(request.path.dropFirst()) ?? 0) + 1)") }
        let session = Session { $0.redirects = .follow(max: max) }
        let error = try await networkError { _ = try await take(Request(server.url("/1")), by: session) }
        #expect(error.kind == .tooManyRedirects && error.phase == .receiving, "\(error)")
        #expect(error.response?.history.count == max && error.response?.status == .found)
        #expect(server.requestCount == max + 1 && server.connectionCount == 1)
    }

    @Test(arguments: Taking.allCases)
    func redirectLoopThrowsTooManyRedirects(_ take: Taking) async throws {
        let server = try MockServer { $0.path == "/1" ? .redirect(to: "/2") : .redirect(to: "/1#x") }
        let error = try await networkError { _ = try await take(Request(server.url("/1")), by: Session()) }
        #expect(error.kind == .tooManyRedirects && error.response?.history.count == 9)
        #expect(server.requestCount == 10)
    }

    /// A server may redirect a URL to itself until a result is ready.
    @Test(arguments: Taking.allCases)
    func redirectToSameURLIsFollowed(_ take: Taking) async throws {
        let server = try MockServer { $0.ordinal < 5 ? .redirect(to: "/") : .text("ready") }
        #expect(try await take(Request(server.url("/")), by: Session()).body == Data("ready".utf8))
        #expect(server.requestCount == 5)
    }

    @Test(arguments: Taking.allCases)
    func redirectToSameURLIsFollowedAfterSetCookie(_ take: Taking) async throws {
        let server = try MockServer()
        let bounce = MockResponse.redirect(to: "/").field("Set-Cookie", "seen=1")
        server.on("GET", "/", inOrder: [bounce, .text("in")])
        #expect(try await take(Request(server.url("/")), by: Session()).body == Data("in".utf8))
        #expect(server.requestCount == 2)
    }

    @Test(arguments: ["ftp://example.com/", "http://user:word@127.0.0.1/", "http://", "http://a b/"])
    func invalidLocationsThrowInvalidResponse(_ location: String) async throws {
        let server = try MockServer { _ in .text("moved", status: 301).field("Location", location) }
        for take in Taking.allCases {
            let error = try await networkError { _ = try await take(Request(server.url("/")), by: Session()) }
            #expect(error.kind == .invalidResponse && error.phase == .receiving, "\(error)")
            #expect(error.response?.status == .movedPermanently)
        }
        let request = Request(server.url("/"), options: Request.Options(redirects: RedirectPolicy.never))
        #expect(try await Session().data(for: request).0 == Data("moved".utf8))
    }

    @Test func failedRedirectDoesNotReportFinishedProgress() async throws {
        let server = try MockServer { _ in .redirect(to: "/") }
        let transfer = Session().transfer(Request(server.url("/")))
        var last: TransferProgress?
        for await progress in transfer.progress { last = progress }
        #expect(last?.isFinished == false)
        #expect(transfer.state == .finished && !transfer.currentProgress.isFinished)
        #expect(transfer.metrics?.responseHeadBytes ?? 0 > 0)
    }
}
