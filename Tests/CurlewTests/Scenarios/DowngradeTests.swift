// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// A server that speaks HTTP/2 first and HTTP/1.1 later: the version of each connection is its own.
@Suite(.timeLimit(.minutes(5)))
struct DowngradeTests {
    private let authority: TestAuthority
    private let session: Session
    private let url: String
    private let server: MockServer

    init() async throws {
        authority = try TestAuthority()
        let identity = try authority.issue()
        session = try Session(trust: CustomRoots(pem: authority.certificatePEM))
        // Another process may take the port before the second server listens.
        for _ in 0..<20 {
            let modern = try HTTP2Server(tls: identity) { _ in .respond(200, text: "two") }
            let (data, head) = try await session.data(for: Request(modern.url("/")))
            #expect(head.version == .http2 && data == Data("two".utf8))
            modern.stop()
            guard let server = try? Self.oldServer(identity, modern.port) else { continue }
            self.server = server
            url = modern.url("/")
            return
        }
        throw NoPort()
    }

    private struct NoPort: Error {}

    private static func oldServer(_ identity: TestIdentity, _ port: UInt16) throws -> MockServer {
        var options = MockServer.Options()
        options.port = port
        return try MockServer(tls: identity, options: options) { request in
            switch request.path {
            case "/abrupt" where request.ordinal > 1: .raw("").fault(.close, at: .start)
            case "/pushy":
                .text("mine").fault(.send(Array("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil".utf8)), at: .end)
            default: .text("one")
            }
        }
    }

    @Test func postIsNotRetriedOnLostHTTP1Connection() async throws {
        let (data, head) = try await session.data(for: Request(url))
        #expect(head.version == .http1_1 && data == Data("one".utf8))
        let error = try await networkError { [url] in
            try await session.data(for: Request(.post, url + "abrupt", body: .text("pay")))
        }
        #expect(error.kind == .connectionLost && error.retriability != .safe(after: nil))
        #expect(server.requests.map(\.path) == ["/", "/abrupt"])
    }

    @Test func unsolicitedBytesCloseAnIdleConnection() async throws {
        for round in 1...3 {
            let (data, head) = try await session.data(for: Request(url + "pushy"))
            #expect(head.version == .http1_1 && data == Data("mine".utf8), "round \(round)")
            await server.waitUntil(openConnections: 0)
        }
        #expect(try await session.data(for: Request(url)).0 == Data("one".utf8))
    }
}
