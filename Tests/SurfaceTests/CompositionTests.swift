// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// A value around a session replaces the subclass of a manager in AFNetworking.
@Suite(.timeLimit(.minutes(5)))
struct CompositionTests {
    /// A wrapper that signs every request and supports its own URL scheme.
    struct Archive: Sendable {
        var session: Session
        var origin: String

        func transfer(_ url: String) -> Transfer<Data> {
            let prefix = "archive:"
            var request = Request(url.hasPrefix(prefix) ? origin + "/items/" + url.dropFirst(prefix.count) : url)
            request.fields["X-Reader"] = "curlew"
            return session.transfer(request)
        }
    }

    @Test func wrapperAddsAFieldToEveryTransfer() async throws {
        let server = try MockServer { _ in .text("made") }
        let archive = Archive(session: Session(), origin: server.origin)
        #expect(try await archive.transfer(server.url("/plain")).value == Data("made".utf8))
        #expect(server.requests.map { $0.field("X-Reader") } == ["curlew"])
    }

    @Test func customSchemeBecomesARequest() async throws {
        let server = try MockServer { .text($0.path) }
        let archive = Archive(session: Session(), origin: server.origin)
        #expect(try await archive.transfer("archive:42").value == Data("/items/42".utf8))
        await #expect(throws: NetworkError.self) { try await archive.session.transfer("archive:42").value }
    }

    @Test func sessionServesJSONAndTextOverOneConnection() async throws {
        let server = try MockServer { $0.path == "/json" ? .json(#"{"n":1}"#) : .text("plain") }
        let session = Session()
        let (json, _) = try await session.data(for: Request(server.url("/json")))
        #expect(try JSONDecoder().decode([String: Int].self, from: json) == ["n": 1])
        let (text, head) = try await session.data(for: Request(server.url("/text")))
        #expect(String(decoding: text, as: UTF8.self) == "plain")
        #expect(head.status == 200)
        #expect(server.connectionCount == 1)
    }
}
