// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew
@testable import CurlewAuth

/// Authenticators send secrets over plain HTTP only to loopback addresses, or where the caller allows it.
///
/// On Linux, connections to 0.0.0.0 reach this machine, but 0.0.0.0 is no loopback address: the tests use it in place
/// of a remote host.
@Suite(.timeLimit(.minutes(5)))
struct PlainHTTPTests {
    /// The authenticators that send a secret with the first request.
    private func authenticators(_ isAllowed: Bool, _ netrc: ScratchFile) -> [any Authenticator] {
        [
            .basic("ann", "SECRET", allowsPlainHTTP: isAllowed), .bearer("SECRET", allowsPlainHTTP: isAllowed),
            .refreshing(
                AccessToken("SECRET"), settings: RefreshingAuthentication.Settings(allowsPlainHTTP: isAllowed)
            ) { _ in AccessToken("SECRET") },
            .netrc(netrc.path, allowsPlainHTTP: isAllowed),
        ]
    }

    @Test func preemptiveCredentialsRequireHTTPS() async throws {
        let netrc = try ScratchFile("machine 0.0.0.0 login ann password SECRET default login ann password SECRET".utf8)
        let server = try MockServer { _ in .text("fine") }
        for auth in authenticators(false, netrc) {
            let session = Session(interceptors: [auth])
            let error = try await networkError {
                try await session.data(for: Request("http://0.0.0.0:\(server.port)/"))
            }
            #expect(error.kind == .invalidRequest && error.phase == .preparing, "\(auth): \(error)")
            #expect(error.message.contains("plain http") && error.hint?.contains("allowsPlainHTTP") == true, "\(error)")
            #expect(!error.detailedDescription.contains("SECRET") && error.retriability == .never)
            for host in ["127.0.0.1", "localhost"] {
                _ = try await session.data(for: Request("http://\(host):\(server.port)/"))
                #expect(server.requests.last?.field("Authorization") != nil, "\(auth) at \(host)")
            }
            var own = Request("http://0.0.0.0:\(server.port)/", fields: [.authorization: "Own word"])
            _ = try await session.data(for: own)
            #expect(server.requests.last?.field("Authorization") == "Own word")
            own = Request("http://0.0.0.0:\(server.port)/", options: .anonymous)
            _ = try await session.data(for: own)
            #expect(server.requests.last?.field("Authorization") == nil)
        }
        #expect(server.requestCount == 16)
        for auth in authenticators(true, netrc) {
            _ = try await Session(interceptors: [auth]).data(for: Request("http://0.0.0.0:\(server.port)/"))
            #expect(server.requests.last?.field("Authorization") != nil, "\(auth)")
        }
    }

    /// The default entry matches every host, so a request to an unlisted host is sent without credentials.
    @Test func netrcDefaultEntryIsNotSentOverPlainHTTP() async throws {
        let netrc = try ScratchFile("machine other login x password y default login ann password SECRET".utf8)
        let server = try MockServer { _ in .text("fine") }
        let request = Request("http://0.0.0.0:\(server.port)/")
        _ = try await Session(interceptors: [.netrc(netrc.path)]).data(for: request)
        #expect(server.requests.last?.field("Authorization") == nil)
        _ = try await Session(interceptors: [.netrc(netrc.path, allowsPlainHTTP: true)]).data(for: request)
        #expect(server.requests.last?.field("Authorization") != nil)
    }

    @Test func challengedCredentialsRequireHTTPS() async throws {
        let server = try MockServer { request in
            if request.field("Authorization") != nil { return .text("welcome") }
            return .text("who are you?", status: 401).field("WWW-Authenticate", "Basic realm=\"staff\"")
        }
        let request = Request("http://0.0.0.0:\(server.port)/")
        let careful: [any Authenticator] = [
            .password("ann", "SECRET"), .challenge { _, _ in .use(.password("ann", "SECRET")) },
        ]
        for auth in careful {
            let error = try await networkError { try await Session(interceptors: [auth]).data(for: request) }
            #expect(error.kind == .invalidRequest && error.response?.status == .unauthorized, "\(error)")
            #expect(error.hint?.contains("allowsPlainHTTP") == true && !"\(error)".contains("SECRET"))
        }
        #expect(server.requests.allSatisfy { $0.field("Authorization") == nil } && server.requestCount == 2)
        let allowed = Session(interceptors: [.password("ann", "SECRET", allowsPlainHTTP: true)])
        #expect(try await allowed.data(for: request).1.status == .ok)
        let near = Session(interceptors: [.password("ann", "SECRET")])
        #expect(try await near.data(for: Request(server.url("/"))).1.status == .ok)
    }

    @Test func tokenRequestsRequireHTTPS() async throws {
        let server = try MockServer { _ in .json(#"{"access_token":"A","token_type":"Bearer"}"#) }
        var app = OAuth2Client("http://0.0.0.0:\(server.port)/token", id: "a", secret: "SECRET", session: Session())
        let error = try await networkError { try await app.clientCredentials() }
        #expect(error.kind == .invalidRequest && error.hint?.contains("allowsPlainHTTP") == true)
        #expect(server.requests.isEmpty)
        app.allowsPlainHTTP = true
        #expect(try await app.clientCredentials().value == "A" && server.requestCount == 1)
    }

    @Test(arguments: [
        ("http://localhost/", false), ("http://a.localhost:8080/", false), ("http://127.0.0.1/", false),
        ("http://127.255.0.9/", false), ("http://[::1]:81/", false), ("https://example.com/", false),
        ("http://example.com/", true), ("http://localhost.example.com/", true), ("http://127.evil.example/", true),
        ("http://127.0.0.1.evil.example/", true), ("http://0.0.0.0/", true), ("http://[::]/", true),
        ("http://10.0.0.1/", true), ("http://[::ffff:127.0.0.1]/", true), ("http://localhost./", true),
        ("http://mylocalhost/", true),
    ])
    func onlyLoopbackURLsAreUnreadableByOthers(_ url: String, _ isReadable: Bool) throws {
        #expect(try RequestTarget(url).isCleartext == isReadable)
    }
}
