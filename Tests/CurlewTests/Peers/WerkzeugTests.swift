// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// Requests of a client as parsed by Werkzeug.
@Suite(.enabledIfInstalled(.werkzeug), .peer(.werkzeug), .timeLimit(.minutes(5)))
struct WerkzeugTests {
    /// Texts with characters that are special in URLs, queries or forms.
    private static let hostile = [
        "plain", "&", "=", "a=b&c", "+", " ", "a+b c", "%", "%41", "%zz", "#", "?", "/", ";", "..", ".", "//evil.test",
        "é漢👴🏻", "e\u{301}", "\u{0}\r\n\t\u{7F}", "\"'<>\\", "[]", "k[0]", "\u{2028}\u{FEFF}", "~!*()$,:@|^`{}",
    ]

    private let api: JSONClient

    init() throws { api = try WerkzeugServer.shared().client() }

    /// Returns the UTF-8 bytes, because canonically equivalent texts compare equal but must be sent unchanged.
    private func bytes(_ texts: [String]) -> [[UInt8]] { texts.map { Array($0.utf8) } }

    private func bytes(_ pairs: [[String]]) -> [[[UInt8]]] {
        pairs.map(bytes).sorted { $0.joined(separator: [0xFF]).lexicographicallyPrecedes($1.joined(separator: [0xFF])) }
    }

    @Test(arguments: ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "REPORT", "QUERY"] as [Curlew.Method])
    func methodsAreSentWithAndWithoutBody(_ method: Curlew.Method) async throws {
        let empty = try await api.request(method, "x", as: WerkzeugReading.self)
        #expect(empty.method == method.rawValue && empty.body.isEmpty && empty.type == "")
        #expect(empty.length == ([.post, .put, .patch].contains(method) ? 0 : nil), "RFC 9110 §8.6")
        let full = try await api.request(method, "x", .text("grüße"), as: WerkzeugReading.self)
        #expect(full.method == method.rawValue && full.length == 7 && full.body == Data("grüße".utf8))
        #expect(full.type == "text/plain" && full.typeParameters == ["charset": "utf-8"])
    }

    @Test func convenienceMethodsSendTheirMethod() async throws {
        let read: [WerkzeugReading] = [
            try await api.get("x"), try await api.post("x", .json(1)), try await api.put("x", .json(1)),
            try await api.patch("x", .json(1)), try await api.delete("x"),
        ]
        #expect(read.map(\.method) == ["GET", "POST", "PUT", "PATCH", "DELETE"])
        #expect(read.map(\.json) == [nil, 1, 1, 1, nil])
        #expect(try await api.head("x")["Peer-Method"] == "HEAD")
    }

    @Test func randomJSONBodiesAreReadEqually() async throws {
        for seed in 0..<60 as Range<UInt64> {
            var chance = SeededChance(seed)
            let value = JSONValue.random(&chance, depth: 4)
            let read: WerkzeugReading = try await api.post("x", .json(value))
            #expect(read.type == "application/json" && read.typeParameters.isEmpty)
            #expect((read.json ?? .null) == value, "seed \(seed)")
        }
    }

    @Test func specialCharactersInJSONAreReadEqually() async throws {
        let read: WerkzeugReading = try await api.post("x", .encoding(Self.hostile))
        let texts = read.json?.asArray?.compactMap(\.asString) ?? []
        #expect(bytes(texts) == bytes(Self.hostile))
    }

    /// Special characters in names and values, in the query of a GET and in the form of a POST.
    @Test func specialCharactersInQueriesAndFormsAreReadEqually() async throws {
        var query: Request.Query = [:]
        var pairs: [[String]] = []
        for (index, text) in Self.hostile.enumerated() {
            query.append(text, Self.hostile[(index + 1) % Self.hostile.count])
            query.append("n\(index)", text)
            pairs += [[text, Self.hostile[(index + 1) % Self.hostile.count]], ["n\(index)", text]]
        }
        query.append("empty", "")
        query.append("none", nil)
        query.append("true", true)
        query.append("list", [3, 1, 2])
        pairs += [["empty", ""], ["none", ""], ["true", "1"], ["list[]", "3"], ["list[]", "1"], ["list[]", "2"]]
        for encoder in [Request.QueryEncoder(), Request.QueryEncoder(spaces: .plus)] {
            let api = try WerkzeugServer.shared().client().with { $0.configuration.queryEncoder = encoder }
            let get: WerkzeugReading = try await api.get("x", query: query)
            #expect(bytes(get.query) == bytes(pairs) && get.form.isEmpty)
            let post: WerkzeugReading = try await api.post("x", .form(query, by: encoder))
            #expect(bytes(post.form) == bytes(pairs) && post.query.isEmpty)
            #expect(post.type == "application/x-www-form-urlencoded" && post.typeParameters.isEmpty)
        }
    }

    @Test func randomQueriesInRequestsAndFormsAreReadEqually() async throws {
        for seed in 0..<40 as Range<UInt64> {
            var chance = SeededChance(seed)
            let value = QueryValue.random(&chance, depth: 4, listsOfTextsOnly: false)
            let expected = WerkzeugQueryTests.grouped(value.pairs(named: nil))
            let read: WerkzeugReading = try await api.put("x", .form(value), query: .encoding(value))
            #expect(read.form == expected && read.query == expected, "seed \(seed)")
        }
    }

    /// The queries of the path, the client and the call are joined, and the fragment is not sent.
    @Test func queriesOfPathClientAndCallAreJoined() async throws {
        let api = api.with { $0.query = ["key": "k", "page": 1] }
        let read: WerkzeugReading = try await api.get("x?own=\("a&b")#part", query: ["page": 2])
        #expect(read.query == [["own", "a&b"], ["key", "k"], ["page", "2"]])
    }

    @Test func specialCharactersInPathSegmentsAreReadEqually() async throws {
        var chance = SeededChance(3)
        let alphabet = Array("ab./?#%:@&=+ \\\u{0}\n~é👴🏻[]{}|^`\"<>")
        let random = (0..<40).map { _ in
            String(
                (0...Int.random(in: 0...5, using: &chance)).map { _ in alphabet.randomElement(using: &chance) ?? "a" })
        }
        for text in Self.hostile + random where text != "." && text != ".." {
            let read: WerkzeugReading = try await api.get("a/\(text)/b?q=\(text)")
            #expect(bytes(read.segments) == bytes(["api", "a", text, "b"]), "\(text.debugDescription)")
            #expect(Array(read.path.utf8) == Array("/api/a/\(text)/b".utf8), "\(text.debugDescription)")
            #expect(bytes(read.query) == bytes([["q", text]]), "\(text.debugDescription)")
        }
    }

    @Test(arguments: [
        ("ada", "secret"), ("", ""), ("ada", ""), ("", "secret"), ("é", "p:ä:ß"), ("a b", "&=+%#"), ("漢", "👴🏻"),
    ])
    func basicCredentialsAreReadEqually(_ user: String, _ password: String) async throws {
        let credential = try Credential.basic(user, password)
        let expected = WerkzeugReading.Credentials(type: "basic", user: user, password: password)
        let signed = api.with { $0.fields[.authorization] = credential.fieldValue }
        #expect(try await signed.get("x", as: WerkzeugReading.self).credential == expected)
        let read = try await api.get("x", fields: [.authorization: credential], as: WerkzeugReading.self)
        #expect(read.credential == expected)
    }

    @Test(arguments: ["mF_9.B5f-4.1JqM", "a/b+c==", "a b"])
    func bearerCredentialsAreReadEqually(_ token: String) async throws {
        let signed = api.with { $0.fields = [.authorization: Credential.bearer(token)] }
        let read: WerkzeugReading = try await signed.get("x")
        #expect(read.credential == WerkzeugReading.Credentials(type: "bearer", token: token))
        let none = try await signed.get("x", fields: [.authorization: nil], as: WerkzeugReading.self)
        #expect(none.credential == nil)
    }

    @Test func acceptFieldListsTheTypesOfTheSerializer() async throws {
        func accept(_ read: WerkzeugReading) -> [String: Double] {
            Dictionary(read.accept.map { ($0.value, $0.quality) }) { max($0, $1) }
        }
        #expect(
            accept(try await api.get("x")) == ["application/json": 1, "text/json": 0.5, "text/javascript": 0.1])
        let picture = Serializers.Closure(accepts: ["image/png", "image/*;q=0.3", "application/json; q=0.001"]) {
            try await Serializers.Formatted<WerkzeugReading>().output(from: $0)
        }
        let read = try await api.get("x", using: picture)
        #expect(accept(read) == ["image/png": 1, "image/*": 0.3, "application/json": 0.001])
    }

    @Test func acceptLanguageAndUserAgentAreRead() async throws {
        let field = AcceptLanguage.field(environment: ["LANG": "de_AT.UTF-8", "LANGUAGE": "de_AT:sr_RS@latin:fr"])
        let api = api.with { $0.fields = [.acceptLanguage: field, "X-Number": 7] }
        let read: WerkzeugReading = try await api.get("x")
        let expected: [WerkzeugReading.Weighted] = [
            .init(value: "de-AT", quality: 1), .init(value: "sr-Latn-RS", quality: 0.9),
            .init(value: "fr", quality: 0.8),
        ]
        #expect(read.languages == expected && read.fields["x-number"] == "7")
        let program = try #require(read.fields["user-agent"]).split(separator: " ").map(String.init)
        #expect(program.count == 2 && program.last == "Curlew/\(libraryVersion)")
    }

    @Test func bodiesOfUnknownLengthAreChunked() async throws {
        let source = ChunkSource(body: PatternBody(seed: 2, length: 100_000), chunk: 7001)
        let read: WerkzeugReading = try await api.post("x", .stream(source, type: "image/png"))
        #expect(read.body.sha256 == source.body.sha256 && read.length == nil && read.type == "image/png")
        #expect(read.fields["transfer-encoding"] == "chunked")
    }
}
