// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// Streamed bodies: order of elements, back-pressure, a single reader, and ownership of a running transfer.
@Suite(.timeLimit(.minutes(5)))
struct StreamTests {
    private let body = PatternBody(seed: 5, length: 300_000)

    @Test func elementsArriveInOrder() async throws {
        let server = try MockServer { [body] _ in .pattern(body) }
        let record = try await StreamRecord(Session().transfer(Request(server.url("/"))))
        #expect(record.order.first == "head")
        #expect(record.order.count { $0 == "head" } == 1)
        #expect(record.order.last == "progress")
        #expect(record.head?.status == .ok && record.head?.contentLength == 300_000)
        #expect(record.body.sha256 == body.sha256)
        let received = record.progress.map(\.received)
        #expect(received == received.sorted())
        let last = try #require(record.progress.last)
        #expect(last.isFinished && last.received == 300_000 && last.expectedToReceive == 300_000)
        #expect(last.fraction == 1 && last.timeRemaining == .zero && last.sent == 0)
    }

    @Test func headIsDeliveredBeforeTheBodyArrives() async throws {
        let gate = Gate()
        let server = try MockServer { [body] _ in .pattern(body).fault(.stall(gate), at: .body(0)) }
        var record = StreamRecord()
        for try await element in Session().transfer(Request(server.url("/"))).stream {
            record.take(element)
            if case .head = element { gate.open() }
        }
        #expect(record.body.sha256 == body.sha256)
    }

    @Test func receivedBytesAreDeliveredImmediately() async throws {
        let gate = Gate()
        let server = try MockServer { [body] _ in .pattern(body).chunked().fault(.stall(gate), at: .body(1)) }
        var bytes = Data()
        for try await chunk in Session().transfer(Request(server.url("/"))).bytes {
            bytes.append(contentsOf: chunk)
            if bytes.count == 1 { gate.open() }
        }
        #expect(gate.isOpen)
        #expect(bytes.sha256 == body.sha256)
    }

    @Test func emptyBodyStreamsOnlyHeadAndProgress() async throws {
        let server = try MockServer { _ in .status(204) }
        let session = Session()
        let record = try await StreamRecord(session.transfer(Request(server.url("/"))))
        #expect(record.order.filter { $0 != "progress" } == ["head"])
        #expect(record.progress.last?.isFinished == true)
        #expect(record.progress.last?.received == 0 && record.progress.last?.fraction == 1)
        for try await _ in session.transfer(Request(server.url("/"))).bytes { Issue.record("the body is not empty") }
    }

    @Test func slowReaderHoldsBackTheServer() async throws {
        let large = PatternBody(seed: 6, length: 20 << 20)
        #expect(try await digestOfASlowReader(of: .pattern(large), wireBytes: large.length) == large.sha256)
    }

    @Test func chunksStayValidAfterTheTransfer() async throws {
        let server = try MockServer { [body] _ in .pattern(body).chunked(size: 999) }
        var chunks: [ByteChunk] = []
        for try await chunk in Session().transfer(Request(server.url("/"))).bytes { chunks.append(chunk) }
        #expect(chunks.reduce(into: Data()) { $0.append(contentsOf: $1) }.sha256 == body.sha256)
        #expect(chunks.allSatisfy { !$0.isEmpty })
    }

    @Test func secondReaderOfABodyThrows() async throws {
        let gate = Gate()
        let server = try MockServer { [body] _ in .pattern(body).fault(.stall(gate), at: .body(1000)) }
        let transfer = Session().transfer(Request(server.url("/")))
        var first = transfer.bytes.makeAsyncIterator()
        var received = Data(try #require(try await first.next()))
        var second = transfer.stream.makeAsyncIterator()
        for _ in 0..<2 {
            let error = try await networkError { try await second.next() }
            #expect(error.kind == .invalidRequest)
            #expect(error.phase == .receiving)
        }
        #expect(try await networkError { for try await _ in transfer.bytes {} }.kind == .invalidRequest)
        #expect(try await networkError { try await transfer.value }.kind == .invalidRequest)
        #expect(try await networkError { try await transfer.response() }.kind == .invalidRequest)
        gate.open()
        while let chunk = try await first.next() { received.append(contentsOf: chunk) }
        #expect(received.sha256 == body.sha256)
        #expect(try await first.next() == nil)
        #expect(try await networkError { try await transfer.value }.kind == .invalidRequest)
    }

    @Test func collectedBodyCannotBeStreamed() async throws {
        let server = try MockServer { [body] _ in .pattern(body) }
        let transfer = Session().transfer(Request(server.url("/")))
        #expect(try await transfer.value.sha256 == body.sha256)
        #expect(try await networkError { for try await _ in transfer.stream {} }.kind == .invalidRequest)
        #expect(try await networkError { for try await _ in transfer.bytes {} }.kind == .invalidRequest)
        #expect(try await transfer.value.sha256 == body.sha256)
    }

    @Test func valueIsReturnedRepeatedlyFromOneRequest() async throws {
        let server = try MockServer { request in .text("request \(request.ordinal)") }
        let transfer = Session().transfer(Request(server.url("/")))
        #expect(transfer.state == .idle && server.connectionCount == 0)
        async let one = transfer.value
        async let two = transfer.response()
        #expect(try await one == Data("request 1".utf8))
        #expect(try await two.value == Data("request 1".utf8))
        #expect(try await transfer.value == Data("request 1".utf8))
        #expect(transfer.state == .finished)
        #expect(server.requestCount == 1)
    }

    @Test func errorIsThrownRepeatedlyFromOneRequest() async throws {
        let server = try MockServer { [body] _ in .pattern(body).fault(.cut, at: .body(70_000)) }
        let transfer = Session().transfer(Request(server.url("/")))
        for _ in 0..<2 {
            let error = try await networkError { try await transfer.value }
            #expect(error.kind == .connectionLost && error.phase == .receiving)
        }
        #expect(server.requestCount == 1)

        var received = Data()
        var reader = Session().transfer(Request(server.url("/"))).bytes.makeAsyncIterator()
        for _ in 0..<2 {
            let error = try await networkError {
                while let chunk = try await reader.next() { received.append(contentsOf: chunk) }
            }
            #expect(error.kind == .connectionLost && error.phase == .receiving)
            #expect(error.response?.status == .ok)
        }
        #expect(received.sha256 == body[0..<70_000].sha256)
    }

    @Test func startedTransferCanBeReadAfterItFinished() async throws {
        let gate = Gate()
        let server = try MockServer { [body] _ in .pattern(body).fault(.stall(gate), at: .end) }
        let transfer = Session().transfer(Request(server.url("/"))).start()
        await gate.waitUntilReached()
        gate.open()
        await transfer.waitUntilFinished()
        let record = try await StreamRecord(transfer)
        #expect(record.order.first == "head" && record.order.last == "progress")
        #expect(record.body.sha256 == body.sha256)
        #expect(record.progress.last?.received == 300_000)
        #expect(try await networkError { try await transfer.value }.kind == .invalidRequest)
    }

    @Test func startedTransferCanBeReadWhileReceiving() async throws {
        let gate = Gate()
        let server = try MockServer { [body] _ in .pattern(body).fault(.stall(gate), at: .body(100_000)) }
        let session = Session()
        let transfer = session.transfer(Request(server.url("/"))).start()
        await gate.waitUntilReached()
        await session.waitUntil(transfer, has: 100_000, \.received)
        var received = Data()
        for try await chunk in transfer.bytes {
            received.append(contentsOf: chunk)
            if received.count == 100_000 { gate.open() }
        }
        #expect(received.sha256 == body.sha256)
    }

    @Test func largeBodiesAreStreamedCompletely() async throws {
        let large = PatternBody(seed: 9, length: 20 << 20)
        let server = try MockServer { _ in .pattern(large).chunked(size: 30_011) }
        let record = try await StreamRecord(Session().transfer(Request(server.url("/"))))
        #expect(record.body.sha256 == large.sha256)
        #expect(record.progress.last?.received == 20 << 20)
        #expect(record.progress.last?.expectedToReceive == nil && record.progress.last?.fraction == 1)
    }
}
