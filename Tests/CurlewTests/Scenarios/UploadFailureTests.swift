// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Glibc
import Testing

/// Bodies that cannot be read, or that differ from their declared length.
@Suite(.timeLimit(.minutes(5)))
struct UploadFailureTests {
    private func failure(
        of body: RequestBody, server: MockServer? = nil, _ location: SourceLocation = #_sourceLocation
    ) async throws -> NetworkError {
        let server = try server ?? MockServer { _ in .text("x") }
        let request = Request(.post, server.url("/"), body: body)
        return try await networkError(location) { try await Session().data(for: request) }
    }

    @Test(arguments: ["/nonexistent/file", "/tmp", "/dev/null", ""]) func bodyFileMustBeARegularFile(_ path: String)
        async throws
    {
        let server = try MockServer()
        let error = try await failure(of: .file(path), server: server)
        #expect(error.kind == .invalidRequest && error.phase == .preparing)
        #expect(error.cause != nil)
        #expect(error.message.contains(path))
        #expect(server.connectionCount == 0)
    }

    @Test(arguments: [10, 5000, 0]) func fileChangedBeforeUploadThrowsBodyFailed(_ length: Int) async throws {
        let file = try ScratchFile(PatternBody(seed: 1, length: 1000).bytes)
        let server = try MockServer { _ in .text("x") }
        let transfer = Session().transfer(Request(.post, server.url("/"), body: .file(file.path)))
        try file.write(PatternBody(seed: 2, length: length).bytes)
        let error = try await networkError { try await transfer.value }
        #expect(error.kind == .bodyFailed && error.phase == .sending)
        #expect(error.message.contains("changed its size"))
        #expect(error.exitCode == 66)
        await server.waitUntil(openConnections: 0)
        #expect(server.completeRequests == 0)
    }

    @Test func fileDeletedBeforeUploadThrowsBodyFailed() async throws {
        let file = try ScratchFile([1, 2, 3])
        let server = try MockServer { _ in .text("x") }
        let transfer = Session().transfer(Request(.post, server.url("/"), body: .file(file.path)))
        try FileManager.default.removeItem(atPath: file.path)
        let error = try await networkError { try await transfer.value }
        #expect(error.kind == .bodyFailed && error.phase == .sending)
    }

    @Test func fileTruncatedDuringUploadThrowsBodyFailed() async throws {
        var options = MockServer.Options()
        options.socketBufferSize = 32 << 10
        let server = try MockServer(options: options)
        let gate = Gate()
        server.on("POST", "/", .text("x"), reading: .whole.stalling(at: gate, after: 10_000))
        let file = try ScratchFile(PatternBody(seed: 1, length: 40 << 20).bytes)
        let transfer = Session().transfer(Request(.post, server.url("/"), body: .file(file.path))).start()
        await gate.waitUntilReached()
        #expect(truncate(file.path, 1 << 20) == 0)
        gate.open()
        let error = try await networkError { try await transfer.value }
        #expect(error.kind == .bodyFailed && error.phase == .sending)
        await server.waitUntil(openConnections: 0)
        #expect(server.completeRequests == 0)
    }

    @Test func fileGrownDuringUploadIsSentWithItsOriginalLength() async throws {
        var options = MockServer.Options()
        options.socketBufferSize = 32 << 10
        let server = try MockServer(options: options)
        let gate = Gate()
        server.on("POST", "/", .text("x"), reading: .whole.stalling(at: gate, after: 10_000))
        let pattern = PatternBody(seed: 1, length: 20 << 20)
        let file = try ScratchFile(pattern.bytes)
        let transfer = Session().transfer(Request(.post, server.url("/"), body: .file(file.path))).start()
        await gate.waitUntilReached()
        #expect(truncate(file.path, 40 << 20) == 0)
        gate.open()
        #expect(try await transfer.value == Data("x".utf8))
        #expect(server.digests == [pattern.sha256])
    }

    @Test(arguments: [0, 1, 20], [nil, 2 << 20] as [Int64?])
    func throwingBodySourceThrowsBodyFailed(_ chunk: Int, _ length: Int64?) async throws {
        let server = try MockServer { _ in .text("x") }
        let source = ChunkSource(body: PatternBody(seed: 1, length: 2 << 20), failsAt: chunk)
        let error = try await failure(of: .stream(source, length: length), server: server)
        #expect(error.kind == .bodyFailed && error.phase == .sending)
        #expect(error.cause as? ChunkSource.Broken == ChunkSource.Broken(reason: "chunk \(chunk)"))
        #expect(error.response == nil && error.exitCode == 66 && error.retriability == .never)
        await server.waitUntil(openConnections: 0)
        #expect(server.completeRequests == 0)
    }

    @Test(arguments: [0, 1, 100_000]) func shortBodySourceThrowsBodyFailed(_ length: Int) async throws {
        let server = try MockServer { _ in .text("x") }
        let source = ChunkSource(body: PatternBody(seed: 1, length: length))
        let error = try await failure(of: .stream(source, length: 200_000), server: server)
        #expect(error.kind == .bodyFailed && error.phase == .sending)
        #expect(error.message.contains("\(length)") && error.message.contains("200000"))
        await server.waitUntil(openConnections: 0)
        #expect(server.completeRequests == 0)
    }

    @Test(arguments: [1, 65_536, 100_000]) func longBodySourceThrowsBodyFailed(_ length: Int64) async throws {
        let server = try MockServer { _ in .text("x") }
        let source = ChunkSource(body: PatternBody(seed: 1, length: 300_000), chunk: 30_000)
        let error = try await failure(of: .stream(source, length: length), server: server)
        #expect(error.kind == .bodyFailed)
        #expect(error.message.contains("more than the \(length) bytes"))
        let arrived = server.requests.map(\.bodyLength)
        #expect(arrived.allSatisfy { $0 <= Int(length) })
        #expect(server.violations.isEmpty)
    }

    /// A source of the declared length that yields one more byte after the server has received the body.
    private struct Afterthought: AsyncSequence, Sendable {
        let arrived = Gate()
        let taken = Gate()

        struct Iterator: AsyncIteratorProtocol {
            let source: Afterthought
            var number = 0

            mutating func next() async -> [UInt8]? {
                number += 1
                if number == 1 { return [UInt8](repeating: 1, count: 10) }
                if number == 2 {
                    await source.arrived.waitUntilReached()
                    return [2]
                }
                source.taken.open()
                return nil
            }
        }

        func makeAsyncIterator() -> Iterator { Iterator(source: self) }
    }

    @Test func bytesAfterDeclaredLengthThrowBodyFailed() async throws {
        let source = Afterthought()
        let server = try MockServer { _ in .text("x").fault(.stall(source.arrived), at: .start) }
        let task = Task {
            try await Session().data(for: Request(.put, server.url("/"), body: .stream(source, length: 10)))
        }
        await source.taken.wait()
        source.arrived.open()
        let error = try await networkError { try await task.value }
        #expect(error.kind == .bodyFailed && error.message.contains("more than the 10 bytes"))
        #expect(server.requests.map(\.bodyLength) == [10])
    }

    @Test func bodySourceIsCancelledWithItsTransfer() async throws {
        let server = try MockServer { _ in .text("x") }
        let gate = Gate()
        let asked = Gate()
        let stopped = Gate()
        let source = AsyncStream<[UInt8]>(unfolding: {
            asked.open()
            await gate.wait()
            stopped.open()
            return nil
        })
        let transfer = Session().transfer(Request(.post, server.url("/"), body: .stream(source))).start()
        await asked.wait()
        transfer.cancel()
        #expect(try await networkError { try await transfer.value }.kind == .cancelled)
        await stopped.wait()
        #expect(!gate.isOpen)
    }

    @Test(arguments: [-1, 1 << 20] as [Int32]) func closedDescriptorIsAnInvalidRequest(_ descriptor: Int32) async throws
    {
        let server = try MockServer()
        let error = try await failure(of: .descriptor(descriptor), server: server)
        #expect(error.kind == .invalidRequest && error.phase == .preparing)
        #expect(server.connectionCount == 0)
    }

    @Test func writeOnlyDescriptorIsAnInvalidRequest() async throws {
        let file = try ScratchFile([1, 2, 3])
        let descriptor = open(file.path, O_WRONLY | O_CLOEXEC)
        defer { close(descriptor) }
        let error = try await failure(of: .descriptor(descriptor))
        #expect(error.kind == .invalidRequest && error.phase == .preparing)
    }

    @Test func shortDescriptorThrowsBodyFailed() async throws {
        let file = try ScratchFile([1, 2, 3])
        let descriptor = open(file.path, O_RDONLY | O_CLOEXEC)
        defer { close(descriptor) }
        let error = try await failure(of: .descriptor(descriptor, length: 4))
        #expect(error.kind == .bodyFailed && error.phase == .sending)
    }
}
