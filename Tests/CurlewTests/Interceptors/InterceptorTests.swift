// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import Curlew
import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Testing

/// Interceptors that observe, rewrite, respond to and retry requests.
@Suite(.timeLimit(.minutes(5)))
struct InterceptorTests {
    /// Logs the request and the response with its name.
    private struct Named: Interceptor {
        let name: String
        let log: Lock<[String]>
        var scope: Interception.Scope = .transfer

        func intercept(_ request: Request, context: Interception.Context, next: Interception.Next) async throws
            -> IncomingResponse
        {
            log.withLock { $0.append("\(name)>") }
            var request = request
            request.fields.append("X-Path", name)
            let response = try await next(request)
            log.withLock { $0.append("<\(name)") }
            return response
        }
    }

    private struct Odd: Error {}

    /// A body that can be read only once.
    private static var once: RequestBody {
        .stream(
            AsyncStream<[UInt8]> { stream in
                stream.yield(Array("once".utf8))
                stream.finish()
            })
    }

    @Test func interceptorsRunInOnionOrder() async throws {
        let server = try MockServer { $0.path == "/from" ? .redirect(to: "/to") : .text("there") }
        let log = Lock<[String]>([])
        let session = Session(interceptors: [
            Named(name: "s1", log: log), Named(name: "s2", log: log, scope: .attempt), Named(name: "s3", log: log),
        ])
        var request = Request(server.url("/from"))
        request.interceptors = [
            Named(name: "r1", log: log), Named(name: "r2", log: log), Named(name: "r3", log: log, scope: .attempt),
        ]
        let expected = [
            "r1>", "r2>", "s1>", "s3>", "r3>", "s2>", "<s2", "<r3", "r3>", "s2>", "<s2", "<r3", "<s3", "<s1", "<r2",
            "<r1",
        ]
        #expect(try await session.data(for: request).0 == Data("there".utf8))
        #expect(log.withLock { $0 } == expected)
        #expect(server.requests.map { $0.field("X-Path") } == ["r1", "r1"])
        #expect(server.requests[1].fields("X-Path") == ["r1", "r2", "s1", "s3", "r3", "s2"])

        log.withLock { $0 = [] }
        #expect(try await session.transfer(request).value == Data("there".utf8))
        #expect(log.withLock { $0 } == expected)
    }

    @Test func interceptorsRewriteRequestBeforeValidation() async throws {
        let server = try MockServer { .text($0.path) }
        let origin = server.origin
        let session = Session(interceptors: [.adapt { $0.url = origin + $0.url }])
        #expect(try await session.data(for: Request("/relative")).0 == Data("/relative".utf8))
        #expect(try await session.transfer(Request("/relative")).value == Data("/relative".utf8))
    }

    @Test func interceptorRespondsWithoutTheNetwork() async throws {
        let session = Session(interceptors: [
            .intercept { request, _, _ in
                IncomingResponse(
                    ResponseHead(status: 203, fields: ["X-From": "here"]), body: Data("made".utf8), to: request)
            }
        ])
        let (data, head) = try await session.data(for: "http://127.0.0.1:1/")
        #expect(data == Data("made".utf8) && head.status == 203 && head["X-From"] == "here")

        let transfer = session.transfer("http://127.0.0.1:1/")
        let response = try await transfer.response()
        #expect(response.value == data && response.head == head && response.metrics == TransferMetrics())
        #expect(try await transfer.value == data && transfer.state == .finished && transfer.currentProgress.isFinished)

        let record = try await StreamRecord(session.transfer("http://127.0.0.1:1/"))
        #expect(record.order == ["head", "bytes", "progress"] && record.body == data)
        #expect(record.progress.last?.isFinished == true && record.progress.last?.received == 4)
        var last: TransferProgress?
        for await progress in session.transfer("http://127.0.0.1:1/").progress { last = progress }
        #expect(last?.isFinished == true && last?.received == 4)
        #expect(await session.transfers.isEmpty)
    }

    @Test func interceptorStreamsAResponseWithoutTheNetwork() async throws {
        let pieces = AsyncStream<ByteChunk> { stream in
            for piece in ["one ", "two ", "three"] { stream.yield(ByteChunk(piece.utf8)) }
            stream.finish()
        }
        let session = Session(interceptors: [
            .intercept { request, _, _ in IncomingResponse(ResponseHead(status: .ok), chunks: pieces, to: request) }
        ])
        #expect(try await session.transfer("http://127.0.0.1:1/").value == Data("one two three".utf8))
    }

    @Test(arguments: [true, false])
    func unreadBodyStreamsThroughInterceptor(_ isAlone: Bool) async throws {
        let pattern = PatternBody(seed: 9, length: 3 << 20)
        let server = try MockServer { _ in .pattern(pattern) }
        let session = Session(interceptors: [
            .intercept { request, _, next in
                var response = try await next(request)
                response.head = response.head.with(fields: ["X-New": "1"])
                return response
            }
        ])
        if isAlone {
            let (data, head) = try await session.data(for: Request(server.url("/")))
            #expect(data.sha256 == pattern.sha256 && head["X-New"] == "1")
            return
        }
        let response = try await session.transfer(Request(server.url("/"))).response()
        #expect(response.value.sha256 == pattern.sha256 && response.head["X-New"] == "1")
        #expect(response.metrics.responseBodyBytes == 3 << 20)
        let record = try await StreamRecord(session.transfer(Request(server.url("/"))))
        #expect(record.body.sha256 == pattern.sha256 && record.head?["X-New"] == "1")
        #expect(record.order.first == "head" && record.order.last == "progress", "\(record.order.prefix(5))")
    }

    @Test func mappedBodyKeepsBackpressure() async throws {
        var options = MockServer.Options()
        options.socketBufferSize = 64 << 10
        let pattern = PatternBody(seed: 9, length: 20 << 20)
        let server = try MockServer(options: options) { _ in .pattern(pattern) }
        let session = Session(interceptors: [
            .intercept { request, _, next in try await next(request).mapBytes { $0 } }
        ]) {
            $0.buffers.highWater = .kibibytes(256)
            $0.buffers.lowWater = .kibibytes(64)
        }
        var reader = session.transfer(Request(server.url("/"))).bytes.makeAsyncIterator()
        var digest = SHA256Stream()
        digest.update(Data(try #require(try await reader.next())))
        // A second transfer on the same loop gives the server time to send.
        _ = try await session.data(for: Request(.head, server.url("/")))
        #expect(server.bytesSent < 8 << 20)
        while let chunk = try await reader.next() { digest.update(Data(chunk)) }
        #expect(digest.hex == pattern.sha256)
    }

    @Test func interceptorReplacesCollectedBody() async throws {
        let server = try MockServer { _ in .text("hello") }
        let session = Session(interceptors: [
            .intercept { request, _, next in
                let response = try await next(request)
                let data = try await response.collect()
                return response.with(body: data + Data(" again".utf8))
            }
        ])
        #expect(try await session.data(for: Request(server.url("/"))).0 == Data("hello again".utf8))
        let response = try await session.transfer(Request(server.url("/"))).response()
        #expect(response.value == Data("hello again".utf8) && response.metrics.responseBodyBytes == 5)
        #expect(try await StreamRecord(session.transfer(Request(server.url("/")))).body == Data("hello again".utf8))
    }

    @Test func bodyReadByInterceptorCannotBeReturned() async throws {
        let server = try MockServer { _ in .text("hello") }
        let session = Session(interceptors: [
            .intercept { request, _, next in
                let response = try await next(request)
                for try await _ in response.bytes {}
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

    @Test func mapBytesDropsChunksAndAppendsAtTheEnd() async throws {
        let server = try MockServer { _ in .pattern(PatternBody(seed: 1, length: 300_000)) }
        let count = Lock(0)
        let session = Session(interceptors: [
            .intercept { request, _, next in
                try await next(request).mapBytes { chunk in
                    guard let chunk else { return ByteChunk("end".utf8) }
                    count.withLock { $0 += chunk.count }
                    return nil
                }
            }
        ])
        #expect(try await session.data(for: Request(server.url("/"))).0 == Data("end".utf8))
        #expect(try await session.transfer(Request(server.url("/"))).value == Data("end".utf8))
        #expect(count.withLock { $0 } == 600_000)
    }

    // MARK: Retrying

    @Test func interceptorRetriesRequest() async throws {
        let server = try MockServer()
        server.on("POST", "/", inOrder: [.text("busy", status: 503), .text("busy", status: 503), .text("done")])
        let attempts = Lock<[Int]>([])
        let session = Session(interceptors: [
            .intercept { request, context, next in
                while true {
                    let response = try await next(request)
                    attempts.withLock { $0.append(context.attempts) }
                    if response.head.status != 503 { return response }
                    await response.discard()
                }
            }
        ])
        let request = Request(.post, server.url("/"), body: .text("please"))
        #expect(try await session.transfer(request).value == Data("done".utf8))
        #expect(attempts.withLock { $0 } == [1, 2, 3])
        #expect(server.requests.map(\.bodyText) == ["please", "please", "please"])
        #expect(server.connectionCount == 1)
    }

    @Test func consumedOneShotBodyIsNotRetried() async throws {
        let server = try MockServer { _ in .text("busy", status: 503) }
        let session = Session(interceptors: [
            .intercept { request, _, next in
                await (try next(request)).discard()
                #expect(request.body.isConsumed)
                return try await next(request)
            }
        ])
        let once = Request(
            .post, server.url("/"), body: Self.once)
        let error = try await networkError { try await session.transfer(once).value }
        #expect(error.kind == .bodyNotReplayable && error.phase == .preparing)
        #expect(server.requests.map(\.bodyText) == ["once"])
        // A second transfer of the same request fails as well.
        #expect(try await networkError { try await Session().data(for: once) }.kind == .bodyNotReplayable)
        #expect(server.requestCount == 1)
    }

    @Test func unreadOneShotBodyIsRetried() async throws {
        let server = try MockServer { .text($0.bodyText) }
        let url = server.url("/")
        let session = Session(interceptors: [
            .intercept { request, _, next in
                var wrong = request
                wrong.url = "http://127.0.0.1:1/"
                do { return try await next(wrong) } catch NetworkError.Kind.cannotConnect {
                    #expect(!request.body.isConsumed)
                    return try await next(request)
                }
            }
        ])
        let request = Request(.post, url, body: Self.once)
        #expect(try await session.data(for: request).0 == Data("once".utf8))
    }

    @Test func interceptorRunsTwoAttemptsConcurrently() async throws {
        let gate = Gate()
        let server = try MockServer { request in
            request.path == "/slow" ? .text("slow").fault(.stall(gate), at: .start) : .text("quick")
        }
        let slow = server.url("/slow")
        let session = Session(interceptors: [
            .intercept { request, _, next in
                try await withThrowingTaskGroup(of: IncomingResponse.self) { group in
                    group.addTask { try await next(Request(slow)) }
                    await gate.waitUntilReached()
                    group.addTask { try await next(request) }
                    let first = try await group.next()
                    group.cancelAll()
                    return try #require(first)
                }
            }
        ])
        let transfer = session.transfer(Request(server.url("/quick")))
        #expect(try await transfer.value == Data("quick".utf8))
        #expect(await session.transfers.isEmpty)
    }

    /// A challenge handler may send a credential, pass the response on, cancel or throw.
    @Test func interceptorHandlesAuthenticationChallenge() async throws {
        let server = try MockServer { request in
            request.field("Authorization") == "Basic b2s6b2s=" ? .text("welcome") : .text("who are you?", status: 401)
        }
        struct Refused: Error {}
        func ask(
            _ answer:
                @escaping @Sendable (Request, IncomingResponse, Interception.Next) async throws -> IncomingResponse
        )
            async throws -> String
        {
            let session = Session(interceptors: [
                .intercept { request, _, next in
                    let response = try await next(request)
                    return response.head.status == .unauthorized
                        ? try await answer(request, response, next) : response
                }
            ])
            return String(decoding: try await session.data(for: Request(server.url("/"))).0, as: UTF8.self)
        }
        let withCredential = try await ask { request, response, next in
            await response.discard()
            var request = request
            request.fields[.authorization] = "Basic b2s6b2s="
            return try await next(request)
        }
        #expect(withCredential == "welcome")
        #expect(try await ask { _, response, _ in response } == "who are you?")
        #expect(try await networkError { try await ask { _, _, _ in throw CancellationError() } }.kind == .cancelled)
        let refused = try await networkError { try await ask { _, _, _ in throw Refused() } }
        #expect(refused.kind == .interceptorFailed && refused.cause is Refused)
    }

    @Test func trailersPassThroughMappedBodies() async throws {
        let server = try MockServer { _ in
            .text("hello").chunked(size: 2).trailer("Server-Timing", "db;dur=5")
        }
        let session = Session(interceptors: [.intercept { request, _, next in try await next(request).mapBytes { $0 } }]
        )
        let response = try await session.transfer(Request(server.url("/"))).response()
        #expect(response.value == Data("hello".utf8) && response.trailers["Server-Timing"] == "db;dur=5")
        let record = try await StreamRecord(session.transfer(Request(server.url("/"))))
        #expect(record.trailers?["Server-Timing"] == "db;dur=5" && record.order.suffix(2) == ["trailers", "progress"])
    }

    // MARK: Failing

    @Test func interceptorErrorsBecomeInterceptorFailed() async throws {
        let server = try MockServer { _ in .text("x") }
        let early = Session(interceptors: [.adapt { _ in throw Odd() }])
        let late = Session(interceptors: [
            .intercept { request, _, next in
                _ = try await next(request)
                throw Odd()
            }
        ])
        let request = Request(server.url("/"))
        for (session, phase) in [(early, NetworkError.Phase.preparing), (late, .validating)] {
            for error in [
                try await networkError { try await session.data(for: request) },
                try await networkError { try await session.transfer(request).value },
                try await networkError { for try await _ in session.transfer(request).stream {} },
            ] {
                #expect(error.kind == .interceptorFailed && error.phase == phase && error.cause is Odd, "\(error)")
                #expect(error.retriability == .never)
            }
        }
    }

    @Test func networkErrorsPassThroughInterceptorsAndCanBeCaught() async throws {
        let seen = Lock<[NetworkError.Kind]>([])
        let session = Session(interceptors: [
            .intercept { request, _, next in
                do throws(NetworkError) { return try await next(request) } catch {
                    seen.withLock { $0.append(error.kind) }
                    return IncomingResponse(ResponseHead(status: 504), to: request)
                }
            },
            .intercept { request, _, next in
                do throws(NetworkError) { return try await next(request) } catch {
                    seen.withLock { $0.append(error.kind) }
                    throw error
                }
            },
        ])
        #expect(try await session.data(for: "http://127.0.0.1:1/").1.status == 504)
        #expect(seen.withLock { $0 } == [.cannotConnect, .cannotConnect])
    }

    @Test func droppedResponseCancelsItsAttempt() async throws {
        let server = try MockServer { _ in
            .pattern(PatternBody(seed: 2, length: 1 << 20)).fault(.stall(Gate()), at: .body(70_000))
        }
        let session = Session(interceptors: [
            .intercept { request, _, next in
                _ = try await next(request)
                await server.waitUntil(openConnections: 0)
                return IncomingResponse(ResponseHead(status: .noContent), to: request)
            }
        ])
        #expect(try await session.data(for: Request(server.url("/"))).1.status == .noContent)
        #expect(try await session.transfer(Request(server.url("/"))).response().status == .noContent)
    }
}
