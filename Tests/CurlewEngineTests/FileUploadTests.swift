// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewShims
import CurlewTesting
import Glibc
import Testing

@testable import CurlewEngine

@Suite("File and descriptor uploads", .timeLimit(.minutes(5)))
struct FileUploadTests {
    /// A temporary file with known bytes, removed in `deinit`.
    private final class Scratch {
        let path: String
        let bytes: [UInt8]

        init(_ count: Int) throws {
            var random = SeededGenerator(UInt64(count))
            bytes = random.bytes(count)
            var template = Array("/tmp/curlew-upload-XXXXXX".utf8CString)
            let number = mkstemp(&template)
            guard number >= 0 else { throw Unreadable(path: "/tmp") }
            path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
            #expect(bytes.withUnsafeBytes { write(number, $0.baseAddress, count) } == count)
            close(number)
        }

        deinit { unlink(path) }
    }

    /// The SHA-256 digest by which large bodies are compared.
    private func digest(_ bytes: some Collection<UInt8>) -> String { SHA256Stream.hex(of: bytes) }

    /// Creates a pipe of the kernel and returns [reading end, writing end].
    private func kernelPipe() -> [CInt] {
        // A named pipe opens both ends close-on-exec from the start. Otherwise a process that another test starts at
        // this moment would keep the writing end open for as long as it runs.
        let path = "/tmp/curlew-pipe-\(getpid())-\(UInt64.random(in: 0 ... .max))"
        #expect(mkfifo(path, 0o600) == 0)
        defer { unlink(path) }
        let reading = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        let writing = open(path, O_WRONLY | O_CLOEXEC)
        #expect(reading >= 0 && writing >= 0 && fcntl(reading, F_SETFL, 0) == 0)
        return [reading, writing]
    }

    private func send(_ bytes: [UInt8], to descriptor: CInt) {
        #expect(bytes.withUnsafeBytes { write(descriptor, $0.baseAddress, bytes.count) } == bytes.count)
    }

    /// Pulls to the end as the loop would, and yields to the producer's thread whenever the pipe is empty.
    private func readAll(_ pipe: UploadPipe, _ capacity: Int = 65_536) async -> (bytes: [UInt8], result: String) {
        let reader = PipeReader(pipe: pipe)
        var all: [UInt8] = []
        while true {
            let (bytes, result) = reader.pullAll(capacity)
            all += bytes
            guard case .wait = result, !Task.isCancelled else { return (all, "\(result)") }
            await Task.yield()
        }
    }

    /// Waits for the first byte and returns it.
    private func firstByte(_ pipe: UploadPipe) async -> [UInt8] {
        var bytes: [UInt8] = []
        _ = await eventually {
            bytes = PipeReader(pipe: pipe).pull(1).bytes
            return !bytes.isEmpty
        }
        return bytes
    }

    /// Returns whether `poll` reports an event, such as a closed other end, for a descriptor.
    private func hasEvent(_ event: CInt, _ descriptor: CInt) -> Bool {
        var waiting = pollfd(fd: descriptor, events: 0, revents: 0)
        poll(&waiting, 1, 0)
        return waiting.revents & Int16(event) != 0
    }

    // MARK: Files

    @Test(arguments: [0, 1, 65_535, 65_536, 65_537, 524_288, 2_000_003])
    func fileIsSentCompletely(count: Int) async throws {
        let file = try Scratch(count)
        let pipe = try UploadPipe.file(file.path)
        defer { pipe.close() }
        #expect(pipe.length == Int64(count))
        #expect(pipe.canReplay)
        let (bytes, result) = await readAll(pipe)
        #expect(digest(bytes) == digest(file.bytes))
        #expect(result == "end")
    }

    @Test func rewindReadsTheFileFromItsStart() async throws {
        let file = try Scratch(300_000)
        let pipe = try UploadPipe.file(file.path)
        defer { pipe.close() }
        #expect(await firstByte(pipe) == Array(file.bytes.prefix(1)))
        #expect(pipe.rewind())
        let (bytes, result) = await readAll(pipe, 10_000)
        #expect(digest(bytes) == digest(file.bytes))
        #expect(result == "end")
        #expect(pipe.rewind(), "rewind works at the end as well")
        #expect(digest(await readAll(pipe).bytes) == digest(file.bytes))
    }

    @Test func foldersDevicesAndMissingFilesAreRejected() throws {
        #expect(throws: SourceFailure.self) { try UploadPipe.file("/tmp") }
        let failure = #expect(throws: SourceFailure.self) { try UploadPipe.file("/no/such/file") }
        #expect(failure?.errno == ENOENT)
        #expect(failure?.description == "cannot read /no/such/file: No such file or directory")
        let device = #expect(throws: SourceFailure.self) { try UploadPipe.file("/dev/null") }
        #expect(device?.description == "/dev/null is not a regular file")
    }

    @Test func fileThatGrewBeforeSendingFails() async throws {
        let file = try Scratch(100)
        let pipe = try UploadPipe.file(file.path)
        defer { pipe.close() }
        #expect(truncate(file.path, 200) == 0)
        let (bytes, result) = await readAll(pipe)
        #expect(bytes == [])
        #expect(result == "failed: \(file.path) changed its size before it was sent")
    }

    @Test func fileRemovedBeforeSendingFails() async throws {
        let file = try Scratch(100)
        let pipe = try UploadPipe.file(file.path)
        defer { pipe.close() }
        unlink(file.path)
        #expect(await readAll(pipe).result == "failed: cannot open \(file.path): No such file or directory")
    }

    @Test func fileTruncatedWhileSendingFails() async throws {
        let file = try Scratch(3_000_000)
        let pipe = try UploadPipe.file(file.path)
        defer { pipe.close() }
        let first = await firstByte(pipe)
        // The producer has read no more than the capacity of the pipe by now.
        #expect(truncate(file.path, 0) == 0)
        let (bytes, result) = await readAll(pipe)
        #expect(digest(first + bytes) == digest(file.bytes.prefix(bytes.count + 1)))
        #expect(bytes.count < 1_000_000)
        #expect(result == "failed: \(file.path) changed its size while it was sent")
    }

    @Test func pipeIsFreedAfterTheFileWasSent() async throws {
        let file = try Scratch(100_000)
        weak var gone: UploadPipe?
        do {
            let pipe = try UploadPipe.file(file.path)
            defer { pipe.close() }
            gone = pipe
            #expect(await readAll(pipe).result == "end")
        }
        #expect(await eventually { gone == nil })
    }

    @Test func pipeIsFreedAfterAnAbandonedFile() async throws {
        let file = try Scratch(3_000_000)
        weak var gone: UploadPipe?
        do {
            let pipe = try UploadPipe.file(file.path)
            defer { pipe.close() }
            gone = pipe
            #expect(await firstByte(pipe).count == 1)
        }
        #expect(await eventually { gone == nil })
    }

    // MARK: Descriptors

    @Test func kernelPipeIsSentUntilItsEnd() async throws {
        let ends = kernelPipe()
        let pipe = try UploadPipe.descriptor(OwnedDescriptor(duplicating: ends[0]), length: nil)
        defer { pipe.close() }
        close(ends[0])
        #expect(pipe.length == nil)
        #expect(!pipe.canReplay)
        send([1, 2, 3], to: ends[1])
        #expect(await firstByte(pipe) == [1])
        send([4, 5], to: ends[1])
        close(ends[1])
        let (rest, result) = await readAll(pipe)
        #expect(rest == [2, 3, 4, 5])
        #expect(result == "end")
    }

    @Test func fileDescriptorIsSentFromItsOffset() async throws {
        let file = try Scratch(700_000)
        let descriptor = open(file.path, O_RDONLY)
        lseek(descriptor, 1000, SEEK_SET)
        let pipe = try UploadPipe.descriptor(OwnedDescriptor(duplicating: descriptor), length: nil)
        defer { pipe.close() }
        close(descriptor)
        #expect(pipe.length == 699_000)
        let (bytes, result) = await readAll(pipe, 5000)
        #expect(digest(bytes) == digest(file.bytes.dropFirst(1000)))
        #expect(result == "end")
    }

    @Test func descriptorShorterThanDeclaredLengthFails() async throws {
        let ends = kernelPipe()
        let pipe = try UploadPipe.descriptor(OwnedDescriptor(duplicating: ends[0]), length: 5)
        defer { pipe.close() }
        close(ends[0])
        send([1, 2, 3], to: ends[1])
        close(ends[1])
        let (bytes, result) = await readAll(pipe)
        #expect(bytes == [1, 2, 3])
        #expect(result == "too short: 3 of 5")
    }

    @Test func unreadableDescriptorsAreRejected() throws {
        let ends = kernelPipe()
        let failure = #expect(throws: SourceFailure.self) { try OwnedDescriptor(duplicating: ends[1]) }
        #expect(failure?.description == "descriptor \(ends[1]) cannot be read")
        close(ends[0])
        close(ends[1])
        let missing = #expect(throws: SourceFailure.self) { try OwnedDescriptor(duplicating: -1) }
        #expect(missing?.errno == EBADF)
    }

    @Test func readErrorFailsTheBody() async throws {
        let folder = open("/tmp", O_RDONLY | O_DIRECTORY)
        let pipe = try UploadPipe.descriptor(OwnedDescriptor(duplicating: folder), length: nil)
        defer { pipe.close() }
        close(folder)
        #expect(await readAll(pipe).result == "failed: cannot read the descriptor: Is a directory")
    }

    @Test func silentDescriptorIsClosedWithThePipe() async throws {
        let ends = kernelPipe()
        do {
            let pipe = try UploadPipe.descriptor(OwnedDescriptor(duplicating: ends[0]), length: nil)
            defer { pipe.close() }
            close(ends[0])
            #expect("\(PipeReader(pipe: pipe).pull(10).result)" == "wait")
        }
        #expect(await eventually { hasEvent(POLLERR, ends[1]) })
        close(ends[1])
    }

    @Test func descriptorIsClosedAfterItsEnd() async throws {
        var ends: [CInt] = [-1, -1]
        #expect(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &ends) == 0)
        do {
            let pipe = try UploadPipe.descriptor(OwnedDescriptor(duplicating: ends[0]), length: nil)
            defer { pipe.close() }
            close(ends[0])
            send([7], to: ends[1])
            shutdown(ends[1], CInt(SHUT_WR))
            #expect(await readAll(pipe).bytes == [7])
        }
        #expect(await eventually { hasEvent(POLLHUP, ends[1]) }, "the copy of the descriptor is closed")
        close(ends[1])
    }

    @Test func fileLargerThanThePipeIsReadInSteps() async throws {
        let file = try Scratch(700_000)
        let descriptor = open(file.path, O_RDONLY)
        let pipe = try UploadPipe.descriptor(OwnedDescriptor(duplicating: descriptor), length: nil)
        defer { pipe.close() }
        close(descriptor)
        #expect(await readAll(pipe, 100).bytes.count == 700_000)
    }
}

extension UploadPipe {
    fileprivate static func descriptor(_ number: Int32, length: Int64?) throws(SourceFailure) -> UploadPipe {
        .descriptor(try OwnedDescriptor(duplicating: number), length: length)
    }
}
