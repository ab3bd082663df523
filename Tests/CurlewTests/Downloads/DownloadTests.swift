// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// Responses saved as files: names, overwrite policies, refusals, checksums and readers.
@Suite(.timeLimit(.minutes(5)))
struct DownloadTests {
    private let session = Session { $0.retry = .never }
    private let folder: Folder

    init() throws { folder = try Folder() }

    @Test func downloadedFileIsCompleteAndAlone() async throws {
        let server = try ResourceServer(RangeResource(.usual))
        let file = try await session.download(Request(server.url), to: .file(folder("a.bin")))
        #expect(file.path == folder("a.bin") && file.bytes == 1_234_567 && file.resumedFrom == 0)
        #expect(file.response.status == .ok && file.checksum == nil)
        #expect(folder.bytes("a.bin") == PatternBody.usual.bytes)
        #expect(folder.names == ["a.bin"])
        #expect(server.server.requests[0].field("Accept-Encoding") == "identity")
    }

    @Test func emptyBodyMakesEmptyFile() async throws {
        let server = try MockServer { _ in .status(200) }
        let file = try await session.download(Request(server.url("/")), to: .file(folder("empty")))
        #expect(file.bytes == 0 && folder.bytes("empty") == [])
    }

    @Test func bodyOfUnknownLengthIsSaved() async throws {
        let server = try MockServer { _ in .pattern(.usual).chunked() }
        let file = try await session.download(Request(server.url("/")), to: .file(folder("a")))
        #expect(file.bytes == 1_234_567 && folder.bytes("a") == PatternBody.usual.bytes)
    }

    @Test(arguments: [
        ("/a/report.pdf?x=1", nil, "report.pdf"), ("/", nil, "download"), ("/x", "attachment; filename=b.txt", "b.txt"),
        ("/x", "attachment; filename=\"../../etc/passwd\"", "passwd"), ("/%2e%2e%2f", nil, "download"),
        ("/r%C3%A9sum%C3%A9.txt", nil, "résumé.txt"),
    ])
    func directoryDestinationUsesTheSuggestedName(path: String, disposition: String?, name: String) async throws {
        let server = try MockServer { _ in
            disposition.map { MockResponse.text("x").field("Content-Disposition", $0) } ?? .text("x")
        }
        let file = try await session.download(Request(server.url(path)), to: .directory(folder.path))
        #expect(file.path == folder(name) && folder.names == [name])
    }

    @Test func choosingDestinationReceivesTheHead() async throws {
        let server = try ResourceServer(RangeResource(.usual))
        let path = folder.path
        let file = try await session.download(
            Request(server.url), to: .choosing { "\(path)/\($0.contentLength ?? 0).bin" })
        #expect(file.path == folder("1234567.bin") && folder.bytes("1234567.bin") == PatternBody.usual.bytes)
        struct Refused: Error {}
        let error = await failure { () async throws(NetworkError) in
            try await session.download(Request(server.url), to: .choosing { _ in throw Refused() })
        }
        #expect(error?.kind == .destinationFailed && error?.cause is Refused)
    }

    // MARK: Existing files

    @Test func existingFileFollowsTheOverwritePolicy() async throws {
        let server = try ResourceServer(RangeResource(.usual))
        folder.write("a.bin", [1, 2, 3])
        let error = await failure { () async throws(NetworkError) in
            try await session.download(Request(server.url), to: .file(folder("a.bin")))
        }
        #expect(error?.kind == .destinationFailed && error?.phase == .saving)
        #expect((error?.cause as? DownloadDestination.Failure)?.reason == .exists)
        #expect(folder.bytes("a.bin") == [1, 2, 3] && folder.names == ["a.bin"])
        #expect(server.server.requestCount == 0)
        _ = try await session.download(Request(server.url), to: .file(folder("a.bin")), overwrite: .replace)
        #expect(folder.bytes("a.bin") == PatternBody.usual.bytes && folder.names == ["a.bin"])
        folder.write("a.bin", [1, 2, 3])
        let second = try await session.download(
            Request(server.url), to: .file(folder("a.bin")), overwrite: .uniquify)
        #expect(second.path == folder("a (2).bin") && folder.names == ["a (2).bin", "a.bin"])
    }

    @Test func concurrentDownloadsIntoOneDirectoryGetUniqueNames() async throws {
        let server = try ResourceServer(RangeResource(.usual))
        let (session, url, path) = (session, server.url, folder.path)
        let paths = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    try await session.download(Request(url), to: .directory(path), overwrite: .uniquify).path
                }
            }
            return try await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        #expect(paths.count == 8 && folder.names.count == 8)
        for name in folder.names { #expect(folder.bytes(name) == PatternBody.usual.bytes) }
    }

    @Test func partFileInUseIsBusy() async throws {
        let gate = Gate()
        let server = try MockServer { _ in .pattern(.usual).fault(.stall(gate), at: .body(1000)) }
        let first = session.downloadTransfer(Request(server.url("/")), to: .file(folder("a"))).start()
        for await progress in first.progress where progress.received > 0 { break }
        let error = await failure { () async throws(NetworkError) in
            try await session.download(Request(server.url("/")), to: .file(folder("a")))
        }
        #expect((error?.cause as? DownloadDestination.Failure)?.reason == .busy)
        gate.open()
        #expect(try await first.value.bytes == 1_234_567)
        #expect(folder.names == ["a"])
    }

    // MARK: Refusals

    @Test func unacceptableStatusMakesNoFile() async throws {
        let server = try MockServer { _ in .text("no such thing", status: 404) }
        let error = await failure { () async throws(NetworkError) in
            try await session.download(Request(server.url("/")), to: .file(folder("a")))
        }
        #expect(
            error?.kind == .unacceptableStatus
                && error.map { String(decoding: $0.body, as: UTF8.self) } == "no such thing")
        #expect(folder.names == [])
    }

    @Test func unacceptableContentTypeMakesNoFile() async throws {
        let server = try MockServer { _ in .text("<html>login") }
        var request = Request(server.url("/"))
        request.options.accepting = ["application/zip"]
        let asked = request
        let error = await failure { () async throws(NetworkError) in
            try await session.download(asked, to: .file(folder("a")))
        }
        #expect(error?.kind == .unacceptableContentType && folder.names == [])
    }

    @Test func headRequestIsRefused() async throws {
        let server = try MockServer { _ in .text("x") }
        let error = await failure { () async throws(NetworkError) in
            try await session.download(Request(.head, server.url("/")), to: .file(folder("a")))
        }
        #expect(error?.kind == .invalidRequest && server.requestCount == 0)
    }

    @Test func responseLimitExceededMakesNoFile() async throws {
        for isKnown in [true, false] {
            let server = try MockServer { _ in isKnown ? .pattern(.usual) : .pattern(.usual).chunked() }
            var request = Request(server.url("/"))
            request.options.responseLimit = .kibibytes(10)
            let asked = request
            let error = await failure { () async throws(NetworkError) in
                try await session.download(asked, to: .file(folder("a")))
            }
            #expect(error?.kind == .bodyTooLarge && folder.names == [])
        }
    }

    @Test func unusableDestinationIsReportedWithItsReason() async throws {
        let server = try ResourceServer(RangeResource(.usual))
        folder.write("plain", [])
        let places: [(DownloadDestination, DownloadDestination.Failure.Reason)] = [
            (.file(folder("missing/a")), .missingDirectory), (.file(folder("plain/a")), .notADirectory),
            (.file("/proc/a"), .missingDirectory), (.directory(folder("missing")), .missingDirectory),
        ]
        for (place, reason) in places {
            let error = await failure { () async throws(NetworkError) in
                try await session.download(Request(server.url), to: place)
            }
            #expect((error?.cause as? DownloadDestination.Failure)?.reason == reason, "\(error as Any)")
            #expect(error?.hint != nil && error?.exitCode == 73)
        }
        #expect(server.server.requestCount == 0 && folder.names == ["plain"])
        var options = DownloadOptions()
        options.createsDirectories = true
        _ = try await session.download(Request(server.url), to: .file(folder("x/y/a")), options: options)
        #expect(folder.bytes("x/y/a") == PatternBody.usual.bytes)
    }

    // MARK: Digests

    @Test func expectedChecksumIsVerified() async throws {
        let server = try ResourceServer(RangeResource(.usual))
        let right: Checksum = .sha256(PatternBody.usual.sha256)
        let file = try await session.download(Request(server.url), to: .file(folder("a")), expecting: right)
        #expect(file.checksum == right)
        let wrong: Checksum = .sha256(String(repeating: "0", count: 64))
        let error = await failure { () async throws(NetworkError) in
            try await session.download(Request(server.url), to: .file(folder("b")), expecting: wrong)
        }
        #expect(error?.kind == .checksumMismatch && error?.resumeToken == nil && folder.names == ["a"])
        let asked = server.server.requestCount
        let none = await failure { () async throws(NetworkError) in
            try await session.download(Request(server.url), to: .file(folder("b")), expecting: .sha256("abc"))
        }
        #expect(none?.kind == .invalidRequest && server.server.requestCount == asked)
    }

    @Test(arguments: ["Repr-Digest", "Content-Digest"], [true, false])
    func digestFieldOfTheServerIsVerified(field: String, isRight: Bool) async throws {
        let bytes = PatternBody(seed: 1, length: 100_000).bytes
        let digest = MessageDigest.digest(.sha256, of: isRight ? bytes : [1]) ?? []
        let value = "sha-512=:AAAA:, sha-256=:\(Data(digest).base64EncodedString()):"
        let server = try MockServer { _ in .bytes(bytes).field(field, value) }
        if isRight {
            _ = try await session.download(Request(server.url("/")), to: .file(folder("a")))
            #expect(folder.bytes("a") == bytes)
        } else {
            let error = await failure { () async throws(NetworkError) in
                try await session.download(Request(server.url("/")), to: .file(folder("a")))
            }
            #expect(error?.kind == .checksumMismatch && folder.names == [])
        }
    }

    // MARK: Readers during the download

    @Test func severalReadersGetTheBytesDuringTheDownload() async throws {
        let (gate, begun) = (Gate(), Lock(0))
        let server = try MockServer { request in
            RangeResource(.usual).response(to: request).fault(.stall(gate), at: .body(600_000))
        }
        let transfer = session.downloadTransfer(Request(server.url("/")), to: .file(folder("a")))
        let bytes = try await withThrowingTaskGroup(of: [UInt8].self) { group in
            for _ in 0..<3 {
                group.addTask {
                    var bytes: [UInt8] = []
                    for try await chunk in transfer.bytes {
                        // The server sends the rest once all readers have begun.
                        let isFirst = bytes.isEmpty
                        bytes += chunk
                        let count = begun.withLock { count in
                            if isFirst { count += 1 }
                            return count
                        }
                        if count == 3 { gate.open() }
                    }
                    return bytes
                }
            }
            return try await group.reduce(into: [[UInt8]]()) { $0.append($1) }
        }
        #expect(bytes == Array(repeating: PatternBody.usual.bytes, count: 3))
        #expect(try await transfer.value.bytes == 1_234_567)
        var heads = 0
        for try await element in transfer.stream { if case .head = element { heads += 1 } }
        #expect(heads == 1 && server.requestCount == 1)
    }

    @Test func progressGrowsToTheWholeFile() async throws {
        let server = try ResourceServer(RangeResource(.usual))
        let transfer = session.downloadTransfer(Request(server.url), to: .file(folder("a")))
        var last: TransferProgress?
        for await progress in transfer.progress {
            #expect(progress.received >= last?.received ?? 0)
            last = progress
        }
        #expect(last?.isFinished == true && last?.received == 1_234_567 && last?.expectedToReceive == 1_234_567)
        #expect(transfer.currentProgress.isFinished && transfer.state == .finished)
    }
}
