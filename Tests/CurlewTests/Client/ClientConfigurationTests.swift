// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// HS-19, RS-30: a client's configuration can be encoded and decoded.
@Suite(.timeLimit(.minutes(5)))
struct ClientConfigurationTests {
    @Test func configurationRoundTrips() throws {
        var configuration = ClientConfiguration(
            base: try BaseURL("https://h.test/v1" as String, joining: .joined), fields: ["X-A": "b", .accept: nil],
            query: ["key": "a b", "list": [1, 2]], queryEncoder: Request.QueryEncoder(arrays: .repeated, spaces: .plus),
            options: [.timeout(.seconds(3)), .label("x")])
        configuration.fields[.authorization] = "Bearer secret"
        let data = try JSONEncoder().encode(configuration)
        #expect(!String(decoding: data, as: UTF8.self).contains("secret"))
        let read = try JSONDecoder().decode(ClientConfiguration.self, from: data)
        #expect(read.base == configuration.base && read.options == configuration.options)
        #expect(read.fields == ["X-A": "b", .accept: nil])
        #expect(read.queryEncoder == configuration.queryEncoder)
        #expect(try read.query.text(read.queryEncoder) == "key=a+b&list=1&list=2")
        let call = try Client(read).request(for: Call(.get, "x", query: ["key": "c"]))
        #expect(
            call.url == "https://h.test/v1/x?list=1&list=2&key=c"
                || call.url == "https://h.test/v1/x?key=c&list=1&list=2")
        let request = try Client(read).request(for: Call(.get, "/x"))
        #expect(request.url == "https://h.test/v1/x?key=a+b&list=1&list=2")
    }

    @Test func callsOverrideADecodedQuery() throws {
        let configuration = ClientConfiguration(
            base: "https://h.test", query: ["page": 1, "tags": ["a", "b"], "a b": 1, "z": 1],
            queryEncoder: Request.QueryEncoder(spaces: .plus))
        let data = try JSONEncoder().encode(configuration)
        let read = try JSONDecoder().decode(ClientConfiguration.self, from: data)
        for configuration in [configuration, read] {
            let call = Call(.get, "x", query: ["page": 2, "tags": ["c"], "a b": nil])
            let request = try Client(configuration).request(for: call)
            let items = request.url.dropFirst("https://h.test/x?".count).split(separator: "&").sorted()
            #expect(items == ["a+b", "page=2", "tags%5B%5D=c", "z=1"])
        }
    }

    @Test func missingKeysDecodeAsDefaults() throws {
        let read = try JSONDecoder().decode(
            ClientConfiguration.self, from: Data(#"{"base": "https://h.test"}"#.utf8))
        #expect(read.base.text == "https://h.test/" && read.options == [] && read.query.isEmpty)
        #expect(read.fields.isEmpty && read.queryEncoder == Request.QueryEncoder())
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode(ClientConfiguration.self, from: Data("{}".utf8))
        }
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode(ClientConfiguration.self, from: Data(#"{"base": "ftp://h"}"#.utf8))
        }
    }

    /// RQ-25: a client sends no languages unless its fields name them.
    @Test func languagesAreSentOnlyIfFieldsNameThem() throws {
        func languages(_ api: JSONClient, _ fields: HeaderChanges = [:]) throws -> String? {
            try api.request(for: Call(.get, "x", fields: fields)).fields[.acceptLanguage]
        }
        #expect(try languages(Client("https://h.test")) == nil)
        let own = Client("https://h.test").with { $0.fields = [.acceptLanguage: AcceptLanguage.system] }
        #expect(try languages(own) == AcceptLanguage.system)
        let french = Session { $0.fields[.acceptLanguage] = "fr" }
        #expect(try languages(Client("https://h.test", session: french)) == nil, "set by the session")
        let german = Client("https://h.test").with { $0.fields = [.acceptLanguage: "de"] }
        #expect(try languages(german) == "de" && languages(german, [.acceptLanguage: nil]) == nil)
    }

    /// All initialisers of clients.
    @Test func initialisersSetTrustAndSession() throws {
        let session = Session()
        let configuration = ClientConfiguration(base: "http://h.test")
        let insecure = InsecureTrust(reason: "a test")
        #expect(Client(configuration, session: session).trust == nil)
        #expect(Client("http://h.test", session: session).trust == nil)
        #expect(Client(configuration, trust: insecure, session: session).trust == insecure)
        let client = Client("http://h.test", requests: .form, responses: PropertyList(), trust: insecure)
        #expect(client.trust == insecure && client.session === Session.shared && client.query.isEmpty)
        let pins = try PinnedPublicKeys([.unknown], withoutBackup: "a test")
        let refused = #expect(throws: NetworkError.self) { try Client(configuration, trust: pins, session: session) }
        #expect(refused?.kind == .invalidRequest && refused?.hint?.contains("https") == true)
        #expect(try Client("https://h.test", trust: pins).trust != nil)
    }
}
