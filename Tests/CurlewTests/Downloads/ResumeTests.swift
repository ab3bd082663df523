// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// Resumed downloads: after a broken connection, in another process, after a pause, and with servers that misbehave.
@Suite(.timeLimit(.minutes(5)))
struct ResumeTests {
    private let session = Session { $0.retry = RetryPolicy(limit: 3, backoff: .none) }
    private let folder: Folder
    private let digest: Checksum = .sha256(PatternBody.usual.sha256)

    init() throws { folder = try Folder() }

    /// Runs a download without retries whose connection breaks after so many bytes.
    private func broken(_ server: ResourceServer, after count: Int) async throws -> ResumeToken? {
        server.state.withLock { $0.cuts = [count] }
        var request = Request(server.url)
        request.options.retry = RetryPolicy.never
        do throws(NetworkError) {
            _ = try await session.download(request, to: .file(folder("a")), expecting: digest)
            Issue.record("the download did not fail")
            return nil
        } catch {
            #expect(error.kind == .connectionLost)
            return error.resumeToken
        }
    }

    private func isWhole(_ file: DownloadedFile) -> Bool {
        file.bytes == 1_234_567 && folder.bytes("a") == PatternBody.usual.bytes && folder.names == ["a"]
    }

    // MARK: Within one download

    @Test func brokenConnectionIsResumedWithIfRange() async throws {
        let server = try ResourceServer(RangeResource(.usual), cuts: [400_000, 500_000])
        let file = try await session.download(Request(server.url), to: .file(folder("a")), expecting: digest)
        #expect(isWhole(file) && file.checksum == digest && file.resumedFrom == 0)
        #expect(server.ranges.count == 3 && server.ranges[0] == nil)
        #expect(server.ranges.dropFirst().allSatisfy { $0?.hasPrefix("bytes=") == true })
        #expect(server.server.requests[1].field("If-Range") == "\"1\"")
        #expect(server.server.requests[1].field("Accept-Encoding") == "identity")
    }

    @Test func consecutiveFailuresEndWithTheRetryLimit() async throws {
        let server = try ResourceServer(RangeResource(.usual), cuts: Array(repeating: 100, count: 10))
        do throws(NetworkError) {
            _ = try await session.download(Request(server.url), to: .file(folder("a")))
            Issue.record("the download did not fail")
        } catch {
            #expect(error.kind == .connectionLost && error.attempts == 4 && error.resumeToken?.offset == 400)
        }
        #expect(server.ranges.count == 4)
    }

    @Test func downloadWithoutStrongValidatorRestarts() async throws {
        let server = try ResourceServer(RangeResource(.usual, tag: "W/\"1\""), cuts: [400_000])
        let file = try await session.download(Request(server.url), to: .file(folder("a")), expecting: digest)
        #expect(isWhole(file) && server.ranges == [nil, nil])
    }

    @Test func lastModifiedIsUsedAsValidator() async throws {
        let resource = RangeResource(.usual, tag: nil, lastModified: "Wed, 01 Jan 2025 00:00:00 GMT")
        let server = try ResourceServer(resource, cuts: [400_000])
        let file = try await session.download(Request(server.url), to: .file(folder("a")), expecting: digest)
        #expect(isWhole(file) && server.server.requests[1].field("If-Range") == "Wed, 01 Jan 2025 00:00:00 GMT")
    }

    @Test(arguments: RangeResource.Flaw.allCases)
    func misbehavingServerDoesNotCorruptTheFile(flaw: RangeResource.Flaw) async throws {
        let server = try ResourceServer(RangeResource(.usual, flaws: [flaw]), cuts: [400_000])
        let file = try await session.download(Request(server.url), to: .file(folder("a")))
        #expect(isWhole(file))
    }

    @Test func changedResourceRestarts() async throws {
        let server = try ResourceServer(RangeResource(PatternBody(seed: 3, length: 900_000)))
        let token = try #require(await broken(server, after: 300_000))
        #expect(token.offset == 300_000 && token.total == 900_000)
        server.state.withLock { $0.resource = RangeResource(.usual, tag: "\"2\"") }
        let file = try await session.resume(from: token).value
        #expect(isWhole(file) && file.resumedFrom == 0)
    }

    @Test func changedResourceFailsWithFailsWhenChanged() async throws {
        let server = try ResourceServer(RangeResource(PatternBody(seed: 3, length: 900_000)))
        let token = try #require(await broken(server, after: 300_000))
        server.state.withLock { $0.resource = RangeResource(.usual, tag: "\"2\"") }
        var options = DownloadOptions()
        options.failsWhenChanged = true
        #expect(
            await failure { () async throws(NetworkError) in
                try await session.resume(from: token, options: options).value
            }?.kind == .contentChanged)
        #expect(folder.names == ["a.part", "a.part.json"])
    }

    // MARK: With another download

    @Test func repeatedDownloadResumesThePartFile() async throws {
        let server = try ResourceServer(RangeResource(.usual))
        _ = try await broken(server, after: 300_000)
        #expect(folder.names == ["a.part", "a.part.json"])
        let other = Session()
        let file = try await other.download(Request(server.url), to: .file(folder("a")), expecting: digest)
        #expect(isWhole(file) && file.resumedFrom == 300_000)
        #expect(server.ranges == [nil, "bytes=300000-"])
    }

    @Test func resumeTokenWorksAfterJSONRoundTrip() async throws {
        let server = try ResourceServer(RangeResource(.usual))
        let token = try #require(await broken(server, after: 300_000))
        let stored = try JSONEncoder().encode(token)
        let read = try JSONDecoder().decode(ResumeToken.self, from: stored)
        #expect(read == token && token.validator == .tag("\"1\"") && token.checksum == digest)
        let transfer = session.resume(from: read)
        var first: TransferProgress?
        for await progress in transfer.progress where first == nil && progress.received > 0 { first = progress }
        #expect(first.map { $0.received >= 300_000 } == true && first?.expectedToReceive == 1_234_567)
        #expect(isWhole(try await transfer.value))
    }

    @Test func changedPartFileIsNotResumed() async throws {
        let server = try ResourceServer(RangeResource(.usual))
        let token = try #require(await broken(server, after: 300_000))
        folder.write("a.part", Array(repeating: 0, count: 300_000))
        let file = try await session.resume(from: token).value
        #expect(isWhole(file) && file.resumedFrom == 0)
    }

    @Test func partFileOfAnotherURLIsNotResumed() async throws {
        let server = try ResourceServer(RangeResource(PatternBody(seed: 3, length: 900_000)))
        _ = try await broken(server, after: 300_000)
        let other = try ResourceServer(RangeResource(.usual))
        let file = try await session.download(Request(other.url), to: .file(folder("a")))
        #expect(isWhole(file) && other.ranges == [nil])
    }

    @Test func onlySyncedBytesAreUsedAfterReboot() async throws {
        let server = try ResourceServer(RangeResource(.usual))
        var token = try #require(await broken(server, after: 300_000))
        token.bootID = "another"
        token.synced = 120_000
        folder.write("a.part.json", [UInt8](try JSONEncoder().encode(token)))
        let file = try await session.resume(from: token).value
        #expect(isWhole(file) && server.ranges == [nil, "bytes=120000-"])
    }

    @Test func partFileWithoutNoteIsKept() async throws {
        let server = try ResourceServer(RangeResource(.usual))
        _ = try await broken(server, after: 300_000)
        try FileManager.default.removeItem(atPath: folder("a.part.json"))
        let error = await failure { () async throws(NetworkError) in
            try await session.download(Request(server.url), to: .file(folder("a")))
        }
        #expect((error?.cause as? DownloadDestination.Failure)?.reason == .foreignPart)
        #expect(server.ranges == [nil] && folder.names == ["a.part"])
    }

    @Test func completePartFileIsNotFetchedAgain() async throws {
        let server = try ResourceServer(RangeResource(.usual))
        let token = try #require(await broken(server, after: 300_000))
        folder.write("a.part", PatternBody.usual.bytes)
        var whole = token
        whole.digest = nil
        let file = try await session.resume(from: whole).value
        #expect(isWhole(file) && file.resumedFrom == 1_234_567 && file.response.status == .rangeNotSatisfiable)
    }

    @Test func directoryDestinationFindsItsPartFile() async throws {
        let server = try ResourceServer(RangeResource(.usual), cuts: [200_000])
        var request = Request(server.url)
        request.options.retry = RetryPolicy.never
        let asked = request
        #expect(
            await failure { () async throws(NetworkError) in
                try await session.download(asked, to: .directory(folder.path))
            }?.kind == .connectionLost)
        #expect(folder.names.count == 2 && folder.names[0].hasPrefix("big.bin."))
        let file = try await session.download(Request(server.url), to: .directory(folder.path))
        #expect(file.path == folder("big.bin") && file.resumedFrom == 200_000 && folder.names == ["big.bin"])
    }

    @Test func choosingDestinationFindsItsPartFile() async throws {
        let server = try ResourceServer(RangeResource(.usual), cuts: [200_000])
        let path = folder("a")
        var request = Request(server.url)
        request.options.retry = RetryPolicy.never
        let asked = request
        #expect(
            await failure { () async throws(NetworkError) in
                try await session.download(asked, to: .choosing { _ in path })
            }?.kind == .connectionLost)
        let file = try await session.download(Request(server.url), to: .choosing { _ in path })
        #expect(isWhole(file) && file.resumedFrom == 200_000)
        #expect(server.ranges == [nil, nil, "bytes=200000-"])
    }

    @Test func expectedChecksumIsVerifiedAfterResume() async throws {
        let server = try ResourceServer(RangeResource(PatternBody(seed: 3, length: 900_000)))
        let token = try #require(await broken(server, after: 300_000))
        let error = await failure { () async throws(NetworkError) in try await session.resume(from: token).value }
        #expect(error?.kind == .checksumMismatch && folder.names == [])
    }

    @Test func digestFieldOfARangeResponseIsVerified() async throws {
        let resource = RangeResource(.usual)
        let digest = MessageDigest.digest(.sha256, of: [1]) ?? []
        let server = try MockServer { request in
            let answer = resource.response(to: request)
            if request.field("Range") == nil { return answer.fault(.reset, at: .body(300_000)) }
            return answer.field("Repr-Digest", "sha-256=:\(Data(digest).base64EncodedString()):")
        }
        let error = await failure { () async throws(NetworkError) in
            try await session.download(Request(server.url("/")), to: .file(folder("a")))
        }
        #expect(error?.kind == .checksumMismatch && folder.names == [])
    }

    @Test func postDownloadIsNotRetried() async throws {
        let server = try ResourceServer(RangeResource(.usual), cuts: [300_000])
        let error = await failure { () async throws(NetworkError) in
            try await session.download(Request(.post, server.url), to: .file(folder("a")))
        }
        #expect(error?.kind == .connectionLost && error?.resumeToken == nil && folder.names == [])
        #expect(server.ranges == [nil])
        let file = try await session.download(Request(.post, server.url), to: .file(folder("a")))
        #expect(isWhole(file) && server.ranges == [nil, nil])
    }

    @Test func readerOfResumedDownloadGetsStoredBytesToo() async throws {
        let server = try ResourceServer(RangeResource(.usual))
        for part in [Array(PatternBody.usual.bytes[..<300_000]), PatternBody.usual.bytes] {
            var token = try #require(await broken(server, after: 300_000))
            folder.write("a.part", part)
            token.digest = nil
            let transfer = session.resume(from: token)
            var bytes: [UInt8] = []
            for try await chunk in transfer.bytes { bytes += chunk }
            #expect(bytes == PatternBody.usual.bytes)
            #expect(isWhole(try await transfer.value))
            // A later reader reads the file.
            var again: [UInt8] = []
            for try await chunk in transfer.bytes { again += chunk }
            #expect(again == bytes)
            try FileManager.default.removeItem(atPath: folder("a"))
        }
    }

    private struct Weak { weak var run: DownloadRun? }

    private func broken(_ url: String) async -> (NetworkError?, Weak) {
        let transfer = session.downloadTransfer(Request(url), to: .file(folder("a")))
        let error = await failure { () async throws(NetworkError) in try await transfer.value }
        return (error, Weak(run: transfer.run.download))
    }

    @Test func keptErrorHoldsNoFileDescriptor() async throws {
        let server = try ResourceServer(RangeResource(.usual), cuts: [100, 100, 100, 100])
        let (error, left) = await broken(server.url)
        #expect(error?.resumeToken?.offset == 400 && error?.request?.interceptors.isEmpty == false)
        // A task that waits for the end of the download releases the run soon.
        while left.run != nil, !Task.isCancelled { await Task.yield() }
        let open = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap {
            try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + $0)
        }
        #expect(!open.contains { $0.hasPrefix(folder.path) })
    }

    // MARK: Cancel and pause

    @Test func cancelledDownloadLeavesResumeToken() async throws {
        let gate = Gate()
        let server = try ResourceServer(RangeResource(.usual))
        let resource = RangeResource(.usual)
        let stalling = try MockServer { resource.response(to: $0).fault(.stall(gate), at: .body(100_000)) }
        let transfer = session.downloadTransfer(Request(stalling.url("/")), to: .file(folder("a"))).start()
        for await progress in transfer.progress where progress.received >= 100_000 { break }
        var token = try #require(await transfer.cancel(producingResumeToken: true))
        #expect(token.offset == 100_000 && transfer.state == .finished)
        #expect(await failure { () async throws(NetworkError) in try await transfer.value }?.kind == .cancelled)
        gate.open()
        token = try JSONDecoder().decode(ResumeToken.self, from: JSONEncoder().encode(token))
        let file = try await session.resume(from: token, request: Request(server.url)).value
        #expect(isWhole(file) && server.ranges == ["bytes=100000-"])
    }

    @Test func cancelWithoutResumeTokenRemovesFiles() async throws {
        let gate = Gate()
        let resource = RangeResource(.usual)
        let stalling = try MockServer { resource.response(to: $0).fault(.stall(gate), at: .body(100_000)) }
        let transfer = session.downloadTransfer(Request(stalling.url("/")), to: .file(folder("a"))).start()
        for await progress in transfer.progress where progress.received >= 100_000 { break }
        #expect(await transfer.cancel(producingResumeToken: false) == nil)
        gate.open()
        #expect(folder.names == [])
    }

    @Test func shortPauseKeepsTheConnection() async throws {
        let gate = Gate()
        let server = try MockServer { request in
            let response = RangeResource(.usual).response(to: request)
            return request.path == "/other" ? response : response.fault(.stall(gate), at: .body(100_000))
        }
        let transfer = session.downloadTransfer(Request(server.url("/")), to: .file(folder("a"))).start()
        for await progress in transfer.progress where progress.received >= 100_000 { break }
        await gate.waitUntilReached()
        transfer.pause()
        #expect(transfer.state == .paused)
        // The loop pauses the transfer before it returns the list.
        _ = await session.transfers
        let sent = server.bytesSent
        gate.open()
        while server.bytesSent == sent, !Task.isCancelled { await Task.yield() }
        // More bytes of the download have arrived, and the loop does not read them while it serves another transfer.
        #expect(try await session.data(for: Request(server.url("/other"))).0.count == 1_234_567)
        #expect(transfer.state == .paused && transfer.currentProgress.received == 100_000)
        transfer.resume()
        #expect(isWhole(try await transfer.value))
        #expect(server.requests.map(\.path) == ["/", "/other"], "the download continues on its connection")
    }

    @Test func longPauseResumesOnANewConnection() async throws {
        let gate = Gate()
        let resource = RangeResource(.usual)
        let server = try MockServer { request in
            let answer = resource.response(to: request)
            return request.field("Range") == nil ? answer.fault(.stall(gate), at: .body(100_000)) : answer
        }
        var options = DownloadOptions()
        options.pauseGrace = .zero
        let transfer = session.downloadTransfer(Request(server.url("/")), to: .file(folder("a")), options: options)
            .start()
        for await progress in transfer.progress where progress.received >= 100_000 { break }
        transfer.pause()
        #expect(await server.waitUntil(openConnections: 0))
        #expect(transfer.state == .paused)
        transfer.resume()
        #expect(isWhole(try await transfer.value))
        #expect(server.requests.map { $0.field("Range") } == [nil, "bytes=100000-"])
        gate.open()
    }

    // MARK: Many downloads

    @Test func manyDownloadsWithResetsAreComplete() async throws {
        let bodies = (0..<200).map { PatternBody(seed: UInt64($0), length: 20_000 + $0 * 500) }
        let drops = Lock(SeededChance(7))
        let server = try MockServer { request in
            guard let index = Int(request.path.dropFirst()) else { return .status(404) }
            let answer = RangeResource(bodies[index]).response(to: request)
            let chance = drops.withLock { $0.next() }
            let (isDropped, at) = (chance % 2 == 0, Int(chance >> 32) % 20_000)
            return isDropped ? answer.fault(.reset, at: .body(at)) : answer
        }
        let session = Session { $0.retry = RetryPolicy(limit: 100, backoff: .none, budget: nil) }
        let (path, url) = (folder.path, server.url("/"))
        try await withThrowingTaskGroup(of: Void.self) { group in
            for index in bodies.indices {
                group.addTask {
                    _ = try await session.download(
                        Request(url + "\(index)"), to: .file("\(path)/\(index)"),
                        expecting: .sha256(bodies[index].sha256))
                }
            }
            try await group.waitForAll()
        }
        #expect(folder.names.count == 200)
        for (index, body) in bodies.enumerated() { #expect(folder.bytes("\(index)") == body.bytes) }
    }
}
