// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Glibc
import Testing

@testable import Curlew

/// Downloads that meet the end of the disk, or a limit: they say so, and leave nothing but what can be gone on with.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct FullDiskTests {
    private let folder: Folder
    private let session = Session()

    init() throws { folder = try Folder() }

    /// Runs in a process of its own, since the limit is the process's; what is written at its end needs it no more.
    @Test func aLimitOfTheProcessIsSaid() async throws {
        await #expect(processExitsWith: .success) {
            let server = try ResourceServer(RangeResource(.usual))
            let chunked = try MockServer { _ in .pattern(.usual).field("ETag", "\"1\"").chunked() }
            let folder = try Folder()
            limitFiles(to: 300_000)
            let known = await failure { () async throws(NetworkError) in
                try await Session().download(Request(server.url), to: .file(folder("a")))
            }
            let unknown = await failure { () async throws(NetworkError) in
                try await Session().download(Request(chunked.url("/")), to: .file(folder("b")))
            }
            limitFiles(to: rlim_t.max)
            #expect((known?.cause as? DestinationFailure)?.reason == .tooLarge && known?.phase == .saving)
            #expect((unknown?.cause as? DestinationFailure)?.reason == .tooLarge)
            #expect(unknown?.resumeToken?.offset ?? 0 <= 300_000 && !folder.names.contains("b"))
        }
    }

    @Test func aFullDiskIsSaidAndLeftAsItIs() async throws {
        let disk = folder("disk")
        mkdir(disk, 0o700)
        guard mount("tmpfs", disk, "tmpfs", 0, "size=524288") == 0 else {
            try Test.cancel("this user may not mount a small file system")
        }
        defer { umount2(disk, 2) }
        let server = try ResourceServer(RangeResource(.usual))
        let known = await failure { () async throws(NetworkError) in
            try await session.download(Request(server.url), to: .file(disk + "/a"))
        }
        #expect((known?.cause as? DestinationFailure)?.reason == .noSpace && known?.exitCode == 73)
        let chunked = try MockServer { _ in .pattern(.usual).field("ETag", "\"1\"").chunked() }
        let unknown = await failure { () async throws(NetworkError) in
            try await session.download(Request(chunked.url("/")), to: .file(disk + "/b"))
        }
        #expect((unknown?.cause as? DestinationFailure)?.reason == .noSpace)
        #expect(
            !((try? FileManager.default.contentsOfDirectory(atPath: disk)) ?? []).contains { $0 == "a" || $0 == "b" })
    }

    @Test func aDiskThatCanOnlyBeReadIsSaid() async throws {
        let disk = folder("disk")
        mkdir(disk, 0o700)
        guard mount("tmpfs", disk, "tmpfs", UInt(MS_RDONLY), "size=65536") == 0 else {
            try Test.cancel("this user may not mount a file system")
        }
        defer { umount2(disk, 2) }
        let server = try ResourceServer(RangeResource(.usual))
        let error = await failure { () async throws(NetworkError) in
            try await session.download(Request(server.url), to: .file(disk + "/a"))
        }
        #expect((error?.cause as? DestinationFailure)?.reason == .readOnly && server.server.requestCount == 0)
    }
}

/// Limits the size of files that this process writes.
private func limitFiles(to size: rlim_t) {
    var limit = rlimit(rlim_cur: size, rlim_max: rlim_t.max)
    setrlimit(__rlimit_resource_t(1), &limit)  // RLIMIT_FSIZE
}
