// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import Testing

@testable import Curlew

/// Downloads with a content coding.
@Suite(.timeLimit(.minutes(5)))
struct DownloadCodingTests {
    private func server(_ wire: [UInt8], _ encoding: String = "gzip") throws -> MockServer {
        try MockServer { _ in .bytes(wire).field("Content-Encoding", encoding) }
    }

    @Test func contentCodingNotRequestedIsRefused() async throws {
        let folder = try Folder()
        let server = try server(Encoded.deflated(Encoded.text))
        let error = try await networkError {
            try await Session().download(Request(server.url("/a")), to: .file(folder("a")))
        }
        #expect(error.kind == .unsupported && error.phase == .validating)
        #expect(error.message.contains("did not request") && error.hint?.contains("decompression") == true)
        #expect(!folder.names.contains("a") && server.requests.count == 1)
    }

    @Test func contentCodingThatWasRequestedIsDecoded() async throws {
        let folder = try Folder()
        let server = try server(Encoded.deflated(Encoded.text))
        let request = Request(server.url("/a"), fields: [.acceptEncoding: "gzip"])
        try await Session().download(request, to: .file(folder("a")))
        #expect(folder.bytes("a") == Encoded.text)
    }

    @Test func bytesAreSavedEncodedWithDecompressionOff() async throws {
        let folder = try Folder()
        let wire = try Encoded.deflated(Encoded.text)
        let server = try server(wire)
        var request = Request(server.url("/a"))
        request.options.decompression = .off
        try await Session().download(request, to: .file(folder("a")))
        #expect(folder.bytes("a") == wire)
    }

    @Test func threefoldCompressionBombIsRefused() async throws {
        let folder = try Folder()
        let wire = try Encoded.deflated(Encoded.deflated(Encoded.deflated([UInt8](repeating: 0, count: 16 << 20))))
        #expect(wire.count < 1000)
        let server = try server(wire, "gzip, gzip, gzip")
        let request = Request(server.url("/a"), fields: [.acceptEncoding: "gzip"])
        let error = try await networkError { try await Session().download(request, to: .file(folder("a"))) }
        #expect(error.kind == .unsupported && error.phase == .decoding)
        #expect(!folder.names.contains("a"))
    }
}
