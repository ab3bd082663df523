// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew
@testable import CurlewEngine

@Suite("RedirectPolicy", .timeLimit(.minutes(5)))
struct RedirectPolicyTests {
    private struct Refusal: Error {}

    /// The redirects that a custom policy received.
    private actor Questions {
        private(set) var all: [RedirectPolicy.Redirect] = []

        func append(_ redirect: RedirectPolicy.Redirect) { all.append(redirect) }
    }

    private let request = Request(
        .post, "https://a/x?token=s3cret", fields: ["Authorization": "s3cret", "Accept": "*/*"], body: .text("b"))

    private func head(_ status: Status = .temporaryRedirect, _ location: String = "http://b/y") -> ResponseHead {
        ResponseHead(status: status, fields: ["Location": location, "Set-Cookie": "id=s3cret"])
    }

    private func next(
        _ policy: RedirectPolicy, _ request: Request, _ head: ResponseHead
    ) async throws(NetworkError) -> Request? {
        try await policy.next(after: request, target: try request.validated(), head)
    }

    // MARK: - Equality, description and coding

    @Test func equalityComparesRuleMaximumAndNames() {
        #expect(RedirectPolicy.follow() == .follow(max: 20) && RedirectPolicy.follow(max: 3) != .follow())
        #expect(RedirectPolicy.sameOrigin() != .follow() && RedirectPolicy.never == RedirectPolicy.never)
        #expect(RedirectPolicy.follow().withholding("A", "B").sensitiveFields == ["a", "b"])
        #expect(RedirectPolicy.follow().withholding("A") != .follow())
        #expect(RedirectPolicy.follow(allowingDowngrade: true) != .follow())
        let custom = RedirectPolicy.custom { _ in .follow }
        #expect(custom == custom && custom != .custom { _ in .follow })
        #expect(Set([custom, custom.withholding(), .never, .follow(), .follow(max: 20)]).count == 3)
        #expect(Session.Configuration().redirects == .follow() && Request.Options().redirects == nil)
        #expect(Request.Options(redirects: RedirectPolicy.never).redirects == RedirectPolicy.never)
    }

    @Test func descriptionsNameRuleAndMaximum() {
        let policies: [RedirectPolicy] = [
            .follow(), .never, .sameOrigin(max: 2), .custom(max: 0) { _ in .stop },
            .follow(max: 1, allowingDowngrade: true),
        ]
        #expect(
            policies.map(\.description)
                == [
                    "follow, at most 20", "none", "same origin, at most 2", "custom, at most 0",
                    "follow also from https to http, at most 1",
                ])
    }

    @Test(arguments: [
        RedirectPolicy.follow(), .follow(max: 0), .never, .sameOrigin(max: 7), .follow().withholding("X-A", "X-B"),
        RedirectPolicy.never.withholding("X-A"), .follow(max: 2, allowingDowngrade: true),
    ])
    func policyRoundTripsThroughJSON(policy: RedirectPolicy) throws {
        let data = try JSONEncoder().encode(policy)
        #expect(try JSONDecoder().decode(RedirectPolicy.self, from: data) == policy)
        let configuration = Session.Configuration { $0.redirects = policy }
        let whole = try JSONEncoder().encode(configuration)
        #expect(try JSONDecoder().decode(Session.Configuration.self, from: whole) == configuration)
    }

    static let forms: [(String, RedirectPolicy)] = [
        (#"{"policy":"follow"}"#, .follow()), (#"{"policy":"never"}"#, .never),
        (#"{"policy":"sameOrigin","max":3}"#, .sameOrigin(max: 3)),
        (#"{"policy":"follow","max":0,"sensitiveFields":["X-A"]}"#, .follow(max: 0).withholding("X-A")),
        (#"{"policy":"follow","allowingDowngrade":true}"#, .follow(allowingDowngrade: true)),
        (#"{"policy":"follow","allowingDowngrade":false}"#, .follow()),
        (#"{"policy":"sameOrigin","allowingDowngrade":true}"#, .sameOrigin()),
    ]

    @Test(arguments: forms)
    func policyDecodesFromJSON(json: String, policy: RedirectPolicy) throws {
        #expect(try JSONDecoder().decode(RedirectPolicy.self, from: Data(json.utf8)) == policy)
    }

    @Test(arguments: [
        "{}", #"{"policy":"custom"}"#, #"{"policy":"follow","max":-1}"#, #"{"policy":7}"#, #""follow""#,
        #"{"policy":"follow","allowingDowngrade":1}"#,
    ])
    func policyRejectsInvalidJSON(json: String) {
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode(RedirectPolicy.self, from: Data(json.utf8))
        }
    }

    @Test func customPolicyCannotBeEncoded() throws {
        let configuration = Session.Configuration { $0.redirects = .custom { _ in .stop } }
        let error = #expect(throws: EncodingError.self) { try JSONEncoder().encode(configuration) }
        guard case .invalidValue(let value, let context) = error else {
            Issue.record("another error: \(String(describing: error))")
            return
        }
        #expect(value as? RedirectPolicy == configuration.redirects)
        #expect(context.debugDescription.contains("closure"))
        #expect(context.codingPath.map(\.stringValue) == ["redirects"])
    }

    @Test func negativeMaximumIsRejected() throws {
        let configuration = Session.Configuration { $0.redirects = .follow(max: -1) }
        let first = #expect(throws: NetworkError.self) { try configuration.validate() }
        #expect(first?.kind == .invalidRequest && first?.message.contains("redirects") == true)
        let options = Request.Options(redirects: .custom(max: -1) { _ in .follow })
        let second = #expect(throws: NetworkError.self) { try Request("http://h/", options: options).validated() }
        #expect(second?.kind == .invalidRequest && second?.message == "The maximum of redirects is negative.")
        #expect(try Request("http://h/", options: Request.Options(redirects: .follow(max: 0))).validated().host == "h")
    }

    // MARK: - Downgrades

    @Test func downgradeToHTTPIsRefusedUnlessAllowed() async throws {
        let error = await #expect(throws: NetworkError.self) { try await next(.follow(), request, head()) }
        #expect(error?.kind == .redirectRefused && error?.phase == .receiving && error?.cause == nil)
        #expect(error?.message == "A 307 redirect leads from https to http.")
        #expect(error?.hint?.contains("allowingDowngrade: true") == true)
        #expect(error?.response == head() && error?.request?.url == request.url)
        #expect(error?.detailedDescription.contains("s3cret") == false)
        let sent = try await next(.follow(allowingDowngrade: true), request, head())
        #expect(sent?.url == "http://b/y" && sent?.fields == ["Accept": "*/*"] && sent?.body.isNone == false)
        #expect(try await next(.follow(), request, head(.found, "https://b/y"))?.url == "https://b/y")
        #expect(try await next(.follow(), Request("http://a/"), head())?.url == "http://b/y")
    }

    // MARK: - Closures

    @Test func customPolicyReceivesTheWholeRedirect() async throws {
        let questions = Questions()
        let policy = RedirectPolicy.custom { redirect in
            await questions.append(redirect)
            return .follow
        }
        var response = head()
        response.history = [ResponseHead.RedirectHop(method: .get, url: "https://z/", head: head())]
        let sent = try #require(try await next(policy, request, response))
        #expect(sent.url == "http://b/y" && sent.method == .post && sent.fields == ["Accept": "*/*"])
        let redirect = try #require(await questions.all.first)
        #expect(redirect.request.url == request.url && redirect.proposed.url == "http://b/y")
        #expect(redirect.response == response && redirect.response.history.count == 1 && redirect.count == 1)
        #expect(redirect.isDowngrade && !redirect.isSameOrigin)
        #expect(redirect.description == "307: POST https://a/x?token=<redacted> → POST http://b/y")
        _ = try await next(policy, request, head(.found, "/z"))
        let second = try #require(await questions.all.last)
        #expect(!second.isDowngrade && second.isSameOrigin && second.count == 0)
    }

    @Test func customPolicyStopsAndFails() async throws {
        #expect(try await next(.custom { _ in .stop }, request, head()) == nil)
        for policy in [RedirectPolicy.custom { _ in .fail(Refusal()) }, .custom { _ in throw Refusal() }] {
            let error = await #expect(throws: NetworkError.self) { try await next(policy, request, head()) }
            #expect(error?.kind == .redirectRefused && error?.phase == .receiving && error?.cause is Refusal)
            #expect(error?.response == head() && error?.request?.url == request.url)
            #expect(error?.retriability == .never && error?.exitCode == 77)
            #expect(error?.code == "curlew.redirect_refused.receiving")
        }
    }

    @Test func cancellationInCustomPolicyThrowsCancelled() async {
        let inner = NetworkError(.cancelled, phase: .waiting, "Stop.")
        for policy in [RedirectPolicy.custom { _ in throw CancellationError() }, .custom { _ in throw inner }] {
            let error = await #expect(throws: NetworkError.self) { try await next(policy, request, head()) }
            #expect(error?.kind == .cancelled && error?.phase == .receiving)
        }
    }

    @Test func customPolicyIsNotCalledWithoutAValidRedirect() async throws {
        let policy = RedirectPolicy.custom { _ in .fail(Refusal()) }
        #expect(try await next(policy, request, head(.ok)) == nil)
        #expect(try await next(policy, request, ResponseHead(status: .found)) == nil)
        let error = await #expect(throws: NetworkError.self) {
            try await next(policy, request, head(.found, "ftp://b"))
        }
        #expect(error?.kind == .invalidResponse)
    }

    @Test func rewrittenRequestWithholdsSessionCredentials() async throws {
        func rewritten(_ url: String) async throws -> Request? {
            let policy = RedirectPolicy.custom { _ in .rewrite(Request(.put, url, fields: ["X": "1"])) }
            return try await next(policy.withholding("X-Tenant"), request, head(.found, "/y"))
        }
        let other = try #require(try await rewritten("https://b/z"))
        #expect(other.method == .put && other.url == "https://b/z" && other.fields == ["X": "1"])
        #expect(other.withheld.contains(.authorization) && other.withheld.contains("x-tenant"))
        #expect(try #require(try await rewritten("https://a/z")).withheld.isEmpty)
        #expect(try #require(try await rewritten("not a URL")).withheld.contains(.cookie))
    }

    @Test func consumedBodyThrowsBodyNotReplayable() async throws {
        let use = SourceUse()
        var once = request
        once.body = RequestBody(source: StreamBody(length: nil, canReplay: false, use: use) { _ in {} })
        let follow = RedirectPolicy.follow(allowingDowngrade: true)
        #expect(try await next(follow, once, head())?.body.canReplay == false)
        #expect(use.begin())
        for policy in [follow, .custom { .rewrite($0.request) }] {
            let error = await #expect(throws: NetworkError.self) { try await next(policy, once, head()) }
            #expect(error?.kind == .bodyNotReplayable && error?.phase == .receiving && error?.response == head())
        }
        #expect(try await next(follow, once, head(.seeOther))?.body.isNone == true)
        #expect(try await next(.never, once, head()) == nil)
        let fresh = RequestBody.stream(AsyncStream<[UInt8]> { $0.finish() })
        let policy = RedirectPolicy.custom { redirect in
            var other = redirect.proposed
            other.body = fresh
            return .rewrite(other)
        }
        #expect(try await next(policy, once, head())?.body.canReplay == false)
    }
}
