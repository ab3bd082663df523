// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// Small bodies that decode to huge ones, or that take long to decode, end in bounded time and memory.
@Suite(.timeLimit(.minutes(5)))
struct DecompressionBombTests {
    private static let tenGibibytes = Result { try Encoded.zeros(members: 640) }

    private func server(_ bytes: [UInt8], _ encoding: String = "gzip") throws -> MockServer {
        try MockServer { _ in .bytes(bytes).field("Content-Encoding", encoding) }
    }

    @Test func decompressionBombExceedsBodyLimit() async throws {
        let server = try server(Self.tenGibibytes.get())
        let transfer = Session().transfer(Request(server.url("/")))
        for _ in 0..<2 {
            let error = try await networkError { try await transfer.value }
            #expect(error.kind == .bodyTooLarge && error.phase == .decoding)
            #expect(error.message.hasPrefix("The response body has more than 64 MiB: 64 MiB decoded from 6"))
            #expect(error.message.hasSuffix(" to 1."))
            #expect(error.response?[.contentEncoding] == "gzip")
        }
        // The decoder stops at most one step of 64 KiB after the limit.
        let decoded = try #require(transfer.metrics).decodedBodyBytes
        #expect(decoded > 64 << 20 && decoded <= (64 << 20) + (64 << 10))
    }

    @Test func responseLimitAppliesToTheDecodedBody() async throws {
        let wire = try Encoded.deflated([UInt8](repeating: 1, count: 100_000))
        let server = try server(wire)
        var request = Request(server.url("/"))
        request.options.responseLimit = 100_000
        #expect(try await Session().data(for: request).0.count == 100_000)
        request.options.responseLimit = 99_999
        let error = try await networkError { try await Session().data(for: request) }
        #expect(error.kind == .bodyTooLarge && error.phase == .decoding)
        request.options.responseLimit = ByteCount(Int64(wire.count) - 1)
        let early = try await networkError { try await Session().data(for: request) }
        #expect(early.kind == .bodyTooLarge && early.phase == .receiving)
    }

    @Test func streamedBodyHasNoDecodedLimit() async throws {
        let server = try server(Encoded.zeros(members: 64))
        let transfer = Session().transfer(Request(server.url("/")))
        var count = 0
        for try await chunk in transfer.bytes {
            #expect(chunk.count <= 64 << 10)
            count += chunk.count
        }
        #expect(count == 1 << 30)
        #expect(transfer.metrics?.decodedBodyBytes == 1 << 30)
    }

    @Test func releasingTheReaderEndsADecompressionBomb() async throws {
        let server = try server(Self.tenGibibytes.get())
        do {
            var reader = Session().transfer(Request(server.url("/"))).bytes.makeAsyncIterator()
            #expect(try await reader.next()?.count == 64 << 10)
        }
        await server.waitUntil(openConnections: 0)
        #expect(server.openConnections == 0)
    }

    @Test(arguments: [false, true]) func decompressionRatioIsEnforcedIfSet(_ isStreamed: Bool) async throws {
        func size(_ url: String, ratio: Int?) async throws -> Int {
            let transfer = Session { $0.limits.decompressionRatio = ratio }.transfer(Request(url))
            guard isStreamed else { return try await transfer.value.count }
            var count = 0
            for try await chunk in transfer.bytes { count += chunk.count }
            return count
        }
        let small = try server(Encoded.deflated([UInt8](repeating: 0, count: 1 << 20)))
        let large = try server(Encoded.deflated([UInt8](repeating: 0, count: 2 << 20)))
        #expect(try await size(small.url("/"), ratio: 2) == 1 << 20)
        #expect(try await size(large.url("/"), ratio: nil) == 2 << 20)
        #expect(try await size(large.url("/"), ratio: 1100) == 2 << 20)
        let error = try await networkError { try await size(large.url("/"), ratio: 500) }
        #expect(error.kind == .bodyTooLarge && error.phase == .decoding)
        #expect(error.message.contains("500 to 1") && error.hint?.contains("decompressionRatio") == true)
    }

    /// A million empty members, which take seconds to decode and yield no bytes.
    private static let nothing = Result { try Encoded.nothing(members: 1_000_000) }

    @Test(arguments: [false, true]) func totalTimeoutAppliesWhileDecoding(_ isStreamed: Bool) async throws {
        let server = try server(Self.nothing.get(), "gzip, gzip")
        let session = Session { $0.timeouts.total = .milliseconds(500) }
        let transfer = session.transfer(Request(server.url("/")))
        let clock = ContinuousClock()
        let start = clock.now
        let error = try await networkError {
            if isStreamed { for try await _ in transfer.bytes {} } else { _ = try await transfer.value }
        }
        #expect(error.kind == .timedOut && error.phase == .decoding)
        #expect(error.message.contains("timeouts.total"))
        #expect(clock.now - start >= .milliseconds(400))
        #expect(transfer.metrics?.decodedBodyBytes == 0)
    }

    @Test func finishedTransferCanBeDecodedByALateReader() async throws {
        let server = try server(Encoded.zeros(members: 1))
        let session = Session { $0.timeouts.total = .seconds(20) }
        let transfer = session.transfer(Request(server.url("/"))).start()
        await transfer.waitUntilFinished()
        var reader = transfer.bytes.makeAsyncIterator()
        var count = 0
        while let chunk = try await reader.next() { count += chunk.count }
        #expect(count == 16 << 20)
    }

    @Test(arguments: [false, true]) func cancellingTaskEndsDecoding(_ isStreamed: Bool) async throws {
        let server = try server(Self.nothing.get(), "gzip, gzip")
        let transfer = Session().transfer(Request(server.url("/"))).start()
        await transfer.waitUntilFinished()
        let began = Gate()
        let task = Task {
            began.open()
            if isStreamed { for try await _ in transfer.bytes {} } else { _ = try await transfer.value }
        }
        await began.wait()
        task.cancel()
        let error = try await networkError { try await task.value }
        #expect(error.kind == .cancelled)
    }

    @Test func waitersOfOneValueShareTheDecoding() async throws {
        let server = try server(Encoded.deflated([UInt8](repeating: 5, count: 30 << 20)))
        let transfer = Session().transfer(Request(server.url("/")))
        let leaving = Task { try await transfer.value }
        let tasks = (0..<8).map { _ in Task { try await transfer.response() } }
        await transfer.waitUntilFinished()
        leaving.cancel()
        let expected = Data(repeating: 5, count: 30 << 20).sha256
        for task in tasks {
            let response = try await task.value
            #expect(response.value.sha256 == expected)
            #expect(response.metrics.decodedBodyBytes == 30 << 20)
        }
        #expect(server.requestCount == 1)
    }
}
