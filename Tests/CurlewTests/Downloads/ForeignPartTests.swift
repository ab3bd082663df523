// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Glibc
import Testing

@testable import Curlew

/// Files of other users in a shared directory, and special files.
@Suite(.timeLimit(.minutes(10)))
struct ForeignPartTests {
    private let session = Session()
    private let folder: Folder
    private let server: ResourceServer

    init() throws {
        folder = try Folder()
        server = try ResourceServer(RangeResource(.usual))
    }

    private func refusal(_ overwrite: DownloadDestination.Overwrite = .fail) async -> NetworkError? {
        let (session, path, url) = (session, folder("a"), server.url)
        return await failure { () async throws(NetworkError) in
            try await session.download(Request(url), to: .file(path), overwrite: overwrite)
        }
    }

    private func reason(_ error: NetworkError?) -> DownloadDestination.Failure.Reason? {
        (error?.cause as? DownloadDestination.Failure)?.reason
    }

    /// Writes a part file of three bytes with a matching note.
    private func plant() throws {
        var note = ResumeToken(
            url: server.url, validator: .tag("\"1\""), offset: 3, total: 9, part: folder("a.part"),
            destination: folder("a"), overwrite: .fail, checksum: nil)
        note.bootID = DiskFile.bootID
        folder.write("a.part", [1, 2, 3])
        folder.write("a.part.json", Array(try JSONEncoder().encode(note)))
    }

    private func expectRefusal(of name: String, _ why: String) async {
        let error = await refusal()
        #expect(reason(error) == .foreignPart && server.ranges.isEmpty)
        #expect((error?.cause as? DownloadDestination.Failure)?.path == folder(name))
        #expect(
            error?.message.contains(folder(name)) == true && error?.message.contains(why) == true, "\(error as Any)")
        #expect(error?.hint?.contains("Remove") == true)
        #expect(folder.bytes("a.part") == [1, 2, 3] && !folder.names.contains("a"))
    }

    @Test(.enabled(if: geteuid() == 0)) func partFileOfAnotherUserIsRefused() async throws {
        try plant()
        #expect(chown(folder("a.part"), 12_345, 12_345) == 0)
        await expectRefusal(of: "a.part", "another user (uid 12345)")
    }

    @Test(.enabled(if: geteuid() == 0)) func emptyPartFileOfAnotherUserIsRefused() async throws {
        folder.write("a.part", [])
        #expect(chown(folder("a.part"), 12_345, 12_345) == 0)
        #expect(reason(await refusal()) == .foreignPart)
        let file = try await session.download(Request(server.url), to: .file(folder("a")), overwrite: .uniquify)
        #expect(file.path == folder("a") && folder.bytes("a") == PatternBody.usual.bytes)
        #expect(folder.bytes("a.part") == [])
    }

    @Test(.enabled(if: geteuid() == 0)) func noteOfAnotherUserIsRefused() async throws {
        try plant()
        #expect(chown(folder("a.part.json"), 12_345, 12_345) == 0)
        await expectRefusal(of: "a.part.json", "another user (uid 12345)")
    }

    @Test func noteWithSeveralHardLinksIsRefused() async throws {
        try plant()
        #expect(link(folder("a.part.json"), folder("other")) == 0)
        await expectRefusal(of: "a.part.json", "several hard links")
    }

    @Test func fifoWithPartOrNoteNameIsRefusedWithoutBlocking() async throws {
        try plant()
        #expect(unlink(folder("a.part.json")) == 0 && mkfifo(folder("a.part.json"), 0o600) == 0)
        await expectRefusal(of: "a.part.json", "something other than")
        #expect(unlink(folder("a.part")) == 0 && mkfifo(folder("a.part"), 0o600) == 0)
        #expect(reason(await refusal()) == .foreignPart)
    }

    @Test func fileOwnerRejectsForeignLinkedAndWritableFiles() {
        func rejectionReason(_ mode: UInt32, _ owner: UInt32 = 7, _ links: UInt64 = 1, umask: UInt32 = 0o022) -> String?
        {
            FileOwner.rejectionReason(mode: mode, owner: owner, links: links, user: 7, umask: { umask })
        }
        #expect(rejectionReason(0o100644) == nil && rejectionReason(0o100600) == nil)
        #expect(rejectionReason(0o100644, 8)?.contains("another user (uid 8)") == true)
        #expect(rejectionReason(0o100644, 7, 2)?.contains("several hard links") == true)
        #expect(rejectionReason(0o100664)?.contains("other users may write") == true)
        #expect(rejectionReason(0o100646)?.contains("other users may write") == true)
        #expect(rejectionReason(0o100664, umask: 0o002) == nil && rejectionReason(0o100666, umask: 0) == nil)
        #expect(rejectionReason(0o100666, umask: 0o002) != nil)
        #expect(rejectionReason(0o010600)?.contains("something other than") == true)
    }

    // MARK: Special files

    /// Creates a FIFO, a socket or a device.
    private func make(_ kind: String) -> Bool {
        switch kind {
        case "FIFO": return mkfifo(folder("a"), 0o600) == 0
        case "socket": return mknod(folder("a"), S_IFSOCK | 0o600, 0) == 0
        // The numbers of /dev/null.
        default: return mknod(folder("a"), S_IFCHR | 0o600, 0x103) == 0
        }
    }

    @Test(arguments: ["FIFO", "socket", "device"]) func specialFileAtDestinationIsNotReplaced(_ kind: String) async {
        // A container may not allow devices.
        guard make(kind) || kind != "device" else { return }
        let error = await refusal(.replace)
        #expect(reason(error) == .notAFile && error?.message.contains("a \(kind) at") == true, "\(error as Any)")
        #expect(error?.hint != nil && server.ranges.isEmpty)
        #expect(folder.names == ["a"] && DiskFile.specialKind(of: folder("a")) == kind)
    }

    @Test func specialFileCreatedDuringDownloadIsNotReplaced() throws {
        let part = try PartialFile.open(folder("a.part"))
        #expect(make("FIFO"))
        let error = #expect(throws: DiskFailure.self) { try part.move(to: folder("a"), replacing: true) }
        #expect(error?.isSpecial == true && error?.description.contains("a FIFO at") == true)
        #expect(folder.names == ["a", "a.part"] && DiskFile.specialKind(of: folder("a")) == "FIFO")
    }
}
