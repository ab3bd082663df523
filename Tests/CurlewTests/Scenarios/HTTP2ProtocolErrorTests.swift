// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// Frames and fields that no server may send (RFC 9113 §5.4 and §8.1.1); they end a transfer before any timeout.
@Suite(.timeLimit(.minutes(5)))
struct HTTP2ProtocolErrorTests {
    private static let brokenFrames: [HTTP2Frame] = [
        .data(1, [UInt8](repeating: 1, count: 16_385)), .continuation(1), .data(0, [1]),
        HTTP2Frame(.data, flags: .padded, stream: 1, payload: [200, 1]),
    ]
    private static let length = [(name: "content-length", value: "1000")]

    /// libcurl abandons the connection without a reason; the declared length shows that the body is incomplete.
    @Test(arguments: brokenFrames) func invalidFrameInsideTheBodyLosesTheConnection(_ frame: HTTP2Frame) async throws {
        let gate = Gate()
        let scene = try HTTP2Scene { _ in .now.head(200, Self.length).body("abc").fault(.stall(gate)).frame(frame) }
        let error = try await scene.failureAfterHead(opening: gate)
        #expect(error.kind == .connectionLost && error.phase == .receiving && error.response?.status == .ok)
        #expect(error.retriability == .safe(after: nil) && scene.server.requests.count == 1)
    }

    @Test(arguments: brokenFrames)
    func invalidFrameTogetherWithTheHeadLosesTheConnection(_ frame: HTTP2Frame) async throws {
        let scene = try HTTP2Scene { _ in .now.head(200, Self.length).body("abc").frame(frame) }
        let error = try await scene.failure()
        #expect(error.kind == .connectionLost && error.phase == .receiving && error.response?.status == .ok)
        #expect(scene.server.requests.count == 1)
    }

    @Test(arguments: brokenFrames) func invalidFrameBeforeTheHeadLosesTheConnection(_ frame: HTTP2Frame) async throws {
        let scene = try HTTP2Scene { _ in .now.frame(frame) }
        let error = try await scene.failure(scene.post(.text("order")))
        #expect(error.kind == .connectionLost && error.phase == .waiting && error.response == nil)
        #expect(error.retriability == .ifIdempotent && scene.server.requests.count == 1)
    }

    @Test(
        .differsWithNewerLibcurl(
            "Its message names the field, and Curlew reports a lost connection; nghttp2 1.70 drops a field."),
        arguments: [
            [("a", "b")], [(":status", "1000")], [(":status", "abc")], [(":status", "200"), ("Upper", "x")],
            [(":status", "200"), ("connection", "close")], [("a", "b"), (":status", "200")],
            [(":status", "200"), (":x", "y")], [(":status", "200"), ("a", "b\0c")],
            [(":status", "200"), ("a", "b\r\nc: d")],
            [(":status", "200"), ("content-length", "3"), ("content-length", "4")],
        ] as [[(name: String, value: String)]]) func malformedHeadIsInvalid(_ fields: [(name: String, value: String)])
        async throws
    {
        let scene = try HTTP2Scene { _ in .now.fields(fields).body("abc", endStream: true) }
        let error = try await scene.failure(scene.post(.text("order")))
        #expect(error.kind == .invalidResponse && error.phase == .waiting && error.response == nil, "\(error)")
        #expect(error.retriability == .ifIdempotent && scene.server.requests.count == 1)
    }

    /// libcurl does not remove blanks around values (RFC 9113 §8.2.1).
    @Test(arguments: [" b", "b ", "\tb", "b\t", " ", "\t b \t"]) func blanksAroundFieldValuesAreInvalid(_ value: String)
        async throws
    {
        let scene = try HTTP2Scene { request in
            request.path == "/trailers"
                ? .now.head(200).body("abc").trailers([("a", value)]) : .respond(200, [("a", value)], text: "abc")
        }
        for path in ["/", "/trailers"] {
            let error = try await scene.failure(scene.request(path))
            #expect(error.kind == .invalidResponse && error.message.contains("blank"), "\(error)")
            #expect(error.phase == .receiving && (error.response == nil) == (path == "/"))
        }
        #expect(scene.server.requests.count == 2)
    }

    @Test(arguments: ["", "b c", "b\t c"]) func blanksInsideFieldValuesAreAllowed(_ value: String) async throws {
        let scene = try HTTP2Scene { _ in .respond(200, [("a", value)], text: "abc") }
        #expect(try await scene.session.data(for: scene.request()).1["a"] == value)
    }

    @Test(
        .differsWithNewerLibcurl("Its message differs, and Curlew reports a lost connection."),
        arguments: ["2", "4", "x"])
    func wrongContentLengthIsInvalid(_ length: String) async throws {
        let scene = try HTTP2Scene { _ in .respond(200, [("content-length", length)], text: "abc") }
        let error = try await scene.failure()
        #expect(error.kind == .invalidResponse && error.retriability == .safe(after: nil), "\(error)")
        #expect(scene.server.requests.count == 1)
    }

    @Test(
        .differsWithNewerLibcurl("It drops a body after HEAD; after 204 Curlew reports a lost connection."),
        arguments: [Method.head, .get])
    func bodyOfBodilessResponseIsInvalid(_ method: Method) async throws {
        let scene = try HTTP2Scene { _ in .now.head(method == .head ? 200 : 204).body("abc", endStream: true) }
        let error = try await scene.failure(Request(method, scene.server.url("/")))
        #expect(error.kind == .invalidResponse && scene.server.requests.count == 1, "\(error)")
    }

    @Test(.differsWithNewerLibcurl("Curlew takes “too many CONTINUATION frames” for a lost connection."))
    func endlessHeadIsInvalid() async throws {
        let scene = try HTTP2Scene { request in
            .now.frame(.headers(request.stream, [(":status", "200")], endHeaders: false))
                .flood(.continuation(request.stream, [("a", "b")], endHeaders: false))
        }
        let error = try await scene.failure()
        #expect(error.kind == .invalidResponse && error.phase == .waiting && error.response == nil, "\(error)")
    }

    @Test(.differsWithNewerLibcurl("Curlew takes “too many CONTINUATION frames” for a lost connection."))
    func headListBeyondTheLimitIsInvalid() async throws {
        let fields = (0..<30).map { (name: "a\($0)", value: String(repeating: "v", count: 10_000)) }
        let scene = try HTTP2Scene { _ in .respond(200, fields) }
        let error = try await scene.failure()
        #expect(error.kind == .invalidResponse && error.phase == .waiting && error.response == nil, "\(error)")
    }
}
