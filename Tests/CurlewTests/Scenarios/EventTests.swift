// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// The exact events of a transfer, which are the same for every API that runs it.
@Suite(.timeLimit(.minutes(5)))
struct EventTests {
    static let fresh = ["queued", "resolved", "connected", "sent", "head 200", "received", "metrics", "finished"]
    static let reused = ["queued", "resolved", "reused", "sent", "head 200", "received", "metrics", "finished"]

    private func heard(_ requests: [Request], _ style: CallStyle, _ interceptors: [any Interceptor] = []) async throws
        -> [[String]]
    {
        try await wordsHeard(of: requests, style) { Session(interceptors: interceptors, observers: [$0]) }
    }

    @Test(arguments: CallStyle.allCases)
    func newAndReusedConnectionsReportTheirEvents(_ style: CallStyle) async throws {
        let server = try MockServer { _ in .text("hello") }
        let request = Request(server.url("/"))
        #expect(try await heard([request, request], style) == [Self.fresh, Self.reused])
        let passing: [any Interceptor] = [.adapt { _ in }]
        #expect(try await heard([request, request], style, passing) == [Self.fresh, Self.reused])
    }

    @Test(arguments: CallStyle.allCases)
    func smallAndLargeBodiesReportTheSameEvents(_ style: CallStyle) async throws {
        let server = try MockServer { _ in .text("hello") }
        let small = Request(.post, server.url("/"), body: .text("four"))
        var large = Request(.post, server.url("/"), body: .bytes(PatternBody(seed: 1, length: 3 << 20).data))
        large.options.expectContinue = .never
        #expect(try await heard([small, large], style) == [Self.fresh, Self.reused])
    }

    @Test(arguments: CallStyle.allCases)
    func redirectsReportTheirEvents(_ style: CallStyle) async throws {
        let server = try MockServer()
        server.on("GET", "/a", .redirect(to: "/b"))
        server.on("GET", "/b", .redirect(to: "/c", status: 307))
        server.on("GET", "/c", .text("there"))
        let hops = [
            "queued", "resolved", "connected", "sent", "head 302", "received", "metrics", "redirected 302",
            "queued", "resolved", "reused", "sent", "head 307", "received", "metrics", "redirected 307",
        ]
        let request = Request(server.url("/a"))
        #expect(try await heard([request], style) == [hops + Self.reused])
        #expect(try await heard([request], style, [.adapt { _ in }]) == [hops + Self.reused])
    }

    /// The body of the redirect is aborted, which does not end the transfer.
    @Test(arguments: CallStyle.allCases)
    func redirectWithLongBodyReportsItsEvents(_ style: CallStyle) async throws {
        let server = try MockServer()
        let long = MockResponse.pattern(PatternBody(seed: 1, length: 1 << 30), status: 302).field("Location", "/b")
        server.on("GET", "/a", long)
        server.on("GET", "/b", .text("there"))
        let words = try await wordsHeard(of: [Request(server.url("/a"))], style) { observer in
            Session(observers: [observer]) { $0.limits.responseBody = .mebibytes(1) }
        }
        let hop = ["queued", "resolved", "connected", "sent", "head 302", "metrics", "redirected 302"]
        #expect(words == [hop + Self.fresh])
    }

    @Test(arguments: CallStyle.allCases)
    func interceptorRetryReportsItsEvents(_ style: CallStyle) async throws {
        let server = try MockServer()
        server.on("GET", "/", inOrder: [.text("busy", status: 503), .text("hello")])
        let again = ClosureInterceptor { request, _, next in
            let response = try await next(request)
            guard response.head.status == 503 else { return response }
            await response.discard()
            return try await next(request)
        }
        let first = ["queued", "resolved", "connected", "sent", "head 503", "received", "metrics", "retried"]
        #expect(try await heard([Request(server.url("/"))], style, [again]) == [first + Self.reused])
    }

    @Test(arguments: CallStyle.allCases)
    func interceptorResponseReportsFinished(_ style: CallStyle) async throws {
        let request: Request = "http://127.0.0.1:1/"
        let whole = ClosureInterceptor { request, _, _ in
            IncomingResponse(ResponseHead(status: .ok), body: Data("made".utf8), to: request)
        }
        #expect(try await heard([request], style, [whole]) == [["finished"]])
        let pieces = ClosureInterceptor { request, _, _ in
            let pieces = AsyncStream<ByteChunk> { stream in
                stream.yield(ByteChunk("made".utf8))
                stream.finish()
            }
            return IncomingResponse(ResponseHead(status: .ok), chunks: pieces, to: request)
        }
        #expect(try await heard([request], style, [pieces]) == [["finished"]])
    }

    @Test(arguments: CallStyle.allCases)
    func staleConnectionReportsRestarted(_ style: CallStyle) async throws {
        let server = try MockServer()
        server.on("GET", "/") { $0.ordinal == 1 ? .text("fresh") : .raw("").fault(.close, at: .start) }
        let request = Request(server.url("/"))
        let again = [
            "queued", "resolved", "reused", "sent", "restarted", "resolved", "connected", "sent", "head 200",
            "received", "metrics", "finished",
        ]
        #expect(try await heard([request, request], style) == [Self.fresh, again])
    }

    @Test(arguments: CallStyle.allCases)
    func earlyHintsReportTheirEvent(_ style: CallStyle) async throws {
        let server = try MockServer { _ in .text("hello").informational(103, [("Link", "</a>")]) }
        let words = try await heard([Request(server.url("/"))], style)
        #expect(
            words == [
                [
                    "queued", "resolved", "connected", "sent", "informational 103", "head 200", "received", "metrics",
                    "finished",
                ]
            ])
    }

    @Test(arguments: CallStyle.allCases)
    func tlsConnectionReportsSecured(_ style: CallStyle) async throws {
        let authority = try TestAuthority()
        let server = try MockServer(tls: authority.issue()) { _ in .text("hello") }
        let roots = try CustomRoots(pem: authority.certificatePEM)
        let request = Request(server.url("/"))
        let words = try await wordsHeard(of: [request, request], style) { Session(trust: roots, observers: [$0]) }
        var secured = Self.fresh
        secured.insert("secured", at: 3)
        #expect(words == [secured, Self.reused])
    }

    @Test(arguments: CallStyle.allCases)
    func http2ConnectionReportsItsEvents(_ style: CallStyle) async throws {
        let authority = try TestAuthority()
        let server = try HTTP2Server(tls: authority.issue()) { _ in .respond(text: "hello") }
        let roots = try CustomRoots(pem: authority.certificatePEM)
        let request = Request(server.url("/"))
        let words = try await wordsHeard(of: [request, request], style) { Session(trust: roots, observers: [$0]) }
        var secured = Self.fresh
        secured.insert("secured", at: 3)
        #expect(words == [secured, Self.reused])
    }
}
