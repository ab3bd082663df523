// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import CurlewXML
import FoundationEssentials
import Testing

/// Tests of pages from responses.
@Suite(.timeLimit(.minutes(5)))
struct HTMLSerializerTests {
    private func api(_ body: [UInt8], _ type: String, size: Int = 1000) throws -> (MockServer, JSONClient) {
        let response = MockResponse.bytes(body).field("Content-Type", type).chunked(size: size)
        let server = try MockServer { _ in response }
        return (server, Client(try BaseURL(server.url("/")), session: Session()))
    }

    @Test(arguments: [1, 3, 1000], ["text/html; charset=utf-8", "application/xhtml+xml"])
    func pagesAreRead(_ size: Int, _ type: String) async throws {
        let (server, api) = try api(Array("<title>é</title><p>a<p>b".utf8), type, size: size)
        let page = try await api.get("page", using: .html)
        #expect(page.title == "é")
        #expect(try page.nodes("//p").map(\.text) == ["a", "b"])
        #expect(server.requests.first?.field("Accept") == "text/html, application/xhtml+xml")
    }

    /// The server's charset overrides the `<meta>` element, and the caller's overrides the server's.
    @Test func charsetOfTheResponseOverridesThePage() async throws {
        let body = Array("<meta charset=koi8-r><p>".utf8) + [0xE9]
        let (server, api) = try api(body, "text/html; charset=\"ISO-8859-1\"")
        #expect(try await api.get("", using: .html).root.text == "é")
        #expect(try await api.get("", using: .html(charset: "windows-1251")).root.text == "й")
        let (other, plain) = try self.api(body, "text/html")
        #expect(try await plain.get("", using: HTMLSerializer()).root.text == "И")
        #expect(server.requests.count == 2 && other.requests.count == 1)
    }

    @Test func otherContentTypesAreRejected() async throws {
        let (server, api) = try api(Array("{}".utf8), "application/json")
        let error = await #expect(throws: NetworkError.self) { try await api.get("", using: .html) }
        #expect(error?.kind == .unacceptableContentType && server.requests.count == 1)
    }

    /// The parser refuses a hostile page before the rest of it arrives.
    @Test func hostilePagesFailEarly() async throws {
        let body = Array(String(repeating: "<div>", count: 2_000_000).utf8)
        let (server, api) = try api(body, "text/html", size: 64 << 10)
        let error = await #expect(throws: NetworkError.self) { try await api.get("", using: .html) }
        let cause = try #require(error?.cause as? XMLError)
        #expect(error?.kind == .decodingFailed && cause.kind == .limitExceeded && error?.response?.status == .ok)
        #expect(error?.message.contains("HTML") == true && error?.hint?.contains("limits.depth") == true)
        #expect(server.requests.count == 1)
    }

    @Test func emptyBodiesAreEmptyPages() async throws {
        let (server, api) = try api([], "text/html")
        let page = try await api.get("", using: .html)
        #expect(page.html == "<!DOCTYPE html><html></html>" && page.title == nil && server.requests.count == 1)
    }
}
