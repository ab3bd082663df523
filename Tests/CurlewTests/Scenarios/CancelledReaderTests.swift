// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

@testable import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// The error of a transfer whose reader was cancelled between two elements.
///
/// In that case AsyncThrowingStream ends without an error.
@Suite(.timeLimit(.minutes(5)))
struct CancelledReaderTests {
    /// The interceptor between the connection and the reader.
    enum Way: CaseIterable, Sendable {
        case direct, intercepted, mapped

        func session() -> Session {
            switch self {
            case .direct: Session()
            case .intercepted: Session(interceptors: [.intercept { request, _, next in try await next(request) }])
            case .mapped:
                Session(interceptors: [
                    .intercept { request, _, next in try await next(request).mapBytes { $0 } }
                ])
            }
        }
    }

    private static let body = PatternBody(seed: 3, length: 200_000)

    /// Returns a transfer with a body of 200,000 bytes that stalls after 70,000, or with a short complete body.
    private func transfer(_ way: Way, isWhole: Bool = false) throws -> (Transfer<Data>, MockServer) {
        let server = try MockServer { _ in
            isWhole ? .text("whole") : .pattern(Self.body).fault(.stall(Gate()), at: .body(70_000))
        }
        return (way.session().transfer(Request(server.url("/"))), server)
    }

    /// Returns the errors of all typed APIs of a transfer.
    private func errors(_ transfer: Transfer<Data>) async throws -> [NetworkError] {
        [
            try await networkError { try await transfer.value },
            try await networkError { try await transfer.response() },
            try await networkError { try await transfer.opened() },
            try await networkError { for try await _ in transfer.bytes {} },
            try await networkError { for try await _ in transfer.elements {} },
        ]
    }

    @Test(arguments: Way.allCases, [false, true])
    func everyAPIThrowsCancelledAfterSilentEndOfStream(_ way: Way, _ isWhole: Bool) async throws {
        let (transfer, server) = try transfer(way, isWhole: isWhole)
        let (reached, proceed) = (Gate(), Gate())
        let task = Task {
            for try await element in transfer.stream {
                guard case .head = element else { continue }
                reached.open()
                await proceed.wait()
            }
            return try await errors(transfer)
        }
        await reached.wait()
        task.cancel()
        #expect(try await task.value.map(\.kind) == Array(repeating: .cancelled, count: 5), "in the cancelled task")
        #expect(try await errors(transfer).map(\.kind) == Array(repeating: .cancelled, count: 5), "in another task")
        #expect(try await networkError { for try await _ in transfer.stream {} }.kind == .cancelled)
        _ = server
    }

    @Test(arguments: Way.allCases)
    func elementsThrowWhenCancelledBetweenElements(_ way: Way) async throws {
        let (transfer, server) = try transfer(way)
        let (reached, proceed) = (Gate(), Gate())
        let task = Task {
            for try await element in transfer.elements {
                guard case .head = element else { continue }
                reached.open()
                await proceed.wait()
            }
        }
        await reached.wait()
        task.cancel()
        #expect(try await networkError { try await task.value }.kind == .cancelled)
        #expect(await server.waitUntil(openConnections: 0))
    }

    @Test func elementsMatchTheStream() async throws {
        let server = try MockServer { _ in .pattern(Self.body).chunked(size: 999).trailer("X-Digest", "abc") }
        var record = StreamRecord()
        for try await element in Session().transfer(Request(server.url("/"))).elements { record.take(element) }
        #expect(record.order.first == "head" && record.order.last == "progress")
        #expect(record.body.sha256 == Self.body.sha256 && record.trailers?["X-Digest"] == "abc")
        #expect(record.progress.last?.isFinished == true)
    }

    @Test(arguments: Way.allCases)
    func everyAPIThrowsCancelledAfterCancel(_ way: Way) async throws {
        let (transfer, server) = try transfer(way)
        var reader = transfer.stream.makeAsyncIterator()
        while let element = try await reader.next() { if case .head = element { break } }
        transfer.cancel()
        #expect(try await errors(transfer).map(\.kind) == Array(repeating: .cancelled, count: 5))
        #expect(try await networkError { while try await reader.next() != nil {} }.kind == .cancelled)
        _ = server
    }

    @Test func errorOfTheReaderIsTheErrorOfTheTransfer() async throws {
        let server = try MockServer { _ in .pattern(Self.body).fault(.cut, at: .body(70_000)) }
        let transfer = Session().transfer(Request(server.url("/")))
        #expect(try await networkError { for try await _ in transfer.elements {} }.kind == .connectionLost)
        #expect(try await networkError { try await transfer.value }.kind == .connectionLost)
    }

    @Test func interceptorBodyThrowsCancelled() async throws {
        let (inside, never) = (Gate(), Gate())
        let chunks = AsyncThrowingStream<ByteChunk, any Error> {
            inside.open()
            await never.wait()
            return nil
        }
        let server = try MockServer { _ in .text("x") }
        let session = Session(interceptors: [
            .intercept { request, _, next in try await next(request).with(chunks: chunks) }
        ])
        let transfer = session.transfer(Request(server.url("/")))
        let task = Task { for try await _ in transfer.bytes {} }
        await inside.wait()
        task.cancel()
        #expect(try await networkError { try await task.value }.kind == .cancelled)
    }
}
