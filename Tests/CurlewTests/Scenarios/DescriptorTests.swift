// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Glibc
import Testing

/// Request bodies that are read from descriptors of the caller.
@Suite(.timeLimit(.minutes(5)))
struct DescriptorTests {
    private func pipePair() -> (read: Int32, write: Int32) {
        // A named pipe opens both ends close-on-exec from the start. Otherwise a process that another test starts at
        // this moment would keep the writing end open until it exits.
        let path = "/tmp/curlew-pipe-\(getpid())-\(UInt64.random(in: 0 ... .max))"
        #expect(mkfifo(path, 0o600) == 0)
        defer { unlink(path) }
        let reading = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        let writing = open(path, O_WRONLY | O_CLOEXEC)
        #expect(reading >= 0 && writing >= 0 && fcntl(reading, F_SETFL, 0) == 0)
        return (reading, writing)
    }

    @Test(arguments: [nil, 1_000_000] as [Int64?]) func pipeBodyIsSent(_ length: Int64?) async throws {
        let server = try MockServer { request in .text(request.bodySHA256) }
        let pattern = PatternBody(seed: 1, length: 1_000_000)
        let ends = pipePair()
        let body = RequestBody.descriptor(ends.read, length: length)
        #expect(!body.canReplay && body.length == length)
        let transfer = Session().transfer(Request(.post, server.url("/"), body: body))
        close(ends.read)
        #expect(PipeWriter.start(pattern.bytes, to: ends.write))
        #expect(try await transfer.value == Data(pattern.sha256.utf8))
        let seen = try #require(server.requests.first)
        #expect(seen.field("Content-Length") == length.map(String.init))
        #expect(seen.field("Transfer-Encoding") == (length == nil ? "chunked" : nil))
        #expect(transfer.currentProgress.sent == 1_000_000)
    }

    @Test func emptyPipeIsAnEmptyBody() async throws {
        let server = try MockServer { request in .text("\(request.bodyLength)") }
        let ends = pipePair()
        close(ends.write)
        defer { close(ends.read) }
        let request = Request(.post, server.url("/"), body: .descriptor(ends.read))
        #expect(try await Session().data(for: request).0 == Data("0".utf8))
    }

    @Test func fileIsSentFromItsCurrentOffset() async throws {
        let server = try MockServer { request in .text(request.bodySHA256) }
        let pattern = PatternBody(seed: 1, length: 500_000)
        let file = try ScratchFile(pattern.bytes)
        let descriptor = open(file.path, O_RDONLY | O_CLOEXEC)
        #expect(lseek(descriptor, 1000, SEEK_SET) == 1000)
        let transfer = Session().transfer(Request(.put, server.url("/"), body: .descriptor(descriptor)))
        close(descriptor)
        #expect(try await transfer.value == Data(pattern[1000..<500_000].sha256.utf8))
        #expect(server.requests.first?.field("Content-Length") == "499000")
    }

    @Test func fileAtItsEndIsAnEmptyBody() async throws {
        let server = try MockServer { request in .text("\(request.bodyLength)") }
        let file = try ScratchFile([1, 2, 3])
        let descriptor = open(file.path, O_RDONLY | O_CLOEXEC)
        defer { close(descriptor) }
        #expect(lseek(descriptor, 0, SEEK_END) == 3)
        let request = Request(.put, server.url("/"), body: .descriptor(descriptor))
        #expect(try await Session().data(for: request).0 == Data("0".utf8))
        #expect(server.requests.first?.field("Content-Length") == "0")
    }

    @Test func cancelledTransferStopsReadingItsPipe() async throws {
        let server = try MockServer { _ in .text("x") }
        let ends = pipePair()
        let transfer = Session().transfer(Request(.post, server.url("/"), body: .descriptor(ends.read))).start()
        close(ends.read)
        _ = await server.nextRequest()
        transfer.cancel()
        let error = try await networkError { try await transfer.value }
        #expect(error.kind == .cancelled && error.phase == .sending)
        await server.waitUntil(openConnections: 0)
        close(ends.write)
    }
}
