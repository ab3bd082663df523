// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

@Suite("Redirect history and loops", .timeLimit(.minutes(5)))
struct RedirectHistoryTests {
    private let cookie: HeaderFields = ["Set-Cookie": "id=s3cret"]

    /// Returns a new history that has followed the URLs in order.
    private func trail(
        max: Int = 20, _ urls: some Sequence<String>, cookieAt: Int? = nil
    ) throws(NetworkError) -> RedirectHistory {
        var trail = RedirectHistory(max: max)
        for (index, (from, to)) in zip(urls, urls.dropFirst()).enumerated() {
            let head = ResponseHead(status: .found, fields: cookieAt == index ? cookie : [:])
            try trail.follow(
                Request(.get, to), after: Request(.get, from), trail.marking(head),
                metrics: TransferMetrics(total: .seconds(index)))
        }
        return trail
    }

    private func refusal(max: Int = 20, _ urls: some Sequence<String>, cookieAt: Int? = nil) -> NetworkError? {
        do throws(NetworkError) {
            _ = try trail(max: max, urls, cookieAt: cookieAt)
            return nil
        } catch {
            return error
        }
    }

    @Test func historyIsInOrder() throws {
        let trail = try trail(["http://a/1#f", "http://a/2", "http://a/3?k=s3cret"], cookieAt: 0)
        #expect(trail.history.map(\.url) == ["http://a/1#f", "http://a/2"])
        #expect(trail.history.map(\.method) == [.get, .get])
        #expect(trail.history.map(\.metrics.total) == [.zero, .seconds(1)])
        #expect(trail.history.allSatisfy { $0.head.history.isEmpty && $0.head.status == .found })
        let head = trail.marking(ResponseHead(status: .ok))
        #expect(head.history == trail.history && head.with(fields: ["A": "1"]).history == trail.history)
        #expect(head == ResponseHead(status: .ok) && Set([head, ResponseHead(status: .ok)]).count == 1)
        #expect(RedirectHistory(max: 1).marking(head).history.isEmpty)
    }

    @Test func maximumLimitsTheNumberOfRedirects() {
        let urls = (0...5).map { "http://a/\($0)?k=s3cret" }
        #expect(refusal(max: 5, urls) == nil)
        let error = refusal(max: 4, urls)
        #expect(error?.kind == .tooManyRedirects && error?.phase == .receiving)
        #expect(error?.response?.history.count == 4 && error?.response?.status == .found)
        #expect(error?.request?.url == urls[4])
        #expect(error?.message.contains("More than 4") == true && error?.hint?.isEmpty == false)
        #expect(refusal(max: 0, ["http://a/", "http://b/"])?.response?.history.isEmpty == true)
        #expect(refusal(max: 0, ["http://a/", "http://b/"])?.kind == .tooManyRedirects)
    }

    @Test(arguments: [
        ["http://a/1"], ["http://a/1", "http://A:80/1#f"], ["http://a/1", "http://a/2"],
        ["http://a/2", "http://a/3", "http://a/1"], ["no URL"],
    ])
    func redirectLoopEndsAfterFiveVisits(urls: [String]) {
        // "http://A:80/1#f" is "http://a/1" again.
        let rounds = urls.contains("http://A:80/1#f") ? 5 : 5 * urls.count
        let endless = (0...rounds).map { urls[$0 % urls.count] }
        #expect(refusal(endless.dropLast()) == nil)
        let error = refusal(endless)
        #expect(error?.kind == .tooManyRedirects)
        #expect(error?.response?.history.count == rounds - 1)
        #expect(error?.message.contains("loop") == true && error?.message.contains("5 times") == true)
    }

    @Test func redirectLoopMayStartAfterTheFirstURL() {
        let waiting = [String](repeating: "http://a/wait", count: 5)
        #expect(refusal(["http://a/"] + waiting + ["http://a/ready"]) == nil)
        #expect(refusal(["http://a/"] + waiting + ["http://a/wait"])?.message.contains("loop") == true)
        #expect(refusal(max: 3, ["http://a/"] + waiting)?.message.contains("More than 3") == true)
    }

    @Test func requestsThatDifferAreNotALoop() throws {
        #expect(refusal(["http://a/1", "http://a/1?", "http://a/1/", "https://a/1", "http://a:81/1"]) == nil)
        var trail = RedirectHistory(max: 20)
        let head = ResponseHead(status: .seeOther)
        let first = Request(.post, "http://a/", fields: ["A": "1"])
        let second = Request("http://a/", fields: ["A": "1"])
        try trail.follow(second, after: first, head, metrics: .init())
        try trail.follow(Request("http://a/"), after: second, head, metrics: .init())
        #expect(trail.history.count == 2)
    }

    /// A cookie may change the response to a repeated request, so the count of visits restarts.
    @Test func setCookieResetsTheVisitCount() {
        let visits = [String](repeating: "http://a/", count: 6)
        #expect(refusal(visits)?.kind == .tooManyRedirects && refusal(visits, cookieAt: 4) == nil)
        #expect(refusal(visits, cookieAt: 0) == nil)
        #expect(refusal(visits + ["http://a/"], cookieAt: 0)?.response?.history.count == 5)
        #expect(refusal(visits + visits.dropLast(2), cookieAt: 4) == nil)
        #expect(refusal(visits + visits.dropLast(1), cookieAt: 4)?.response?.history.count == 9)
    }

    @Test func descriptionsAndErrorsHideSecrets() throws {
        let trail = try trail(["http://u:s3cret@a/1?k=s3cret", "http://a/2"], cookieAt: 0)
        let hop = try #require(trail.history.first)
        #expect(hop.description == "302 GET http://a/1?k=<redacted>")
        var text = ""
        dump(trail.marking(ResponseHead(status: .ok)), to: &text)
        dump(hop, to: &text)
        dump(
            RedirectPolicy.Redirect(request: "http://a/?k=s3cret", response: hop.head, proposed: "http://b/?k=s3cret"),
            to: &text)
        let error = try #require(refusal([String](repeating: "http://u:s3cret@a/?k=s3cret", count: 6)))
        text += error.description + error.detailedDescription
        #expect(!text.contains("s3cret") && text.contains("<redacted>"))
    }
}

@Suite("Redirected requests", .timeLimit(.minutes(5)))
struct RedirectedRequestTests {
    private func answer(
        _ request: Request, _ location: String, _ status: Status = .found, withholding names: [HeaderName] = []
    ) throws -> RedirectRules.Proposal? {
        try RedirectRules.proposal(
            for: request, target: try request.validated(),
            ResponseHead(status: status, fields: ["Location": location]), withholding: names)
    }

    @Test func optionsAndTrustSurviveRedirect() throws {
        struct Anyone: TrustEvaluator {
            func evaluate(_ peer: PeerIdentity) throws(TrustFailure) {}
        }
        var request = Request(.post, "https://a/", body: .text("b"))
        request.options = Request.Options(priority: .high, label: "l", redirects: .follow(max: 3))
        request.trust = Anyone()
        for status in [Status.found, .permanentRedirect] {
            let next = try #require(try answer(request, "http://b/", status)).request
            #expect(next.options == request.options && next.trust is Anyone)
        }
    }

    @Test func withheldFieldsStayWithheldAfterFurtherRedirects() throws {
        let first = try #require(try answer("http://a/", "http://b/", withholding: ["X-T", "COOKIE"])).request
        #expect(first.withheld == HeaderName.sensitive + ["X-T"])
        let second = try #require(try answer(first, "/y")).request
        #expect(second.withheld == first.withheld)
        let third = try #require(try answer(second, "http://a/", withholding: ["X-U"])).request
        #expect(third.withheld == first.withheld + ["X-U"])
        #expect(try #require(try answer("http://a/", "/y", withholding: ["X-T"])).request.withheld.isEmpty)
    }

    @Test func originsAndDowngradesAreRecognised() throws {
        let rows: [(String, String, Bool, Bool)] = [
            ("https://a/", "http://a/", false, true), ("https://a/", "http://b/", false, true),
            ("http://a/", "https://a/", false, false), ("https://a/", "https://b/", false, false),
            ("https://a/", "/y", true, false), ("http://a/", "http://a:80/", true, false),
        ]
        for (url, location, isSameOrigin, isDowngrade) in rows {
            let proposal = try #require(try answer(Request(url), location))
            #expect(proposal.isSameOrigin == isSameOrigin && proposal.isDowngrade == isDowngrade)
        }
    }

    @Test func errorsHideSecrets() throws {
        let request: Request = "http://u:s3cret@a/?k=s3cret"
        for location in ["ftp://u2/?k=s3cret", "http://u:s3cret@b/?k=s3cret", "http://b:0/?k=s3cret", "/\n?k=s3cret"] {
            let error = try #require(#expect(throws: NetworkError.self) { try answer(request, location) })
            #expect(error.kind == .invalidResponse && error.phase == .receiving)
            #expect(!(error.description + error.detailedDescription).contains("s3cret"), "\(location)")
        }
    }

    /// The session's credentials are withheld like those of the request.
    @Test func sessionDoesNotAddWithheldFields() async throws {
        let server = try MockServer { _ in .text("ok") }
        let session = Session(
            Session.Configuration { $0.fields = ["Authorization": "s3cret", "X-T": "1", "X-Session": "2"] })
        var request = Request(server.url("/"))
        _ = try await session.data(for: request)
        request.withheld = ["authorization", "X-T"]
        _ = try await session.data(for: request)
        request.fields = ["X-T": "own"]
        _ = try await session.data(for: request)
        #expect(server.requests.map { $0.field("Authorization") } == ["s3cret", nil, nil])
        #expect(server.requests.map { $0.field("X-T") } == ["1", nil, "own"])
        #expect(server.requests.map { $0.field("X-Session") } == ["2", "2", "2"])
    }
}
