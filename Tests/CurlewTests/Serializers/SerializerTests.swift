// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

@Suite("Serializers without formats", .timeLimit(.minutes(5)))
struct SerializerTests {
    private func read<S: ResponseSerializer>(_ response: IncomingResponse, using serializer: S) async throws -> S.Output
    {
        try await serializer.bound(to: Shouting()).output(from: response)
    }

    private func accepted(_ serializer: some ResponseSerializer) -> [String] { serializer.accepts.map(\.description) }

    @Test("RS-03, RS-26, SW-02: bytes")
    func bytesSerializerReturnsTheBody() async throws {
        #expect(try await read(ReadingScene.response([0, 255], "a/b"), using: .bytes) == Data([0, 255]))
        #expect(try await read(ReadingScene.response("", nil), using: .bytes) == Data())
        #expect(accepted(.bytes) == ["*/*"])
        #expect(accepted(.bytes(accepting: ["audio/mpeg", "video/*"])) == ["audio/mpeg", "video/*"])
    }

    @Test("RS-27, B-91: text")
    func textSerializerDecodesTheCharset() async throws {
        let latin: [UInt8] = [0x61, 0xE9]
        #expect(try await read(ReadingScene.response(latin, "text/plain; charset=latin1"), using: .text) == "aé")
        #expect(try await read(ReadingScene.response("\u{FEFF}é", "a/b; charset=latin1"), using: .text) == "é")
        #expect(try await read(ReadingScene.response("é", nil), using: .text) == "é")
        #expect(try await read(ReadingScene.response("", "text/plain; charset=no-such"), using: .text) == "")
        #expect(accepted(.text) == ["text/*", "*/*; q=0.1"])
        let assuming = Serializers.Text(assuming: .windows1252)
        #expect(try await read(ReadingScene.response(latin, "text/plain"), using: assuming) == "aé")
        let lossy = Serializers.Text(lossy: true)
        #expect(try await read(ReadingScene.response(latin, "text/plain"), using: lossy) == "a\u{FFFD}")
        let error = await #expect(throws: NetworkError.self) {
            try await read(ReadingScene.response(latin, "text/plain"), using: .text)
        }
        #expect(error?.kind == .decodingFailed && error?.body == latin)
        #expect(error?.request?.url == "https://h/users/1" && error?.response != nil)
    }

    @Test func emptySerializerIgnoresTheBody() async throws {
        let response = ReadingScene.response("body")
        try await read(response, using: .empty)
        #expect(try await response.collect() == Data("body".utf8), "a body in memory is not discarded")
        #expect(accepted(.empty) == ["*/*"])
    }

    @Test("RS-26: closures")
    func closuresReadTheResponse() async throws {
        let size = Serializers.Closure(accepts: ["image/*"]) { response in try await response.collect().count }
        #expect(try await read(ReadingScene.response("four"), using: size) == 4)
        #expect(accepted(size) == ["image/*"] && accepted(Serializers.Closure { $0.head.status }) == ["*/*"])
        await #expect(throws: CancellationError.self) {
            try await read(
                ReadingScene.response(""), using: Serializers.Closure { _ -> Int in throw CancellationError() })
        }
    }
}
