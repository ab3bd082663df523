// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew
@testable import CurlewAuth

/// Every error of kind `.invalidRequest` has the invalid part in `requestFlaw`.
@Suite(.timeLimit(.minutes(5)))
struct RequestFlawTests {
    typealias Flaw = NetworkError.RequestFlaw

    private func expect(
        _ flaw: Flaw, _ location: SourceLocation = #_sourceLocation, of operation: () async throws -> some Any
    ) async throws {
        let error = try await #require(throws: NetworkError.self, sourceLocation: location) {
            _ = try await operation()
        }
        #expect(error.kind == .invalidRequest, "\(error)", sourceLocation: location)
        #expect(error.requestFlaw == flaw, "\(error)", sourceLocation: location)
    }

    // MARK: Requests

    static let rows: [(String, Flaw)] = [
        ("", .url), ("http://h/\u{7}", .url), ("http://u\\v@h/", .url),
        ("example.com/x", .scheme), ("ftp://h/", .scheme), ("/x", .scheme),
        ("http://", .host), ("http://a%20b/", .host), ("http://a b/", .host), ("http://a..b/", .host),
        ("http://\(String(repeating: "a", count: 64))/", .host), ("http://1.2.3.400/", .host), ("http://[::1/", .host),
        ("http://h:0/", .port), ("http://h:70000/", .port), ("http://h:x/", .port),
    ]

    @Test(arguments: rows.indices) func flawsOfURLsAreReported(_ index: Int) async throws {
        let (url, flaw) = Self.rows[index]
        try await expect(flaw) { try Request(url).validated() }
        try await expect(flaw) { try await Session().data(for: Request(url)) }
        try await expect(flaw) { try BaseURL(url) }
    }

    @Test func everyInvalidURLReasonHasAFlaw() {
        let reasons: [(InvalidURL.Reason, Flaw)] = [
            (.forbiddenInUserInfo, .url), (.nameTooLong, .host), (.invalidIPv6, .host), (.namesLibraryMissing, .host),
            (.nameRefused("x"), .host), (.invalidPort, .port), (.unsupportedScheme("x"), .scheme),
        ]
        for (reason, flaw) in reasons { #expect(reason.flaw == flaw, "\(reason)") }
    }

    @Test func flawsOfRequestsAreReported() async throws {
        let long = String(repeating: "x", count: 3)
        var invalid: [(Request, Flaw)] = [
            (Request(Method("G ET"), "http://h/"), .method), (Request(.connect, "http://h/"), .method),
            (Request("http://h/", fields: ["A B": "x"]), .field),
            (Request("http://h/", fields: ["A": "x\r\ny"]), .field),
            (Request("http://h/", fields: ["Content-Length": "3"]), .field),
            (Request(.head, "http://h/", body: .text(long)), .body),
            (Request(.trace, "http://h/", body: .text(long)), .body),
            (Request(.post, "http://h/", body: .file("/curlew/does-not-exist")), .body),
            (Request(.post, "http://h/", body: .multipart(MultipartForm([]))), .body),
        ]
        let options: [Request.Options] = [
            .timeout(.zero), .timeouts(Timeouts(idle: .zero)), .bandwidth(download: 0), .retry(RetryPolicy(limit: -1)),
            .responseLimit(-1), .redirects(.follow(max: -1)),
        ]
        invalid += options.map { (Request("http://h/", options: $0), .option) }
        for (request, flaw) in invalid {
            try await expect(flaw) { try await Session().data(for: request) }
            try await expect(flaw) { try await Session().transfer(request).value }
        }
    }

    // MARK: Sessions, clients and downloads

    @Test func flawsOfConfigurationsAndInterceptorsAreReported() async throws {
        try await expect(.configuration) { try Session.Configuration { $0.limits.connections = 0 }.validate() }
        try await expect(.configuration) { try await Session { $0.limits.connections = 0 }.data(for: "http://h/") }
        let interceptors: [any Interceptor] = [
            .circuitBreaker(failures: 0), .rateLimit(requests: 0, per: .seconds(1)),
            .retry(RetryPolicy(limit: 1, budget: -1)),
        ]
        for interceptor in interceptors {
            var request: Request = "http://127.0.0.1:1/"
            request.interceptors = [interceptor]
            try await expect(.configuration) { try await Session().data(for: request) }
        }
        try await expect(.usage) { try await Session.shared.shutdown() }
    }

    @Test func plainHTTPWhereTLSIsRequired() async throws {
        try await expect(.scheme) { try await Session { $0.tls.isRequired = true }.data(for: "http://h/") }
        let client = OAuth2Client("http://h/token", id: "x")
        try await expect(.scheme) { try await client.clientCredentials() }
    }

    @Test func flawsOfClientsAreReported() async throws {
        let queried = "https://h/?q"
        try await expect(.url) { try BaseURL(queried) }
        let api = Client(try BaseURL("https://h/v1/", joining: .joined))
        try await expect(.path) { try api.request(for: Call(.get, "../x")) }
        let name = ".."
        try await expect(.path) { try api.request(for: Call(.get, "users/\(name)/x")) }
    }

    @Test func readingABodyTwiceIsMisuse() async throws {
        let server = try MockServer { _ in .text("x") }
        let session = Session()
        let transfer = session.transfer(Request(server.url("/")))
        for try await _ in transfer.bytes {}
        try await expect(.usage) { try await transfer.value }
        try await expect(.usage) { for try await _ in transfer.bytes {} }
    }

    @Test func flawsOfCredentialsAndSignaturesAreReported() async throws {
        let folder = try Folder()
        folder.write("netrc", Array("machine h login \"a".utf8))
        var request: Request = "http://127.0.0.1:1/"
        request.interceptors = [NetrcCredentials(path: folder("netrc"), allowsPlainHTTP: true)]
        try await expect(.credentials) { try await Session().data(for: request) }
        let empty = SigV4Signature(region: "r", service: "s3") { AWSCredentials(accessKeyID: "", secretAccessKey: "") }
        try await expect(.credentials) { try await empty.presignedURL(for: "https://h/", expiresIn: .seconds(1)) }
        let signature = SigV4Signature(region: "r", service: "s3") {
            AWSCredentials(accessKeyID: "A", secretAccessKey: "S")
        }
        try await expect(.usage) { try await signature.presignedURL(for: "https://h/", expiresIn: .zero) }
        try await expect(.url) {
            try await signature.presignedURL(for: "https://h/?X-Amz-Signature=1", expiresIn: .seconds(1))
        }
    }

    @Test func flawsOfDownloadsAreReported() async throws {
        let folder = try Folder()
        let session = Session()
        let file = DownloadDestination.file(folder("a"))
        try await expect(.destination) { try await session.download("http://127.0.0.1:1/") }
        try await expect(.destination) { try await session.download("http://127.0.0.1:1/", to: .file("")) }
        try await expect(.method) { try await session.download(Request(.put, "http://127.0.0.1:1/"), to: file) }
        let ranged = Request("http://127.0.0.1:1/", fields: ["Range": "bytes=0-1"])
        try await expect(.field) { try await session.download(ranged, to: file) }
    }

    // MARK: Errors made by users

    @Test func flawsOfErrorsMadeByUsersAreKept() {
        let plain = NetworkError(.invalidRequest, phase: .preparing, "No.")
        #expect(plain.requestFlaw == .other && plain.with(attempts: 2).requestFlaw == .other)
        let own = NetworkError(
            .invalidRequest, phase: .preparing, "No.", requestFlaw: NetworkError.RequestFlaw(rawValue: "tenant"))
        #expect(own.requestFlaw?.description == "tenant" && own.with(hint: "x").requestFlaw?.rawValue == "tenant")
        #expect(NetworkError(.timedOut, phase: .waiting, "Late.", requestFlaw: .host).requestFlaw == nil)
        #expect(NetworkError(.cancelled, phase: .queued, "Stopped.").requestFlaw == nil)
    }

    @Test func flawsAreCodable() throws {
        let data = try JSONEncoder().encode([Flaw.scheme, .host])
        #expect(try JSONDecoder().decode([Flaw].self, from: data) == [.scheme, .host])
    }
}
