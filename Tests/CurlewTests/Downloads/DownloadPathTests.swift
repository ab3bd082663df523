// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Glibc
import Testing

@testable import Curlew

/// Paths that are invalid or in use by other files, and notes with impossible contents.
@Suite(.timeLimit(.minutes(5)))
struct DownloadPathTests {
    private let session = Session { $0.retry = RetryPolicy(limit: 3, backoff: .none) }
    private let folder: Folder

    init() throws { folder = try Folder() }

    private func refusal(
        _ server: ResourceServer, _ destination: DownloadDestination, _ overwrite: DownloadDestination.Overwrite = .fail
    ) async -> NetworkError? {
        await failure { () async throws(NetworkError) in
            try await session.download(Request(server.url), to: destination, overwrite: overwrite)
        }
    }

    private func reason(_ error: NetworkError?) -> DownloadDestination.Failure.Reason? {
        (error?.cause as? DownloadDestination.Failure)?.reason
    }

    // MARK: Paths

    @Test(arguments: ["", "new/", ".", "sub/.."])
    func pathWithoutFileNameIsRefusedBeforeTheRequest(_ path: String) async throws {
        let server = try ResourceServer(RangeResource(.usual))
        let path = path.isEmpty ? "" : folder(path)
        let error = await refusal(server, .file(path), .replace)
        #expect(error?.kind == .invalidRequest && error?.hint?.contains(".directory") == true)
        #expect(server.ranges.isEmpty && folder.names.isEmpty)
        #expect(await refusal(server, .choosing { _ in path }, .replace)?.kind == .invalidRequest)
        #expect(folder.names.isEmpty)
    }

    @Test func directoryAtDestinationIsNotReplaced() async throws {
        let server = try ResourceServer(RangeResource(.usual))
        try FileManager.default.createDirectory(atPath: folder("a"), withIntermediateDirectories: false)
        #expect(reason(await refusal(server, .file(folder("a")), .replace)) == .notADirectory)
        #expect(server.ranges.isEmpty && folder.names == ["a"])
    }

    @Test func fileNameIsLimitedByThePartSuffix() async throws {
        let server = try ResourceServer(RangeResource(.usual))
        let longest = String(repeating: "x", count: 241)
        let error = await refusal(server, .file(folder(longest + "x")))
        #expect(reason(error) == .nameTooLong && error?.hint?.contains("241") == true && server.ranges.isEmpty)
        server.state.withLock { $0.cuts = [300_000] }
        #expect(try await session.download(Request(server.url), to: .file(folder(longest))).bytes == 1_234_567)
        #expect(folder.names == [longest])
    }

    /// A later change of the working directory must not change the destination.
    @Test func relativePathsAreMadeAbsolute() async throws {
        let server = try ResourceServer(RangeResource(.usual))
        let up = FileManager.default.currentDirectoryPath.split(separator: "/").map { _ in ".." }.joined(separator: "/")
        let file = try await session.download(Request(server.url), to: .file(up + folder("a")))
        #expect(file.path.hasPrefix("/") && folder.names == ["a"])
        let named = try await session.download(
            Request(server.url), to: .directory(up + folder("")), overwrite: .uniquify)
        #expect(named.path.hasPrefix("/"))
        let path = up + folder("chosen")
        let chosen = try await session.download(Request(server.url), to: .choosing { _ in path })
        #expect(chosen.path.hasPrefix("/"))
        let store = try await TransferStore(at: up + folder("store"))
        #expect(store.directory.hasPrefix("/"))
    }

    // MARK: Files of other programs

    @Test func partFileOfAnotherProgramIsKept() async throws {
        let server = try ResourceServer(RangeResource(.usual))
        folder.write("a.part", [1, 2, 3])
        let error = await refusal(server, .file(folder("a")), .replace)
        #expect(reason(error) == .foreignPart && error?.hint?.contains("Remove or rename") == true)
        let file = try await session.download(Request(server.url), to: .file(folder("a")), overwrite: .uniquify)
        #expect(file.path == folder("a") && folder.bytes("a.part") == [1, 2, 3])
        #expect(folder.names == ["a", "a.part"])
    }

    @Test func directoryOrLinkWithPartFileNameIsKept() async throws {
        let server = try ResourceServer(RangeResource(.usual))
        try FileManager.default.createDirectory(atPath: folder("a.part"), withIntermediateDirectories: false)
        folder.write("target", [1])
        try FileManager.default.createSymbolicLink(atPath: folder("b.part"), withDestinationPath: folder("target"))
        for name in ["a", "b"] {
            #expect(reason(await refusal(server, .file(folder(name)))) == .foreignPart)
            let file = try await session.download(Request(server.url), to: .file(folder(name)), overwrite: .uniquify)
            #expect(file.path == folder(name))
        }
        #expect(folder.bytes("target") == [1])
    }

    // MARK: Notes

    /// Leaves a part file of 300,000 bytes, with a note that the closure changes.
    private func leave(_ server: ResourceServer, _ change: (inout ResumeToken) -> Void) async throws {
        server.state.withLock { $0.cuts = [300_000] }
        var request = Request(server.url)
        request.options.retry = RetryPolicy.never
        let error = await failure { () async throws(NetworkError) in
            try await session.download(request, to: .file(folder("a")))
        }
        var note = try #require(error?.resumeToken)
        change(&note)
        folder.write("a.part.json", Array(try JSONEncoder().encode(note)))
    }

    private var isWhole: Bool { folder.bytes("a") == PatternBody.usual.bytes && folder.names == ["a"] }

    @Test(arguments: 0..<8)
    func noteWithImpossibleNumbersIsIgnored(_ kind: Int) async throws {
        let server = try ResourceServer(RangeResource(.usual))
        try await leave(server) { note in
            switch kind {
            case 0: (note.total, note.offset, note.pieces) = (.min, 1, [2..<3])
            case 1: note.offset = -1
            case 2: (note.bootID, note.synced) = ("another", -5)
            case 3: note.pieces = [-3..<5]
            case 4: note.pieces = [5..<Int64.max]
            case 5: (note.total, note.offset) = (10, 20)
            case 6: (note.bootID, note.synced) = ("another", .max)
            default: (note.bootID, note.offset, note.synced, note.pieces) = ("another", 900_000, 900_000, [])
            }
        }
        let file = try await session.download(Request(server.url), to: .file(folder("a")))
        #expect(isWhole && file.resumedFrom == 0)
    }

    /// After a power failure, a note that was not synced may be empty or full of zeros.
    @Test(arguments: [0, 4096])
    func partFileWithEmptyNoteRestarts(_ count: Int) async throws {
        let server = try ResourceServer(RangeResource(.usual))
        try await leave(server) { _ in }
        folder.write("a.part.json", [UInt8](repeating: 0, count: count))
        #expect(try await session.download(Request(server.url), to: .file(folder("a"))).resumedFrom == 0)
        #expect(isWhole)
    }

    /// The checksum in the note of an earlier download does not apply to a new download without one.
    @Test func checksumOfEarlierDownloadIsIgnored() async throws {
        let server = try ResourceServer(RangeResource(.usual))
        try await leave(server) { $0.checksum = .sha256(String(repeating: "0", count: 64)) }
        #expect(try await session.download(Request(server.url), to: .file(folder("a"))).resumedFrom == 300_000)
        #expect(isWhole)
    }

    @Test func changedResourceIsSavedUnderItsNewSuggestedName() async throws {
        let body = PatternBody(seed: 3, length: 900_000)
        let version = Lock(0)
        let server = try MockServer { request in
            let number = version.withLock { $0 }
            let answer = RangeResource(body, tag: "\"\(number)\"").response(to: request)
                .field("Content-Disposition", "attachment; filename=\"app-1.\(number).zip\"")
            return number == 0 ? answer.fault(.close, at: .body(300_000)) : answer
        }
        var request = Request(server.url("/latest"))
        request.options.retry = RetryPolicy.never
        _ = await failure { () async throws(NetworkError) in
            try await session.download(request, to: .directory(folder("")))
        }
        version.withLock { $0 = 1 }
        let file = try await session.download(request, to: .directory(folder("")))
        #expect(file.path.hasSuffix("/app-1.1.zip") && folder.names == ["app-1.1.zip"])
    }

    // MARK: Discarding

    @Test func resumeTokenDiscardRemovesPartFileAndNote() async throws {
        let server = try ResourceServer(RangeResource(.usual))
        try await leave(server) { _ in }
        #expect(folder.names == ["a.part", "a.part.json"])
        let note = try JSONDecoder().decode(ResumeToken.self, from: Data(folder.bytes("a.part.json") ?? []))
        await note.discard()
        #expect(folder.names.isEmpty)
        // A second call must leave the part file of another program alone.
        folder.write("a.part", [1])
        await note.discard()
        #expect(folder.names == ["a.part"])
    }

    @Test func cancelAfterFailureRemovesPartFile() async throws {
        let server = try ResourceServer(RangeResource(.usual), cuts: [300_000])
        var request = Request(server.url)
        request.options.retry = RetryPolicy.never
        let transfer = session.downloadTransfer(request, to: .file(folder("a")))
        _ = await failure { () async throws(NetworkError) in try await transfer.value }
        #expect(folder.names == ["a.part", "a.part.json"])
        #expect(await transfer.cancel(producingResumeToken: false) == nil && folder.names.isEmpty)
    }

    // MARK: Downloads of a client

    @Test func clientResumesItsDownloadWithItsCredentials() async throws {
        let cuts = Lock([300_000])
        let server = try MockServer { request in
            guard request.field("Authorization") == "Bearer s3cret", request.target == "/a?key=1" else {
                return .status(401)
            }
            let answer = RangeResource(.usual).response(to: request)
            let cut = cuts.withLock { $0.popLast() }
            return cut.map { answer.fault(.close, at: .body($0)) } ?? answer
        }
        let api = Client(try BaseURL(server.url("")), session: session).with {
            $0.query = ["key": 1]
            $0.fields[.authorization] = "Bearer s3cret"
        }
        let error = await failure { () async throws(NetworkError) in
            try await api.download("a", options: [.retry(.never)], to: .file(folder("a")))
        }
        let token = try #require(error?.resumeToken)
        #expect(try await api.resume(from: token).value.resumedFrom == 300_000)
        #expect(isWhole)
    }
}
