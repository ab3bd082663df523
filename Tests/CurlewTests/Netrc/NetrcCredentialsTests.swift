// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew
@testable import CurlewAuth

/// Requests with credentials from .netrc files.
@Suite(.timeLimit(.minutes(5)))
struct NetrcCredentialsTests {
    private func request(_ url: String, _ credentials: NetrcCredentials) -> Request {
        var request = Request(url)
        request.interceptors = [credentials]
        return request
    }

    private func sent(_ text: String, _ change: (inout Request) -> Void = { _ in }) async throws -> String? {
        let server = try MockServer { _ in .text("fine") }
        let file = try ScratchFile(text.utf8)
        var request = request(server.url("/"), .netrc(file.path))
        change(&request)
        _ = try await Session().data(for: request)
        return server.requests[0].field("Authorization")
    }

    private func basic(_ text: String) -> String { "Basic " + Data(text.utf8).base64EncodedString() }

    @Test func entriesAreChosenByHost() async throws {
        #expect(try await sent("machine 127.0.0.1 login ann password pass") == basic("ann:pass"))
        #expect(try await sent("machine other login x password y default login ann password pass") == basic("ann:pass"))
        #expect(try await sent("machine 127.0.0.1 login ann machine 127.0.0.1 login b password c") == basic("ann:"))
        #expect(try await sent("machine other login x password y") == nil)
        #expect(try await sent("machine 127.0.0.1 password y") == nil)
        #expect(try await sent("") == nil)
    }

    @Test func machineNamesAreComparedAsHosts() async throws {
        let server = try MockServer { _ in .text("fine") }
        let file = try ScratchFile("machine LocalHost. login ann password pass".utf8)
        let url = "http://localhost:\(server.port)/"
        _ = try await Session().data(for: request(url, .netrc(file.path)))
        #expect(server.requests[0].field("Authorization") == basic("ann:pass"))
    }

    @Test func requestsOwnCredentialsTakePrecedence() async throws {
        let text = "machine 127.0.0.1 login ann password pass"
        #expect(try await sent(text) { $0.fields[.authorization] = "Bearer mine" } == "Bearer mine")
        let url = try await sent(text) { $0.url = $0.url.replacing("http://", with: "http://eve:own@") }
        #expect(url == basic("eve:own"))
        #expect(try await sent(text) { $0.options = .anonymous } == nil)
    }

    @Test func credentialsAreSentOverTLS() async throws {
        let file = try ScratchFile("default login ann password pass".utf8)
        let authority = try TestAuthority()
        let secure = try MockServer(tls: try authority.issue()) { _ in .text("fine") }
        let session = try Session(trust: CustomRoots(pem: authority.certificatePEM))
        _ = try await session.data(for: request(secure.url("/"), .netrc(file.path)))
        #expect(secure.requests[0].field("Authorization") == basic("ann:pass"))
    }

    @Test func crossOriginRedirectsGetNoCredentials() async throws {
        let (first, second) = (try MockServer(), try MockServer { _ in .text("fine") })
        first.on("GET", "/", .redirect(to: second.url("/")))
        let file = try ScratchFile("default login ann password pass".utf8)
        _ = try await Session().data(for: request(first.url("/"), .netrc(file.path)))
        #expect(first.requests[0].field("Authorization") != nil)
        #expect(second.requests[0].field("Authorization") == nil)
    }

    @Test func fileIsReadOnce() async throws {
        let server = try MockServer { _ in .text("fine") }
        let file = try ScratchFile("default login ann password pass".utf8)
        let credentials: NetrcCredentials = .netrc(file.path)
        let session = Session()
        _ = try await session.data(for: request(server.url("/"), credentials))
        try file.write("default login eve password pass".utf8)
        _ = try await session.data(for: request(server.url("/"), credentials))
        #expect(server.requests.map { $0.field("Authorization") } == [basic("ann:pass"), basic("ann:pass")])
    }

    @Test func missingFileFailsUnlessItIsTheDefault() async throws {
        let server = try MockServer { _ in .text("fine") }
        for path in ["/nonexistent/netrc", "/etc/passwd/netrc"] {
            // A missing file is no error unless the caller has named its path.
            let usual = NetrcCredentials(path: nil, allowsPlainHTTP: true, environment: ["NETRC": path])
            _ = try await Session().data(for: request(server.url("/"), usual))
            let error = try await networkError {
                try await Session().data(for: request(server.url("/"), .netrc(path)))
            }
            #expect(error.kind == .invalidRequest && error.message.contains("\(path) cannot be read"))
        }
        #expect(server.requests.count == 2 && server.requests.allSatisfy { $0.field("Authorization") == nil })
    }

    @Test func malformedFileIsReadAgain() async throws {
        let server = try MockServer { _ in .text("fine") }
        let file = try ScratchFile("machine".utf8)
        let credentials: NetrcCredentials = .netrc(file.path)
        let session = Session()
        let error = try await networkError { try await session.data(for: request(server.url("/"), credentials)) }
        #expect(error.kind == .invalidRequest)
        try file.write("default login ann password pass".utf8)
        _ = try await session.data(for: request(server.url("/"), credentials))
        #expect(server.requests.map { $0.field("Authorization") } == [basic("ann:pass")])
    }

    @Test func unusableFilesFailWithoutSecrets() async throws {
        func failure(_ path: String) async throws -> NetworkError {
            try await networkError {
                try await Session().data(for: request("http://127.0.0.1:1/", .netrc(path)))
            }
        }
        let malformed = try ScratchFile("machine a\nlogin SECRET SECRET".utf8)
        let error = try await failure(malformed.path)
        #expect(error.kind == .invalidRequest && error.cause as? InvalidNetrc == InvalidNetrc(2, .unknownKeyword))
        #expect(error.message.contains("Line 2") && !error.detailedDescription.contains("SECRET"))
        let folder = try await failure("/tmp")
        #expect(folder.kind == .invalidRequest && folder.message.contains("/tmp cannot be read"))
        let large = try ScratchFile([UInt8](repeating: 0x20, count: (1 << 20) + 1))
        #expect(try await failure(large.path).kind == .invalidRequest)
        let colon = try ScratchFile("default login a:SECRET password b".utf8)
        let refused = try await failure(colon.path)
        #expect(refused.kind == .invalidRequest && refused.cause as? Credential.Invalid == .colonInUser)
        #expect(!refused.detailedDescription.contains("SECRET"))
    }

    @Test func defaultPathsComeFromTheEnvironment() {
        func path(_ environment: [String: String], given path: String? = nil) -> String? {
            NetrcCredentials(path: path, allowsPlainHTTP: false, environment: environment).path
        }
        #expect(path(["HOME": "/home/ann"]) == "/home/ann/.netrc")
        #expect(path(["HOME": "/home/ann", "NETRC": "/etc/netrc"]) == "/etc/netrc")
        #expect(path(["HOME": "/home/ann", "NETRC": ""]) == "/home/ann/.netrc")
        #expect(path(["HOME": "/h", "NETRC": "/etc/netrc"], given: "~/other") == "/h/other")
        #expect(path([:], given: "here") == "here")
        #expect(path([:]) == nil && path(["HOME": ""]) == nil)
        let none = NetrcCredentials(path: nil, allowsPlainHTTP: false, environment: [:])
        #expect("\(none)" == "NetrcCredentials(no file)")
        #expect(String(reflecting: none) == "NetrcCredentials(no file)")
    }
}
