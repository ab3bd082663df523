// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew
@testable import CurlewAuth

/// Signed requests: signatures for each attempt, origins, clock offsets, keys, presigned URLs.
@Suite(.timeLimit(.minutes(5)))
struct SigV4Tests {
    private static let keys = AWSCredentials(accessKeyID: "AKID", secretAccessKey: "SECRET", sessionToken: "TOKEN")
    private static let start = 1_440_938_160.0

    /// A clock that advances by one minute with each call.
    private func clock() -> @Sendable () -> Date {
        let minutes = Lock(0)
        return {
            let minute = minutes.withLock { minutes in
                defer { minutes += 1 }
                return minutes
            }
            return Date(timeIntervalSince1970: Self.start + Double(minute) * 60)
        }
    }

    private func signature(
        _ service: String = "execute-api", payload: SigV4Signature.Payload = .automatic,
        now: @escaping @Sendable () -> Date = { Date(timeIntervalSince1970: SigV4Tests.start) }
    ) -> SigV4Signature {
        SigV4Signature(region: "eu-central-1", service: service, payload: payload, now: now) { Self.keys }
    }

    private func request(_ url: String, _ signature: SigV4Signature) -> Request {
        var request = Request(url)
        request.interceptors = [signature]
        return request
    }

    // MARK: Attempts and origins

    @Test func eachAttemptHasItsOwnSignature() async throws {
        let server = try MockServer()
        server.on("GET", "/", inOrder: [.text("busy", status: 503), .redirect(to: "/there")])
        server.on("GET", "/there", .text("fine"))
        let session = Session { $0.retry = RetryPolicy(limit: 1, backoff: .none) }
        let head = try await session.data(for: request(server.url("/"), signature(now: clock()))).1
        #expect(head.status == .ok)
        let sent = server.requests
        #expect(sent.map { $0.field("X-Amz-Date") } == ["20150830T123600Z", "20150830T123700Z", "20150830T123800Z"])
        #expect(Set(sent.map { $0.field("Authorization") }).count == 3)
        let expected = try await signature(now: { Date(timeIntervalSince1970: Self.start + 120) })
            .signed(Request(server.url("/there")))
        #expect(sent.last?.field("Authorization") == expected.fields[.authorization])
        #expect(
            sent.allSatisfy { $0.field("X-Amz-Security-Token") == "TOKEN" && $0.fields("Authorization").count == 1 })
    }

    @Test func crossOriginRedirectsAreNotSigned() async throws {
        let (first, second) = (try MockServer(), try MockServer())
        first.on("GET", "/1", .redirect(to: second.url("/2")))
        second.on("GET", "/2", .redirect(to: first.url("/3")))
        first.on("GET", "/3", .text("end"))
        let data = try await Session().data(for: request(first.url("/1"), signature())).0
        #expect(data == Data("end".utf8))
        let names = ["Authorization", "X-Amz-Security-Token", "X-Amz-Date"]
        let sent = [first.requests[0], second.requests[0], first.requests[1]].map { request in
            names.filter { request.field($0) != nil }.count
        }
        #expect(sent == [3, 0, 0])
    }

    @Test func requestsWithOwnCredentialsAreNotSigned() async throws {
        let server = try MockServer { _ in .text("fine") }
        var own = request(server.url("/"), signature())
        own.fields[.authorization] = "Bearer mine"
        _ = try await Session().data(for: own)
        _ = try await Session().data(for: request(server.url("/?X-Amz-Signature=00"), signature()))
        var anonymous = request(server.url("/"), signature())
        anonymous.options = .anonymous
        _ = try await Session().data(for: anonymous)
        #expect(server.requests.map { $0.field("Authorization") } == ["Bearer mine", nil, nil])
        #expect(server.requests.allSatisfy { $0.field("X-Amz-Date") == nil })
    }

    // MARK: Clocks

    /// A server whose clock is an hour ahead, and that refuses requests with another time.
    private func serverAhead(tls: TestIdentity? = nil) throws -> MockServer {
        try MockServer(tls: tls) { request in
            let isOnTime = request.field("X-Amz-Date") == "20150830T133600Z"
            return .text(isOnTime ? "fine" : "RequestTimeTooSkewed", status: isOnTime ? 200 : 403)
                .field("Date", HTTPDate(seconds: Int64(Self.start) + 3600).description)
        }
    }

    @Test func clockOffsetIsLearnedOncePerOrigin() async throws {
        let server = try serverAhead()
        let signature = signature()
        for _ in 0..<2 {
            let head = try await Session().data(for: request(server.url("/"), signature)).1
            #expect(head.status == .ok)
        }
        let dates = server.requests.map { $0.field("X-Amz-Date") }
        #expect(dates == ["20150830T123600Z", "20150830T133600Z", "20150830T133600Z"])
        // Another origin has a clock of its own.
        let other = try MockServer { _ in .text("fine") }
        _ = try await Session().data(for: request(other.url("/"), signature))
        #expect(other.requests[0].field("X-Amz-Date") == "20150830T123600Z")
    }

    /// The seconds by which the server's clock is ahead, and the number of requests.
    @Test(arguments: [(0, 1), (240, 1), (-240, 1), (241, 2), (-241, 2)])
    func forbiddenIsReturnedWhenTheClockIsRight(ahead: Int64, count: Int) async throws {
        let date = HTTPDate(seconds: Int64(Self.start) + ahead).description
        let server = try MockServer { _ in .text("AccessDenied", status: 403).field("Date", date) }
        let (data, head) = try await Session().data(for: request(server.url("/"), signature()))
        #expect(head.status == .forbidden && data == Data("AccessDenied".utf8))
        #expect(server.requestCount == count)
    }

    /// An offset of up to one day is learned, a larger one is not.
    @Test(arguments: [(86_400, 2), (-86_400, 2), (86_401, 1), (-86_401, 1)])
    func clockOffsetsAboveOneDayAreNotLearned(ahead: Int64, count: Int) async throws {
        let date = HTTPDate(seconds: Int64(Self.start) + ahead).description
        let server = try MockServer { _ in .text("AccessDenied", status: 403).field("Date", date) }
        #expect(try await Session().data(for: request(server.url("/"), signature())).1.status == .forbidden)
        #expect(server.requestCount == count)
    }

    /// On Linux, connections to 0.0.0.0 reach this machine, but 0.0.0.0 is no loopback address.
    @Test func clockOffsetIsNotLearnedOverPlainHTTP() async throws {
        let server = try serverAhead()
        let url = "http://0.0.0.0:\(server.port)/"
        let signature = signature()
        #expect(try await Session().data(for: request(url, signature)).1.status == .forbidden)
        #expect(server.requests.map { $0.field("X-Amz-Date") } == ["20150830T123600Z"])
        let authority = try TestAuthority()
        let secure = try serverAhead(tls: authority.issue())
        let session = try Session(trust: CustomRoots(pem: authority.certificatePEM))
        #expect(try await session.data(for: request(secure.url("/"), signature)).1.status == .ok)
        #expect(secure.requests.map { $0.field("X-Amz-Date") } == ["20150830T123600Z", "20150830T133600Z"])
    }

    @Test func nonReplayableBodyIsNotResentAfterLearningTheOffset() async throws {
        let server = try serverAhead()
        var put = request(server.url("/"), signature("s3", payload: .chunked()))
        put.method = .put
        put.body = .stream(ChunkSource(body: PatternBody(seed: 1, length: 100)), length: 100)
        #expect(try await Session().data(for: put).1.status == .forbidden)
        #expect(server.requestCount == 1)
        put.body = .stream(ChunkSource(body: PatternBody(seed: 1, length: 100)), length: 100, canReplay: true)
        #expect(try await Session().data(for: put).1.status == .ok)
    }

    @Test func clockOffsetsOfOldOriginsAreForgotten() {
        let offsets = ClockOffsets()
        let (own, server) = (HTTPDate(seconds: 0), HTTPDate(seconds: 1000))
        for origin in 0...ClockOffsets.limit {
            #expect(offsets.learn("\(origin)", server: server, own: own, used: 0))
        }
        #expect(offsets["0"] == 0 && offsets["1"] == 1000 && offsets["\(ClockOffsets.limit)"] == 1000)
        // A request signed with the old offset may be retried, although another request has learned the new one.
        #expect(offsets.learn("1", server: server, own: own, used: 0))
        #expect(!offsets.learn("1", server: server, own: own, used: 1000))
    }

    // MARK: Keys

    @Test func credentialsAreLoadedForEachAttempt() async throws {
        let server = try MockServer()
        server.on("GET", "/", inOrder: [.text("busy", status: 503), .text("fine")])
        let count = Lock(0)
        let signature = SigV4Signature(region: "r", service: "s") {
            let number = count.withLock { count in
                count += 1
                return count
            }
            return AWSCredentials(accessKeyID: "KEY\(number)", secretAccessKey: "S")
        }
        _ = try await Session { $0.retry = RetryPolicy(limit: 1, backoff: .none) }
            .data(for: request(server.url("/"), signature))
        let scopes = server.requests.compactMap { $0.field("Authorization")?.split(separator: "/").first }
        #expect(scopes == ["AWS4-HMAC-SHA256 Credential=KEY1", "AWS4-HMAC-SHA256 Credential=KEY2"])
        #expect(server.requests[0].field("X-Amz-Security-Token") == nil)
    }

    @Test func missingAndEmptyCredentialsFail() async throws {
        struct Refused: Error {}
        let failing = SigV4Signature(region: "r", service: "s") { throw Refused() }
        let error = try await networkError { try await Session().data(for: request("http://127.0.0.1:1", failing)) }
        #expect(error.kind == .interceptorFailed && error.cause is Refused)
        let empty = SigV4Signature(region: "r", service: "s") { AWSCredentials(accessKeyID: "", secretAccessKey: "S") }
        let other = try await networkError { try await Session().data(for: request("http://127.0.0.1:1", empty)) }
        #expect(other.kind == .invalidRequest)
    }

    @Test func descriptionsHideSecrets() async throws {
        let texts = [
            "\(Self.keys)", String(reflecting: Self.keys), "\(signature())", String(reflecting: signature()),
            "\(try await signature().signed("https://host/").fields)",
        ]
        for text in texts { #expect(!text.contains("SECRET") && !text.contains("TOKEN"), "\(text)") }
        #expect(texts[0] == "AWSCredentials(AKID, <redacted>)")
        #expect(texts[2] == "SigV4Signature(eu-central-1, execute-api)")
    }

    // MARK: Presigned URLs

    @Test func presignedURLsCheckLifetimeAndKeepTheQuery() async throws {
        for time in [Duration.milliseconds(900), .seconds(604_801), .seconds(-1)] {
            let error = try await networkError {
                try await signature("s3").presignedURL(for: "https://h/", expiresIn: time)
            }
            #expect(error.kind == .invalidRequest)
        }
        let url = try await signature("s3").presignedURL(for: "https://h/k?v=1", expiresIn: .seconds(604_800))
        #expect(url.absoluteString.hasPrefix("https://h/k?v=1&X-Amz-Algorithm="))
        #expect(url.absoluteString.contains("&X-Amz-Security-Token=TOKEN&X-Amz-Signature="))
        let again = try await networkError {
            try await signature("s3").presignedURL(for: Request(url), expiresIn: .seconds(1))
        }
        #expect(again.kind == .invalidRequest && !"\(again)".contains("TOKEN"))
    }
}
