// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

@testable import Curlew
import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Testing

/// Bodies that interceptors discard, collect, replace or map, and the effect on the transfer and its connection.
@Suite(.timeLimit(.minutes(5)))
struct InterceptorBodyTests {
    @Test(arguments: [10, 1 << 20])
    func discardedBodyCannotBeReturned(_ length: Int) async throws {
        let server = try MockServer { _ in .pattern(PatternBody(seed: 1, length: length)) }
        let session = Session(interceptors: [
            .intercept { request, _, next in
                let response = try await next(request)
                await response.discard()
                return response
            }
        ])
        let request = Request(server.url("/"))
        for error in [
            try await networkError { try await session.data(for: request) },
            try await networkError { try await session.transfer(request).value },
            try await networkError { for try await _ in session.transfer(request).bytes {} },
        ] {
            #expect(error.kind == .invalidRequest && error.phase == .receiving, "\(error)")
        }
    }

    @Test(arguments: [false, true])
    func collectedBodyCannotBeReturned(_ isAlone: Bool) async throws {
        let server = try MockServer { _ in .text("hello") }
        let session = Session(interceptors: [
            .intercept { request, _, next in
                let response = try await next(request)
                _ = try await response.collect()
                return response
            }
        ])
        let request = Request(server.url("/"))
        let error = try await networkError {
            try await isAlone ? session.data(for: request).0 : session.transfer(request).value
        }
        #expect(error.kind == .invalidRequest)
    }

    @Test func collectRespectsResponseBodyLimit() async throws {
        let server = try MockServer { _ in .pattern(PatternBody(seed: 1, length: 1 << 20)) }
        for isWrapped in [false, true] {
            let session = Session(interceptors: [
                .intercept { request, _, next in
                    let response = try await next(request)
                    return response.with(body: try await response.collect())
                },
                .intercept { request, _, next in
                    let response = try await next(request)
                    return isWrapped ? response.mapBytes { $0 } : response
                },
            ]) { $0.limits.responseBody = .kibibytes(64) }
            let transfer = session.transfer(Request(server.url("/")))
            let error = try await networkError { for try await _ in transfer.bytes {} }
            #expect(error.kind == .bodyTooLarge, "\(error)")
        }
    }

    @Test func mappedBodyEndFinishesTransferAndEvents() async throws {
        let gate = Gate()
        let pattern = PatternBody(seed: 1, length: 200_000)
        let server = try MockServer { _ in .pattern(pattern).fault(.stall(gate), at: .body(100_000)) }
        let session = Session(interceptors: [
            .intercept { request, _, next in try await next(request).mapBytes { $0 } }
        ])
        let transfer = session.transfer(Request(server.url("/")))
        let events = transfer.events
        var reader = transfer.bytes.makeAsyncIterator()
        var count = try #require(try await reader.next()).count
        #expect(transfer.state == .running && !transfer.currentProgress.isFinished)
        gate.open()
        while let chunk = try await reader.next() { count += chunk.count }
        #expect(count == pattern.length)
        var kinds: [String] = []
        for await event in events { kinds.append(String(event.kind.description.prefix(8))) }
        #expect(kinds.suffix(3) == ["received", "metrics ", "finished"], "\(kinds)")
        #expect(transfer.state == .finished && transfer.metrics?.responseBodyBytes == 200_000)
    }

    @Test func mappedBodyReportsLostConnection() async throws {
        let server = try MockServer { _ in
            .pattern(PatternBody(seed: 1, length: 200_000)).fault(.close, at: .body(100_000))
        }
        let session = Session(interceptors: [
            .intercept { request, _, next in try await next(request).mapBytes { $0 } }
        ])
        let transfer = session.transfer(Request(server.url("/")))
        let events = transfer.events
        #expect(try await networkError { for try await _ in transfer.bytes {} }.kind == .connectionLost)
        var last: NetworkError?
        for await event in events { if case .finished(let error) = event.kind { last = error } }
        #expect(last?.kind == .connectionLost)
    }

    @Test func mappedBodyClosureDoesNotRetainSession() async throws {
        let server = try MockServer { _ in .text("hello") }
        weak var core: SessionCore?
        do {
            let session = Session(interceptors: [
                .intercept { request, context, next in
                    try await next(request).mapBytes { chunk in
                        _ = context.elapsed
                        return chunk
                    }
                }
            ])
            core = session.core
            for try await _ in session.transfer(Request(server.url("/"))).bytes {}
            var reader = session.transfer(Request(server.url("/"))).stream.makeAsyncIterator()
            _ = try await reader.next()
        }
        while core != nil, !Task.isCancelled { await Task.yield() }
    }

    @Test func stoppedRedirectDoesNotKeepSessionBusy() async throws {
        let server = try MockServer { _ in .redirect(to: "http://127.0.0.1:1/") }
        let session = Session(interceptors: [
            .intercept { request, _, next in try await next(request).mapBytes { $0 } }
        ]) { $0.redirects = .sameOrigin() }
        let transfer = session.transfer(Request(server.url("/")))
        #expect(try await transfer.response().status == .found)
        try await session.idle()
        let plain = Session { $0.redirects = .sameOrigin() }
        let direct = plain.transfer(Request(server.url("/")))
        #expect(try await direct.response().status == .found)
        try await plain.idle()
        #expect(transfer.state == .finished && direct.state == .finished)
    }

    @Test func lateStreamReaderReceivesUploadProgress() async throws {
        let gate = Gate()
        let server = try MockServer { _ in .text("done").fault(.stall(gate), at: .start) }
        let body = PatternBody(seed: 4, length: 2 << 20)
        let session = Session(interceptors: [.intercept { request, _, next in try await next(request) }])
        let transfer = session.transfer(Request(.post, server.url("/"), body: .bytes(body.bytes))).start()
        await gate.waitUntilReached()
        var hasSeenProgress = false
        for try await element in transfer.stream {
            switch element {
            case .progress:
                hasSeenProgress = true
                gate.open()
            case .head: #expect(hasSeenProgress)
            default: break
            }
        }
        #expect(server.digests == [body.sha256])
    }

    // MARK: Credentials and redirects

    @Test func recreatedRequestDoesNotRestoreCredentialsAfterRedirect() async throws {
        let other = try MockServer { _ in .text("there") }
        let target = other.url("/")
        let server = try MockServer { _ in .redirect(to: target) }
        let session = Session(interceptors: [
            .intercept(scope: .attempt) { request, _, next in
                try await next(Request(request.method, request.url, fields: request.fields))
            }
        ]) { $0.fields[.authorization] = "Bearer secret" }
        #expect(try await session.data(for: Request(server.url("/"))).0 == Data("there".utf8))
        #expect(server.requests.map { $0.field("Authorization") } == ["Bearer secret"])
        #expect(other.requests.map { $0.field("Authorization") } == [nil])
    }

    @Test func sensitiveFieldsOfSessionApplyToRequestPolicies() async throws {
        let other = try MockServer { _ in .text("there") }
        let target = other.url("/")
        let server = try MockServer { _ in .redirect(to: target) }
        let session = Session { $0.redirects = .follow().withholding("X-Tenant") }
        var request = Request(server.url("/"), fields: ["X-Tenant": "7", "X-Other": "8"])
        request.options.redirects = .follow(max: 2)
        #expect(try await session.data(for: request).0 == Data("there".utf8))
        #expect(other.requests.map { $0.field("X-Tenant") } == [nil])
        #expect(other.requests.map { $0.field("X-Other") } == ["8"])
    }
}
