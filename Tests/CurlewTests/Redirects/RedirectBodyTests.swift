// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import Curlew
import CurlewTesting
import FoundationEssentials
import Glibc
import Testing

/// Request bodies that are resent or dropped, and the bodies of redirect responses.
@Suite(.timeLimit(.minutes(5)))
struct RedirectBodyTests {
    static let ways: [Taking] = [.data, .value, .stream, .started, .watched]

    // MARK: Request bodies that can be resent

    @Test(arguments: [307, 308], [0, 1, 70_000, 1 << 20])
    func requestBodiesAreResentOn307And308(_ status: Int, _ length: Int) async throws {
        let server = try MockServer { _ in .text("there") }
        server.on(nil, "/from", .text("elsewhere", status: status).field("Location", "/to"))
        let pattern = PatternBody(seed: 3, length: length)
        let file = try ScratchFile(pattern.bytes)
        let stream = RequestBody.stream(ChunkSource(body: pattern), canReplay: true)
        let session = Session()
        for (body, way) in zip([.bytes(pattern.bytes), .file(file.path), stream], Self.ways) {
            let before = server.requestCount
            let request = Request(.post, server.url("/from"), fields: [.contentType: "a/b"], body: body)
            #expect(try await way(request, by: session).body == Data("there".utf8))
            let seen = server.requests[before...]
            #expect(seen.map(\.bodySHA256) == [pattern.sha256, pattern.sha256] && seen.allSatisfy(\.isBodyComplete))
            #expect(seen.map { $0.field("Content-Type") } == ["a/b", "a/b"])
        }
        #expect(server.connectionCount == 1 && server.violations.isEmpty, "\(server.violations)")
    }

    @Test func compressedBodiesAreResent() async throws {
        let server = try MockServer { _ in .text("there") }
        server.on(nil, "/from", .redirect(to: "/to", status: 308))
        let lines = String(repeating: "a line that compresses well\n", count: 4_000)
        let session = Session { $0.http.compression = .gzip() }
        for way in Self.ways {
            let before = server.requestCount
            let request = Request(.put, server.url("/from"), body: .text(lines))
            #expect(try await way(request, by: session).head?.history.count == 1)
            for seen in server.requests[before...] {
                #expect(seen.fields("Content-Encoding") == ["gzip"] && seen.isBodyComplete)
                #expect(try Encoded.decode(seen.body, "gzip").sha256 == Array(lines.utf8).sha256)
            }
        }
    }

    @Test(arguments: [301, 302, 303], ways)
    func requestBodiesAreDroppedWhenPostBecomesGet(_ status: Int, _ way: Taking) async throws {
        let server = try MockServer { _ in .text("there") }
        server.on("POST", "/from", .redirect(to: "/to", status: status))
        let source = ChunkSource(body: PatternBody(seed: 3, length: 100_000))
        let fields: HeaderFields = [.contentType: "a/b", "X-Kept": "1"]
        let request = Request(.post, server.url("/from"), fields: fields, body: .stream(source))
        #expect(try await way(request, by: Session()).body == Data("there".utf8))
        let last = try #require(server.requests.last)
        #expect(last.method == "GET" && last.bodyLength == 0 && last.field("X-Kept") == "1")
        #expect(last.field("Content-Type") == nil && last.field("Content-Length") == nil)
        #expect(last.field("Transfer-Encoding") == nil)
        #expect(await source.meter.iterations == 1)
    }

    // MARK: Request bodies that can be read once

    private enum Once: CaseIterable { case stream, descriptor }

    private func once(_ kind: Once, _ pattern: PatternBody) throws -> (RequestBody, close: () -> Void) {
        if kind == .stream { return (.stream(ChunkSource(body: pattern)), {}) }
        let file = try ScratchFile(pattern.bytes)
        let number = open(file.path, O_RDONLY | O_CLOEXEC)
        try #require(number >= 0)
        return (.descriptor(number), { _ = close(number) })
    }

    @Test(arguments: ways)
    func consumedOneShotBodyThrowsBodyNotReplayable(_ way: Taking) async throws {
        let server = try MockServer { _ in .text("there") }
        server.on("PUT", "/from", .redirect(to: "/to", status: 307))
        let pattern = PatternBody(seed: 3, length: 200_000)
        for kind in Once.allCases {
            let before = server.requestCount
            let (body, close) = try once(kind, pattern)
            let request = Request(.put, server.url("/from"), body: body)
            let error = try await networkError { _ = try await way(request, by: Session()) }
            close()
            #expect(error.kind == .bodyNotReplayable && error.phase == .receiving, "\(kind) \(error)")
            #expect(error.response?.status == .temporaryRedirect && error.response?[.location] == "/to")
            #expect(server.requests[before...].map(\.bodySHA256) == [pattern.sha256])
        }
    }

    @Test(arguments: ways)
    func unreadOneShotBodyIsSentToRedirectTarget(_ way: Taking) async throws {
        let server = try MockServer { _ in .text("there") }
        server.on("PUT", "/from", .redirect(to: "/to", status: 307), reading: .none)
        let pattern = PatternBody(seed: 3, length: 200_000)
        for kind in Once.allCases {
            let (body, close) = try once(kind, pattern)
            let options = Request.Options(expectContinue: .always)
            let request = Request(.put, server.url("/from"), body: body, options: options)
            #expect(try await way(request, by: Session()).body == Data("there".utf8), "\(kind)")
            close()
            #expect(server.requests.last?.bodySHA256 == pattern.sha256 && server.requests.last?.isBodyComplete == true)
        }
        #expect(server.asked == ["PUT /from", "PUT /to", "PUT /from", "PUT /to"])
    }

    /// After the caller closes the descriptor, its number may belong to another file at the time of the redirect.
    @Test func descriptorBodyIsReadAfterCallerClosesDescriptor() async throws {
        let server = try MockServer { _ in .text("there") }
        server.on("PUT", "/from", .redirect(to: "/to", status: 307), reading: .none)
        let pattern = PatternBody(seed: 3, length: 200_000)
        let (body, close) = try once(.descriptor, pattern)
        let options = Request.Options(expectContinue: .always)
        let transfer = Session().transfer(Request(.put, server.url("/from"), body: body, options: options))
        close()
        #expect(try await transfer.value == Data("there".utf8))
        #expect(server.requests.last?.bodySHA256 == pattern.sha256)
    }

    @Test(arguments: ways)
    func uploadIsRedirectedBeforeItsBodyWasSent(_ way: Taking) async throws {
        var options = MockServer.Options()
        options.socketBufferSize = 32 << 10
        let server = try MockServer(options: options) { request in .text(request.bodySHA256) }
        let never = Gate()
        server.on(
            "PUT", "/from", .text("elsewhere", status: 307).field("Location", "/to").fault(.stall(never), at: .end),
            reading: .prefix(100_000))
        let session = Session { $0.http.expectContinue = .never }
        let pattern = PatternBody(seed: 3, length: 6 << 20)
        let request = Request(.put, server.url("/from"), body: .bytes(pattern.bytes))
        #expect(try await way(request, by: session).body == Data(pattern.sha256.utf8))
        // A partly read body cannot be resent either.
        let body = RequestBody.stream(ChunkSource(body: pattern))
        let once = Request(.put, server.url("/from"), body: body)
        let error = try await networkError { _ = try await way(once, by: session) }
        #expect(error.kind == .bodyNotReplayable)
    }

    // MARK: Bodies of redirect responses

    @Test(arguments: ways)
    func shortRedirectBodiesAreDrainedAndConnectionReused(_ way: Taking) async throws {
        let server = try MockServer { _ in .text("there") }
        let pattern = PatternBody(seed: 3, length: 60_000)
        server.on(nil, "/length", .pattern(pattern, status: 302).field("Location", "/to"))
        server.on(nil, "/chunks", .pattern(pattern, status: 302).field("Location", "/to").chunked())
        // The head arrives before the body.
        let late = MockResponse.pattern(pattern, status: 302).field("Location", "/to")
        server.on(nil, "/late", late.fault(.pause(.milliseconds(50)), at: .body(0)))
        let zipped = try Encoded.gzip("moved")
        server.on(
            nil, "/gzip", .bytes(zipped, status: 302).field("Location", "/to").field("Content-Encoding", "gzip"))
        server.on(
            nil, "/broken",
            .bytes([1, 2, 3], status: 302).field("Location", "/to").field("Content-Encoding", "gzip"))
        let session = Session()
        for path in ["/length", "/chunks", "/late", "/gzip", "/broken"] {
            let taken = try await way(Request(server.url(path)), by: session)
            #expect(taken.body == Data("there".utf8))
            #expect(taken.head?.history.first?.metrics.responseBodyBytes ?? 1 > 0)
        }
        #expect(server.connectionCount == 1)
    }

    @Test(arguments: ways, [false, true])
    func longRedirectBodiesCloseTheConnection(_ way: Taking, _ isChunked: Bool) async throws {
        let server = try MockServer { _ in .text("there") }
        let long = MockResponse.pattern(PatternBody(seed: 3, length: 1 << 30), status: 302).field("Location", "/to")
        server.on("GET", "/from", isChunked ? long.chunked(size: 64 << 10) : long)
        let session = Session()
        let taken = try await way(Request(server.url("/from")), by: session)
        #expect(taken.body == Data("there".utf8) && taken.head?.history.map(\.head.status) == [.found])
        // Bytes that arrive before the redirect is decided are buffered, and the buffer is limited.
        #expect(server.bytesSent < 256 << 20 && server.connectionCount == 2)
        try await session.idle()
    }

    @Test(arguments: ways)
    func slowRedirectBodiesAreAborted(_ way: Taking) async throws {
        let never = Gate()
        let server = try MockServer { _ in .text("there") }
        let script = MockResponse.pattern(PatternBody(seed: 3, length: 60_000), status: 302).field("Location", "/to")
        server.on("GET", "/stalls", script.fault(.stall(never), at: .body(100)))
        server.on("GET", "/silent", script.fault(.stall(never), at: .body(0)))
        server.on("GET", "/drips", script.chunked().dripping(bytes: 1, every: .milliseconds(20)))
        let session = Session()
        for path in ["/stalls", "/silent", "/drips"] {
            let taken = try await way(Request(server.url(path)), by: session)
            #expect(taken.body == Data("there".utf8) && taken.head?.history.count == 1)
        }
        try await session.idle()
        #expect(server.requestCount == 6)
    }

    @Test(arguments: ways, [SocketFault.reset, .close])
    func interruptedRedirectBodiesAreIgnored(_ way: Taking, _ fault: SocketFault) async throws {
        let server = try MockServer { _ in .text("there") }
        let script = MockResponse.pattern(PatternBody(seed: 3, length: 60_000), status: 302).field("Location", "/to")
        server.on("GET", "/from", script.fault(fault, at: .body(100)))
        let session = Session()
        let taken = try await way(Request(server.url("/from")), by: session)
        #expect(taken.body == Data("there".utf8) && taken.head?.history.count == 1)
        // They are not ignored when the response is the result.
        var request = Request(server.url("/from"))
        request.options.redirects = .custom { _ in .stop }
        let error = try await networkError { [request] in _ = try await way(request, by: session) }
        #expect(error.kind == .connectionLost && error.phase == .receiving, "\(error)")
    }

    @Test(arguments: ways)
    func stoppedRedirectReturnsItsWholeBody(_ way: Taking) async throws {
        let pattern = PatternBody(seed: 3, length: 5 << 20)
        let zipped = try Encoded.deflated(pattern.bytes)
        let server = try MockServer { _ in
            .bytes(zipped, status: 302).field("Location", "/to").field("Content-Encoding", "gzip")
        }
        let gate = Gate()
        let session = Session {
            $0.redirects = .custom { _ in
                // The body arrives and is buffered while the decision is pending.
                await gate.wait()
                return .stop
            }
        }
        async let taken = way(Request(server.url("/")), by: session)
        _ = await server.nextRequest()
        gate.open()
        #expect(try await taken.body.sha256 == pattern.sha256)
        #expect(server.requestCount == 1)
    }
}
