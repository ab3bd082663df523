// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// Paths with a NUL byte, which C functions read only up to it, so that they would name another file.
@Suite(.timeLimit(.minutes(10)))
struct NULPathTests {
    private let folder: Folder

    init() throws { folder = try Folder() }

    @Test func downloadDestinationWithNULIsRefused() async throws {
        let (session, folder, server) = (Session(), folder, try ResourceServer(RangeResource(.usual)))
        let file = await failure { () async throws(NetworkError) in
            try await session.download(Request(server.url), to: .file(folder("a\u{0}b/c")))
        }
        #expect(file?.kind == .invalidRequest)
        #expect(server.ranges.isEmpty)
        let directory = await failure { () async throws(NetworkError) in
            try await session.download(Request(server.url), to: .directory(folder("a\u{0}b")))
        }
        #expect(directory != nil)
        #expect(folder.names == [])
    }

    @Test func storeDirectoryWithNULIsRefused() async throws {
        let folder = folder
        let error = await #expect(throws: NetworkError.self) { _ = try await TransferStore(at: folder("a\u{0}b")) }
        #expect(error?.kind == .destinationFailed)
        #expect(folder.names == [])
    }

    @Test func bodyFileWithNULIsRefused() async throws {
        folder.write("a", [1])
        var request = Request(.post, "http://127.0.0.1:1/")
        request.body = .file(folder("a\u{0}b"))
        #expect(!request.body.isMissingFile)
        let sent = request
        let error = await #expect(throws: NetworkError.self) { _ = try await Session().data(for: sent) }
        #expect(error?.kind == .invalidRequest)
    }

    @Test func certificatePathWithNULIsRefused() throws {
        let authority = try TestAuthority()
        folder.write("a.pem", Array(authority.certificatePEM.utf8))
        #expect(try Certificate.all(file: folder("a.pem")).count == 1)
        for read in [
            { _ = try Certificate.all(file: $0) },
            { _ = try Certificate.all(directory: $0) },
            { _ = try ClientIdentity(pkcs12File: $0) },
        ] as [(String) throws -> Void] {
            for path in ["a.pem\u{0}b", "\u{0}b"] {
                let error = #expect(throws: TrustFailure.InvalidPolicy.self) { try read(folder(path)) }
                #expect(error?.message.contains("NUL") == true)
            }
        }
        #expect(FileStamp(folder("a.pem")) != nil && FileStamp(folder("a.pem\u{0}b")) == nil)
    }

    @Test func diskFunctionsRefusePathsWithNUL() throws {
        folder.write("a", [1])
        let path = folder("a\u{0}b")
        #expect(!DiskFile.exists(path) && !DiskFile.isDirectory(folder("\u{0}b")))
        #expect(DiskFile.identity(of: path) == nil && DiskFile.specialKind(of: "/dev/null\u{0}b") == nil)
        DiskFile.remove(path)
        for use in [
            { _ = try DiskFile.contents(of: $0, upTo: 9) },
            { try DiskFile.replace($0, with: [2], isSynced: false) },
            { try DiskFile.makeDirectory($0) },
            { try DiskFile.makePrivateDirectory($0) },
            { try DiskFile.syncDirectory(of: $0 + "/c") },
            { _ = try PartialFile.open($0) },
            { _ = try PartialFile.reading($0) },
            { _ = try PrivateDirectory($0) },
        ] as [(String) throws -> Void] {
            #expect(throws: DiskFailure.self) { try use(path) }
        }
        let part = try PartialFile.open(folder("c"))
        #expect(throws: DiskFailure.self) { try part.move(to: path, replacing: true) }
        #expect(folder.names.sorted() == ["a", "c"] && folder.bytes("a") == [1])
    }
}
