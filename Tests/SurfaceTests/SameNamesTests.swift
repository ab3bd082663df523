// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import SameNames
import Testing

// A web framework and Curlew in one file: type aliases choose the meaning of the names that both export.
private typealias Request = SameNames.Request
private typealias Response = SameNames.Response
private typealias HTTPRequest = Curlew.Request
private typealias HTTPSession = Curlew.Session

@Suite("Names that other modules export too")
struct SameNamesTests {
    private func handle(_ request: Request, _ server: MockServer) async throws -> Response {
        let session = HTTPSession()
        let call = HTTPRequest(.get, server.url(request.path))
        let (_, head) = try await session.data(for: call)
        return Response(status: head.status.code)
    }

    @Test func typeAliasesChooseBetweenModules() async throws {
        let server = try MockServer()
        server.on("GET", "/a", .text("a"))
        #expect(try await handle(Request(path: "/a"), server).status == 200)
        let client = Curlew.Client(try BaseURL(server.url("/")))
        #expect(try await client.get("a", using: .text) == "a")
    }
}
