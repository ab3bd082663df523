// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

/// The requests that a client makes of calls, without sending them.
@Suite(.timeLimit(.minutes(5)))
struct ClientRequestTests {
    private struct Draft: Codable, Equatable {
        var title: String
        var tags: [String]
    }

    private struct Unwritable: Encodable {
        func encode(to encoder: any Encoder) throws {
            throw EncodingError.invalidValue(
                "secret", EncodingError.Context(codingPath: [], debugDescription: "secret"))
        }
    }

    private let api = Client("https://h.test/v1")

    private func text(_ request: Request) -> String {
        guard let bytes = request.body.bytes else { return "" }
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test func plainCallBecomesARequest() throws {
        let request = try api.request(for: Call(.get, "users/\(7)", query: ["page": 2]))
        #expect(request.method == .get && request.url == "https://h.test/v1/users/7?page=2")
        #expect(request.body.isNone && request.trust == nil && request.interceptors.isEmpty)
        #expect(request.fields[.accept] == "*/*")
        #expect(request.fields[.contentType] == nil, "RQ-22: no Content-Type without a body")
    }

    /// RS-26: Accept lists the types that the serializer reads.
    @Test func acceptListsTheTypesOfTheSerializer() throws {
        func accept(_ api: JSONClient, _ call: Call) throws -> String? {
            try api.request(for: call, accepting: JSON().accepts).fields[.accept]
        }
        #expect(try accept(api, Call(.get, "x")) == "application/json, text/json; q=0.5, text/javascript; q=0.1")
        #expect(try accept(api, Call(.get, "x", options: .accepting("a/b", "*/*"))) == "a/b, */*")
        #expect(try accept(api, Call(.get, "x", options: .accepting())) == nil, "the session's field is not replaced")
        #expect(try accept(api, Call(.get, "x", fields: [.accept: "c/d"])) == "c/d")
        let special = api.with { $0.fields[.accept] = "application/vnd.github+json" }
        #expect(try accept(special, Call(.get, "x")) == "application/vnd.github+json")
        #expect(try accept(special, Call(.get, "x", fields: [.accept: nil])) == nil)
        let none = try special.request(for: Call(.get, "x", fields: [.accept: nil]))
        #expect(none.withheld == [.accept], "the session's field is removed, too")
    }

    /// RQ-17, RQ-45: the method decides whether untyped parameters go into the query or into the body.
    @Test(arguments: ["GET", "HEAD", "DELETE", "POST", "PUT", "PATCH", "REPORT"] as [Curlew.Method])
    func parametersAreEncodedByMethod(_ method: Curlew.Method) throws {
        let call = Call(method, "x?a=1#f", parameters: ["b": 2, "c": "d e"])
        let isInQuery = [.get, .head, .delete].contains(method)
        let json = try api.request(for: call)
        #expect(json.url == "https://h.test/v1/x?a=1" + (isInQuery ? "&b=2&c=d%20e" : "") + "#f")
        #expect(text(json) == (isInQuery ? "" : #"{"b":2,"c":"d e"}"#) || text(json) == #"{"c":"d e","b":2}"#)
        let form = try Client("https://h.test/v1", requests: .form).request(for: call)
        #expect(form.url == json.url, "RQ-18, RQ-19: with &, before the fragment")
        #expect(text(form) == (isInQuery ? "" : "b=2&c=d%20e"))
        #expect(form.fields[.contentType] == (isInQuery ? nil : "application/x-www-form-urlencoded"))
        let other = Call(method, "x", parameters: ["b": 2], inQuery: [])
        #expect(try text(Client("https://h.test/v1", requests: .form).request(for: other)) == "b=2")
        // RQ-21, RQ-44: without parameters there is no body and no Content-Type.
        let empty = try api.request(for: Call(method, "x", parameters: [:]))
        #expect(empty.body.isNone && empty.fields[.contentType] == nil && empty.url == "https://h.test/v1/x")
    }

    @Test func bodiesOfEveryKindAreEncoded() throws {
        let draft = Draft(title: "a b", tags: ["ü"])
        let table: [(Body, String?, String?)] = [
            (.encoding(draft), "application/json", nil),
            (.json(draft), "application/json", nil),
            (.json(["a": 1, "b": ["c", nil, true]]), "application/json", nil),
            (.json("text"), "application/json", #""text""#),
            (.form(draft), "application/x-www-form-urlencoded", "tags%5B%5D=%C3%BC&title=a%20b"),
            (.form(["b": 1, "a": "x"]), "application/x-www-form-urlencoded", "a=x&b=1"),
            (
                .form(["q": "a b"], by: Request.QueryEncoder(spaces: .plus)), "application/x-www-form-urlencoded",
                "q=a+b"
            ),
            (.encoding(draft, as: Form()), "application/x-www-form-urlencoded", "tags%5B%5D=%C3%BC&title=a%20b"),
            (.text("é"), "text/plain; charset=utf-8", "é"),
            (.bytes([0x61]), "application/octet-stream", "a"),
            (.raw(.text("x"), type: nil), nil, "x"),
            (.raw(.none, type: nil), nil, ""), (.raw(.none, type: .json), nil, ""),
            (.form(["t": "a", "t": "b"]), "application/x-www-form-urlencoded", "t=a&t=b"),
        ]
        for (body, type, expected) in table {
            let request = try api.request(for: Call(.post, "x", body))
            #expect(request.fields[.contentType] == type, "\(body)")
            if let expected { #expect(text(request) == expected, "\(body)") }
        }
        let json = try api.request(for: Call(.post, "x", .encoding(draft)))
        #expect(try JSONDecoder().decode(Draft.self, from: Data(text(json).utf8)) == draft)
        let plist = try api.request(for: Call(.post, "x", .plist(draft)))
        #expect(plist.fields[.contentType] == "application/x-plist")
        #expect(try PropertyListDecoder().decode(Draft.self, from: Data(text(plist).utf8)) == draft)
        let file = try api.request(for: Call(.post, "x", .file("/a", type: "a/b")))
        #expect(file.fields[.contentType] == "a/b")
    }

    /// RQ-20, RQ-42: a call can replace or remove the Content-Type of its body.
    @Test func contentTypeCanBeReplacedAndRemoved() throws {
        let call = Call(.post, "x", .json(1), fields: [.contentType: "application/vnd.x+json"])
        #expect(try api.request(for: call).fields[.contentType] == "application/vnd.x+json")
        let none = Call(.post, "x", .json(1), fields: [.contentType: nil])
        #expect(try api.request(for: none).fields[.contentType] == nil)
    }

    /// HS-15, RQ-24, B-123: session < client < call.
    @Test func callOverridesClient() throws {
        let api = api.with {
            $0.fields = ["X-A": "client", "X-B": "client", .acceptLanguage: "de"]
            $0.query = ["key": "k", "page": 1]
            $0.options = [.timeout(.seconds(9)), .label("client")]
            $0.interceptors = [.adapt { _ in }]
        }
        let call = Call(
            .get, "x", query: ["page": 2], fields: ["X-B": "call", .acceptLanguage: nil], options: .label("call"))
        let request = try api.request(for: call)
        #expect(request.url == "https://h.test/v1/x?key=k&page=2")
        #expect(request.fields["X-A"] == "client" && request.fields["X-B"] == "call")
        #expect(request.fields[.acceptLanguage] == nil && request.withheld == [.acceptLanguage])
        #expect(request.options.timeouts.total == .seconds(9) && request.options.label == "call")
        #expect(request.interceptors.count == 1)
    }

    /// RQ-22: query items in the path override the client's, whose Content-Type applies only to calls with a body.
    @Test func callOverridesTheClientsQueryAndFields() throws {
        let api = api.with {
            $0.query = ["key": "k", "page": 1]
            $0.fields = [.contentType: "application/vnd.x+json"]
        }
        let request = try api.request(for: Call(.get, "x?page=\(2)"))
        #expect(request.url == "https://h.test/v1/x?page=2&key=k" && request.fields[.contentType] == nil)
        let posted = try api.request(for: Call(.post, "x", .json(1)))
        #expect(posted.fields[.contentType] == "application/vnd.x+json")
        let typed = Call(.get, "x", fields: [.contentType: "a/b"])
        #expect(try api.request(for: typed).fields[.contentType] == "a/b")
        // A call can set a field that the client removes.
        let left = api.with { $0.fields[.accept] = nil }
        let set = try left.request(for: Call(.get, "x", fields: [.accept: "a/b"]))
        #expect(set.fields[.accept] == "a/b" && set.withheld.isEmpty)
    }

    /// The client's credentials and query are not sent to other origins.
    @Test func crossOriginCallsGetNoCredentials() throws {
        let api = api.with { $0.fields = [.authorization: "Bearer x", "X-A": "b"] }
        for (path, isHere): (Path, Bool) in [
            ("x", true), ("https://h.test/y", true), ("http://h.test/x", false), ("https://other.test/x", false),
            ("//other.test/x", false),
        ] {
            let request = try api.request(for: Call(.get, path))
            #expect((request.fields[.authorization] != nil) == isHere, "\(path)")
            #expect(request.fields["X-A"] == "b")
        }
        let keyed = api.with {
            $0.query = ["api_key": "secret"]
            $0.fields["PRIVATE-TOKEN"] = "secret"
            $0.options.redirects = .follow()
            $0.options.redirects?.sensitiveFields = ["private-token"]
        }
        let elsewhere = try keyed.request(for: Call(.get, "https://other.test/x", query: ["a": 1]))
        #expect(elsewhere.url == "https://other.test/x?a=1" && elsewhere.fields["PRIVATE-TOKEN"] == nil)
        #expect(try keyed.request(for: Call(.get, "x")).fields["PRIVATE-TOKEN"] == "secret")
        let own = Call(.get, "https://other.test/x", fields: [.authorization: "Bearer y"])
        #expect(try api.request(for: own).fields[.authorization] == "Bearer y")
    }

    /// HS-16, RQ-43: values that cannot be encoded fail the call before a request is sent.
    @Test func valuesThatCannotBeEncodedFail() {
        let table: [(Call, NetworkError.Kind)] = [
            (Call(.get, "users/\("")"), .invalidRequest), (Call(.delete, "users/\("..")/x"), .invalidRequest),
            (Call(.get, "x", query: .encoding([1])), .encodingFailed),
            (Call(.get, "x", query: ["a": Unwritable()]), .encodingFailed),
            (Call(.post, "x", .encoding(Unwritable())), .encodingFailed),
            (Call(.post, "x", .json(Double.nan)), .encodingFailed),
            (Call(.post, "x", .form([1, 2])), .encodingFailed),
            (Call(.post, "x", .plist("scalar")), .encodingFailed),
        ]
        for (call, kind) in table {
            let error = #expect(throws: NetworkError.self) { try api.request(for: call) }
            #expect(error?.kind == kind && error?.phase == .preparing && error?.request != nil, "\(call)")
            #expect(error?.detailedDescription.contains("secret") == false)
        }
    }

    @Test func descriptionsHideSecrets() {
        let call = Call(.get, "x?token=\("secret")", .json(["a": "secret"]), fields: [.authorization: "secret"])
        #expect("\(call)" == "GET x?token=<redacted>")
        var text = ""
        dump(call, to: &text)
        dump(Body.json(["a": "secret"]), to: &text)
        dump(Body.bytes(Array("secret".utf8)), to: &text)
        dump(api.with { $0.query = ["key": "secret"] }, to: &text)
        dump(
            ClientConfiguration(base: "https://h.test", fields: [.cookie: "secret"], query: ["k": "secret"]), to: &text)
        #expect(!text.contains("secret"), "\(text)")
        #expect("\(api)" == "Client(https://h.test/v1/)", "HS-21")
        #expect("\(Body.bytes([1, 2]))" == "application/octet-stream, 2 bytes")
        #expect("\(Body.encoding(1))" == "a value as the client writes it")
        #expect("\(Body.json(1))" == "a value as application/json" && "\(Body.raw(.file("x"), type: nil))" == "a body")
    }
}
