// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

@Suite("Request")
struct RequestTests {
    private enum Note: Request.Tag {
        typealias Value = String
    }

    @Test func initialisersSetMethodAndURL() throws {
        let url = try #require(URL(string: "https://h/p"))
        let literal: Request = "https://h/p"
        for request in [
            literal, Request("https://h/p"), Request(url), Request(.get, url), Request(.get, "https://h/p"),
        ] {
            #expect(request.method == .get)
            #expect(request.url == "https://h/p")
            #expect(request.foundationURL == url)
            #expect(request.fields.isEmpty && request.options == Request.Options() && request.trust == nil)
        }
        let text = "https://h/" + "q"
        #expect(Request(text).url == "https://h/q")
        #expect(Request(.put, text, fields: ["A": "1"]).fields == ["A": "1"])
    }

    @Test func changedCopyLeavesTheOriginal() {
        let original = Request(.put, "https://h/p", fields: ["A": "1"], body: .text("a"))
        var copy = original
        copy.method = .post
        copy.url = "https://h/q"
        copy.fields["B"] = "2"
        copy.body = .none
        copy.options.label = "copy"
        copy.trust = SystemTrust()
        copy.tags[Note.self] = "copy"
        copy.interceptors = [BearerAuthentication.bearer("t")]
        #expect(copy.method == .post && copy.url == "https://h/q" && copy.fields == ["A": "1", "B": "2"])
        #expect(original.method == .put && original.url == "https://h/p" && original.fields == ["A": "1"])
        #expect(!original.body.isNone && original.options.label == nil && original.trust == nil)
        #expect(original.tags[Note.self] == nil && original.interceptors.isEmpty)
    }

    @Test func urlConvertsFromAndToFoundationURL() throws {
        var request: Request = "https://h/"
        request.foundationURL = URL(string: "https://other/x")
        #expect(request.url == "https://other/x")
        request.foundationURL = nil
        #expect(request.url.isEmpty)
    }

    @Test func requestDescriptionIsRedacted() {
        let request = Request("G\nT", "https://u:p@h/path?a=secret", fields: ["Cookie": "secret"])
        #expect("\(request)" == "G\\nT https://h/path?a=<redacted>")
    }

    @Test func prioritiesAreOrdered() {
        #expect(Request.Priority.low < .normal && .normal < Request.Priority.high)
        #expect(Request.Priority(rawValue: 1) > .normal)
        let options = Request.Options(timeouts: Timeouts(), priority: .high, label: "l", responseLimit: 1)
        #expect(options.label == "l" && options.priority == .high && options.responseLimit == 1)
    }

    @Test func validRequestReturnsItsTarget() throws {
        let request = Request(.post, "HTTPS://H/ü", fields: ["X-A": " é\t", "Cookie": "a=b"])
        #expect(try request.validated().text == "https://h/%C3%BC")
        var limited: Request = "http://h/"
        limited.options = Request.Options(timeouts: Timeouts(idle: nil), responseLimit: 0)
        #expect(try limited.validated().host == "h")
    }

    private static let refused: [(Request, String)] = [
        (Request("", "http://h/"), "The method “” is not a token."),
        (Request("GET /\r\n", "http://h/"), "The method “GET /\\r\\n” is not a token."),
        (Request(.connect, "http://h/"), "The method “CONNECT” opens a tunnel and cannot be sent as a request."),
        (Request(.head, "http://h/", body: .text("x")), "A HEAD request has no body (RFC 9110 §9.3)."),
        (Request(.trace, "http://h/", body: .bytes([])), "A TRACE request has no body (RFC 9110 §9.3)."),
        (Request(.get, "http://h/", fields: ["A B\n": "1"]), "The field name “A B\\n” is not a token."),
        (
            Request(.get, "http://h/", fields: ["A": "1\r\nB: 2"]),
            "The value “1\\r\\nB: 2” of the field “A” contains a control character."
        ),
        (
            Request(.get, "http://h/", fields: ["Authorization": "x\n"]),
            "The value “<redacted>” of the field “Authorization” contains a control character."
        ),
        (
            Request(.get, "http://h/", fields: ["content-length": "1"]),
            "The field “content-length” is written by Curlew and cannot be set."
        ),
        (
            Request(.get, "http://h/", fields: ["Transfer-Encoding": "chunked"]),
            "The field “Transfer-Encoding” is written by Curlew and cannot be set."
        ),
        (Request(.get, "http://h/", fields: ["Host": "x"]), "The field “Host” is written by Curlew and cannot be set."),
        (
            Request(.get, "http://h/", options: Request.Options(timeouts: Timeouts(connect: .zero))),
            "The timeout “connect” is not above zero."
        ),
        (
            Request(.get, "http://h/", options: Request.Options(timeouts: Timeouts(idle: .zero))),
            "The timeout “idle” is not above zero."
        ),
        (
            Request(.get, "http://h/", options: Request.Options(timeouts: Timeouts(total: .seconds(-1)))),
            "The timeout “total” is not above zero."
        ),
        (Request("http://h/", options: Request.Options(responseLimit: -1)), "The response limit is negative."),
        (Request("ftp://u:p@h/"), "“ftp://h/” is not a valid URL: its scheme is “ftp”, not http or https."),
        (Request(""), "the URL is empty."),
    ]

    @Test(arguments: refused.indices)
    func invalidRequestErrorNamesTheOffendingPart(index: Int) {
        let (request, message) = Self.refused[index]
        let error = #expect(throws: NetworkError.self) { try request.validated() }
        #expect(error?.message == message)
        #expect(error?.kind == .invalidRequest && error?.phase == .preparing)
        #expect(error?.hint?.isEmpty == false)
        #expect(error?.request?.url == request.url)
    }
}

@Suite("Timeouts")
struct TimeoutsTests {
    @Test func minimumRateRoundTripsThroughJSON() throws {
        let timeouts = Timeouts(
            responseHead: .seconds(7), queue: .milliseconds(500),
            minimumRate: Timeouts.MinimumRate(bytes: .kibibytes(1), within: .seconds(30)))
        let data = try JSONEncoder().encode(timeouts)
        #expect(try JSONDecoder().decode(Timeouts.self, from: data) == timeouts)
        for json in [#"{"minimumRate":{"bytes":1024}}"#, #"{"minimumRate":{"within":1}}"#, #"{"queue":-1}"#] {
            #expect(throws: DecodingError.self) { try decode(json) }
        }
        var request = Request("http://h/")
        for wrong in [
            Timeouts(responseHead: .zero), Timeouts(queue: .zero),
            Timeouts(minimumRate: Timeouts.MinimumRate(bytes: 0, within: .seconds(1))),
            Timeouts(minimumRate: Timeouts.MinimumRate(bytes: 1, within: .zero)),
        ] {
            request.options.timeouts = wrong
            #expect(throws: NetworkError.self) { try request.validated() }
        }
    }

    private func decode(_ json: String) throws -> Timeouts {
        try JSONDecoder().decode(Timeouts.self, from: Data(json.utf8))
    }

    @Test func decodingUsesDefaults() throws {
        #expect(try decode("{}") == Timeouts())
        #expect(
            try decode(#"{"connect":1.5,"idle":null,"total":30}"#)
                == Timeouts(connect: .milliseconds(1500), idle: nil, total: .seconds(30)))
        #expect(
            try decode(#"{"responseHead":null,"minimumRate":null}"#) == Timeouts(responseHead: nil, minimumRate: nil))
        #expect(try decode(#"{"responseHead":5}"#) == Timeouts(responseHead: .seconds(5)))
    }

    /// The default minimum rate also limits peers that are slow but never idle.
    @Test func defaultTimeoutsLimitSlowPeers() {
        let timeouts = Timeouts()
        #expect(timeouts.responseHead == .seconds(60) && timeouts.idle == .seconds(60) && timeouts.total == nil)
        #expect(timeouts.minimumRate == Timeouts.MinimumRate(bytes: .kibibytes(1), within: .seconds(60)))
    }

    @Test(arguments: [#"{"connect":-1}"#, #"{"idle":1e300}"#, #"{"total":-0.5}"#])
    func decodingInvalidTimeoutsThrows(json: String) {
        #expect(throws: DecodingError.self) { try decode(json) }
    }

    @Test func timeoutsRoundTripThroughJSON() throws {
        for timeouts in [
            Timeouts(), Timeouts(connect: .milliseconds(250), idle: nil, total: .seconds(3)),
            Timeouts(responseHead: nil, minimumRate: nil),
        ] {
            let data = try JSONEncoder().encode(timeouts)
            #expect(try JSONDecoder().decode(Timeouts.self, from: data) == timeouts)
        }
    }

    @Test func requestOptionsEqualityComparesAllOptions() {
        var one = Request.Options(timeouts: Timeouts(total: .seconds(1)), label: "a", redirects: RedirectPolicy.never)
        var other = Request.Options(label: "a")
        #expect(one != other)
        other.timeouts = Timeouts(total: .seconds(1))
        other.redirects = RedirectPolicy.never
        #expect(one == other)
        #expect(Set([one, other]).count == 1)
        one.connection = .own
        #expect(Set([one, other]).count == 2)
        one = other
        one.timeouts = Timeouts()
        one.redirects = nil
        #expect(one == Request.Options(label: "a"))
        #expect(Set([one, Request.Options(label: "a"), other]).count == 2)
        // An explicit option overrides a client's, even if it equals the default.
        one.connection = .shared
        #expect(one != Request.Options(label: "a"))
    }
}
