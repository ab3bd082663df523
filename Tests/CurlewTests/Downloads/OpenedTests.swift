// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// `Transfer.opened()`: the caller reads the head before it decides what to do with the body.
@Suite struct OpenedTests {
    private let folder: Folder
    private let server: MockServer
    private let session = Session()

    init() throws {
        folder = try Folder()
        server = try MockServer { request in
            switch request.path {
            case "/away": .redirect(to: "/big")
            case "/cut": .pattern(.usual).fault(.reset, at: .body(500_000))
            default: .pattern(.usual).field("Content-Disposition", "attachment; filename=x.bin")
            }
        }
    }

    @Test func openedResponseIsSavedCollectedOrRead() async throws {
        let first = try await session.transfer(Request(server.url("/big"))).opened()
        #expect(first.head.contentLength == 1_234_567)
        let file = try await first.save(to: .directory(folder.path), expecting: .sha256(PatternBody.usual.sha256))
        #expect(file.path == folder("x.bin") && file.bytes == 1_234_567 && file.checksum?.algorithm == .sha256)
        #expect(folder.bytes("x.bin") == PatternBody.usual.bytes && folder.names == ["x.bin"])
        let second = try await session.transfer(Request(server.url("/away"))).opened()
        #expect(try await second.collect() == Data(PatternBody.usual.bytes) && second.head.history.count == 1)
        let third = try await session.transfer(Request(server.url("/big"))).opened()
        var count = 0
        for try await chunk in third.bytes { count += chunk.count }
        #expect(count == 1_234_567)
    }

    @Test func releasedIncomingResponseCancelsTheTransfer() async throws {
        let gate = Gate()
        let server = try MockServer { _ in .pattern(.usual).fault(.stall(gate), at: .body(1000)) }
        let transfer = session.transfer(Request(server.url("/")))
        var response: IncomingResponse? = try await transfer.opened()
        #expect(response?.head.status == .ok)
        response = nil
        #expect(await server.waitUntil(openConnections: 0))
        gate.open()
    }

    @Test func openedTwiceThrows() async throws {
        let transfer = session.transfer(Request(server.url("/big")))
        let response = try await transfer.opened()
        await #expect(throws: NetworkError.self) { try await transfer.opened() }
        #expect(try await response.collect().count == 1_234_567)
    }

    @Test func failedSaveLeavesNoFile() async throws {
        for (path, checksum) in [("/cut", nil), ("/big", Checksum.sha256(String(repeating: "0", count: 64)))] {
            let response = try await session.transfer(Request(server.url(path))).opened()
            let error = await failure { () async throws(NetworkError) in
                try await response.save(to: .file(folder("a")), expecting: checksum)
            }
            #expect(error?.kind == (checksum == nil ? .connectionLost : .checksumMismatch))
            #expect(folder.names == [])
        }
        folder.write("a", [1])
        let response = try await session.transfer(Request(server.url("/big"))).opened()
        let error = await failure { () async throws(NetworkError) in try await response.save(to: .file(folder("a"))) }
        #expect((error?.cause as? DownloadDestination.Failure)?.reason == .exists && folder.bytes("a") == [1])
    }

    @Test func saveRefusesInvalidChecksumBeforeTheBody() async throws {
        let response = try await session.transfer(Request(server.url("/cut"))).opened()
        let error = await failure { () async throws(NetworkError) in
            try await response.save(to: .file(folder("a")), expecting: .sha256("nonsense"))
        }
        #expect(error?.kind == .invalidRequest && folder.names == [])
    }

    @Test func eventsContainFileReady() async throws {
        let transfer = session.downloadTransfer(Request(server.url("/big")), to: .directory(folder.path))
        let events = transfer.events
        _ = try await transfer.value
        var paths: [String] = []
        for await event in events { if case .fileReady(let path) = event.kind { paths.append(path) } }
        #expect(paths == [folder("x.bin")])
    }
}
