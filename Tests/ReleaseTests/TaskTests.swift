// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

@Suite("Tasks, errors and pipes", .timeLimit(.minutes(5)))
struct TaskTests {
    private let server: MockServer
    private let session = Session()
    private let gate = Gate()

    init() throws {
        server = try MockServer()
        server.on("GET", "/data", .text("hello"))
        server.on("GET", "/held", .text("hello").fault(.stall(gate), at: .body(3)))
        server.on("GET", "/reset", .text("hello").fault(.reset, at: .body(3)))
        server.on("PUT", "/upload") { request in .text(request.bodySHA256) }
    }

    private func request(_ path: String) -> Request { Request(.get, server.url(path)) }

    // MARK: Tasks

    @Test func twoHundredConcurrentRequestsSucceed() async throws {
        let total = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<200 { group.addTask { try await session.data(for: request("/data")).0.count } }
            return try await group.reduce(0, +)
        }
        #expect(total == 1000)
        #expect(server.requests.count == 200)
    }

    @Test func cancelledTaskGroupCancelsEveryKindOfWait() async throws {
        let kinds = await withTaskGroup(of: NetworkError.Kind?.self) { group in
            group.addTask {
                await kind { () async throws(NetworkError) in _ = try await session.data(for: request("/held")) }
            }
            group.addTask {
                await kind { () async throws(NetworkError) in _ = try await session.transfer(request("/held")).value }
            }
            group.addTask {
                await kind { () async throws(NetworkError) in
                    for try await _ in session.transfer(request("/held")).bytes {}
                }
            }
            group.addTask {
                await kind { () async throws(NetworkError) in
                    var bytes = session.transfer(request("/held")).bytes.makeAsyncIterator()
                    while try await bytes.next() != nil {}
                }
            }
            await gate.waitUntilReached(times: 4)
            group.cancelAll()
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(kinds == [.cancelled, .cancelled, .cancelled, .cancelled])
        #expect(await server.waitUntil(openConnections: 0))
    }

    /// Runs work and returns the kind of its error; nil if it succeeds.
    private func kind(_ work: () async throws(NetworkError) -> Void) async -> NetworkError.Kind? {
        do {
            try await work()
            return nil
        } catch {
            return error.kind
        }
    }

    @Test func transferCancelEndsTheWait() async throws {
        let transfer = session.transfer(request("/held")).start()
        await gate.waitUntilReached()
        transfer.cancel()
        #expect(await kind { () async throws(NetworkError) in _ = try await transfer.value } == .cancelled)
        #expect(transfer.metrics != nil)
    }

    @Test func taskCancelledBeforeTheRequestThrowsCancelled() async throws {
        let task = Task { () async -> NetworkError.Kind? in
            await gate.wait()
            return await kind { () async throws(NetworkError) in _ = try await session.data(for: request("/data")) }
        }
        task.cancel()
        #expect(await task.value == .cancelled)
    }

    // MARK: Typed errors

    @Test func errorIsTypedWithoutACast() async {
        do {
            _ = try await session.data(for: request("/reset"))
            Issue.record("the connection was reset")
        } catch {
            #expect(error.kind == .connectionLost)
            #expect(error.phase == .receiving)
        }
    }

    @Test func errorKindPatternsMatchUntypedErrors() async throws {
        func untyped() async throws -> String {
            do {
                for try await _ in session.transfer(request("/reset")).stream {}
                return "none"
            } catch NetworkError.Kind.timedOut {
                return "timed out"
            } catch NetworkError.Kind.connectionLost {
                return "lost"
            }
        }
        #expect(try await untyped() == "lost")
    }

    @Test func functionRethrowsTheTypedError() async {
        func count(_ path: String) async throws(NetworkError) -> Int {
            let response = try await session.transfer(request(path)).response()
            return response.value.count
        }
        #expect(await kind { () async throws(NetworkError) in _ = try await count("/reset") } == .connectionLost)
        #expect(await kind { () async throws(NetworkError) in _ = try await count("/data") } == nil)
        let result: Result<Int, NetworkError>
        do {
            result = .success(try await count("/data"))
        } catch {
            result = .failure(error)
        }
        #expect((try? result.get()) == 5)
    }

    @Test func invalidRequestIsRejectedBeforeConnecting() async {
        let bad = await kind { () async throws(NetworkError) in _ = try await session.data(for: "ftp://example.com/") }
        #expect(bad == .invalidRequest)
        #expect(server.connectionCount == 0)
    }

    // MARK: Pipes

    /// A body in chunks of odd sizes.
    private struct Pieces: AsyncSequence, Sendable {
        let pattern: PatternBody

        struct Iterator: AsyncIteratorProtocol {
            let pattern: PatternBody
            var offset = 0
            var size = 1

            mutating func next() async -> [UInt8]? {
                guard offset < pattern.length else { return nil }
                let end = Swift.min(offset + size, pattern.length)
                defer {
                    offset = end
                    size = (size * 7 + 13) % 40_009
                }
                return pattern.bytes(in: offset..<end)
            }
        }

        func makeAsyncIterator() -> Iterator { Iterator(pattern: pattern) }
    }

    @Test(arguments: [true, false], [1, 65_536, 3_000_001])
    func streamedBodyWithVaryingChunkSizesIsSent(hasLength: Bool, count: Int) async throws {
        let pattern = PatternBody(seed: 9, length: count)
        let body = RequestBody.stream(Pieces(pattern: pattern), length: hasLength ? Int64(count) : nil)
        let (answer, _) = try await session.data(for: Request(.put, server.url("/upload"), body: body))
        #expect(String(decoding: answer, as: UTF8.self) == pattern.sha256)
        #expect(server.requests.first?.bodyLength == count)
        #expect(server.violations == [])
    }

    @Test func concurrentStreamedBodiesAreSent() async throws {
        let patterns = (1...20).map { PatternBody(seed: UInt64($0), length: $0 * 30_011) }
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for pattern in patterns {
                group.addTask {
                    let body = RequestBody.stream(Pieces(pattern: pattern))
                    let (answer, _) = try await session.data(for: Request(.put, server.url("/upload"), body: body))
                    return String(decoding: answer, as: UTF8.self) == pattern.sha256
                }
            }
            for try await isWhole in group { #expect(isWhole) }
        }
    }

    @Test func throwingSequenceFailsTheBody() async throws {
        struct Broken: Error {}
        let (pieces, feed) = AsyncThrowingStream<[UInt8], any Error>.makeStream()
        feed.yield([1, 2, 3])
        feed.finish(throwing: Broken())
        let request = Request(.put, server.url("/upload"), body: .stream(pieces))
        let failed = await kind { () async throws(NetworkError) in _ = try await session.data(for: request) }
        #expect(failed == .bodyFailed)
    }
}
