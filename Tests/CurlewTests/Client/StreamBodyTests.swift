// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// Bodies that are encoded element by element, and responses that arrive while the body is sent.
@Suite(.timeLimit(.minutes(5)))
struct StreamBodyTests {
    private struct Odd: Error {}
    private struct Item: Codable, Equatable, Sendable { var id: Int }

    private struct Countdown: Sequence, IteratorProtocol, Sendable {
        var left: Int

        mutating func next() -> Int? {
            guard left > 0 else { return nil }
            defer { left -= 1 }
            return left
        }
    }

    private func sequence<Element: Sendable>(_ elements: [Element], end: (any Error)? = nil)
        -> AsyncThrowingStream<Element, any Error>
    {
        AsyncThrowingStream { continuation in
            for element in elements { continuation.yield(element) }
            continuation.finish(throwing: end)
        }
    }

    /// Sends a body and returns the content type and the bytes that the server received.
    private func sent(_ body: Body) async throws -> (type: String?, text: [UInt8]) {
        let server = try MockServer { _ in .status(204) }
        let api = Client(try BaseURL(server.url("/")), session: Session())
        try await api.post("x", body)
        let request = try #require(server.requests.first)
        #expect(server.violations.isEmpty)
        return (request.field("Content-Type"), request.body)
    }

    private let items = (1...3).map { Item(id: $0) }

    @Test func ndjsonBodiesAreEncoded() async throws {
        let expected = Array("{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n".utf8)
        for body in [Body.ndjson(items), .ndjson(sequence(items))] {
            let (type, text) = try await sent(body)
            #expect(type == "application/x-ndjson" && text == expected)
        }
        #expect(try await sent(.ndjson([Item]())).text == [])
        let pretty = JSON { encoder, _ in encoder.outputFormatting = .prettyPrinted }
        let text = try await sent(.ndjson([["a": ["x\r\n"]]], by: pretty)).text
        #expect(text.count { $0 == 0x0A } == 1 && text.last == 0x0A && !text.contains(0x0D))
        #expect(
            try JSON().decode([String: [String]].self, from: Data(text), of: ResponseHead(status: .ok)) == [
                "a": ["x\r\n"]
            ])
    }

    @Test func jsonArrayBodiesAreEncoded() async throws {
        for body in [Body.jsonArray(items), .jsonArray(sequence(items))] {
            let (type, text) = try await sent(body)
            #expect(
                type == "application/json" && String(decoding: text, as: UTF8.self) == #"[{"id":1},{"id":2},{"id":3}]"#)
        }
        for body in [Body.jsonArray([Item]()), .jsonArray(sequence([Item]()))] {
            #expect(try await sent(body).text == Array("[]".utf8))
        }
        // More than one chunk.
        let many = (0..<5000).map { Item(id: $0) }
        let text = try await sent(.jsonArray(many)).text
        #expect(try JSON().decode([Item].self, from: text) == many)
    }

    @Test func jsonSequenceBodiesAreEncoded() async throws {
        let expected = Array("\u{1E}{\"id\":1}\n\u{1E}{\"id\":2}\n\u{1E}{\"id\":3}\n".utf8)
        for body in [Body.jsonSequence(items), .jsonSequence(sequence(items))] {
            let (type, text) = try await sent(body)
            #expect(type == "application/json-seq" && text == expected)
        }
    }

    @Test func frameBodiesAreEncoded() async throws {
        let frames: [[UInt8]] = [[1], [], [2, 3]]
        let expected: [UInt8] = [0, 1, 1, 0, 0, 0, 2, 2, 3]
        let prefix = Streams.LengthPrefix.uint16(.bigEndian)
        for body in [Body.frames(frames, lengthPrefix: prefix), .frames(sequence(frames), lengthPrefix: prefix)] {
            let (type, bytes) = try await sent(body)
            #expect(type == "application/octet-stream" && bytes == expected)
        }
        #expect(
            try await sent(.frames(frames, lengthPrefix: .varint, type: "application/x-frames")).type
                == "application/x-frames")
    }

    /// NDJSON that a client sends can be streamed back unchanged.
    @Test func ndjsonRoundTrips() async throws {
        let server = try MockServer { .bytes($0.body).field("Content-Type", $0.field("Content-Type") ?? "") }
        let api = Client(try BaseURL(server.url("/")), session: Session())
        let many = (0..<5000).map { Item(id: $0) }
        var read: [Item] = []
        for try await item in api.stream(.post, "x", .ndjson(many), using: .ndjson(Item.self, limit: .bytes(20))) {
            read.append(item)
        }
        #expect(read == many)
    }

    @Test func streamBodiesAreReplayableIfTheirElementsAre() throws {
        let canReplay = { (body: Body) in
            guard case .raw(let made, _) = body.content else { return false }
            return made.canReplay
        }
        #expect(
            canReplay(.ndjson(items)) && canReplay(.jsonSequence(items))
                && canReplay(.frames([[1]], lengthPrefix: .uint8)))
        #expect(!canReplay(.ndjson(Countdown(left: 3))) && !canReplay(.ndjson(sequence(items))))
        #expect(canReplay(.ndjson(sequence(items), canReplay: true)))
    }

    /// The error has the number of the element, and not its value.
    @Test func elementsThatCannotBeEncodedFailWithTheirNumber() async throws {
        let server = try MockServer { _ in .status(204) }
        let api = Client(try BaseURL(server.url("/")), session: Session())
        let bodies: [(Body, String)] = [
            (.ndjson([1.5, .infinity]), "Element 2: Encoding failed: the Double cannot be encoded."),
            (.jsonSequence(sequence([1.5, .infinity])), "Element 2: Encoding failed: the Double cannot be encoded."),
            (
                .frames([[], [UInt8](repeating: 0, count: 256)], lengthPrefix: .uint8),
                "Frame 2 has 256 bytes, more than its length prefix can represent."
            ),
        ]
        for (body, message) in bodies {
            let error = try await networkError { try await api.post("x", body) }
            #expect(error.kind == .bodyFailed)
            let cause = error.cause as? NetworkError
            #expect(cause?.kind == .encodingFailed && cause?.message == message)
        }
        let error = try await networkError { try await api.post("x", .ndjson(sequence([1], end: Odd()))) }
        #expect(error.kind == .bodyFailed && error.cause is Odd)
    }

    // MARK: Sending and receiving at the same time

    /// The client sends each line after the response to the previous line.
    @Test func duplexWorksOverHTTP2() async throws {
        let scene = try HTTP2Scene { _ in
            .now.head(200, [("content-type", "application/x-ndjson")])
                .reading(bytes: 9).body("{\"id\":10}\n").reading(bytes: 18).body("{\"id\":20}\n").reading()
                .body("{\"id\":30}\n", endStream: true)
        }
        try await talk(to: scene.server.url("/"), scene.session)
        #expect(scene.server.violations.isEmpty)
    }

    /// The response begins and continues while the body is being sent.
    @Test func duplexWorksOverHTTP1() async throws {
        let (gate, server) = (Gate(), try MockServer())
        let answer = MockResponse.status(
            200, [("Content-Type", "application/x-ndjson")], body: Array("{\"id\":10}\n{\"id\":20}\n".utf8))
        server.on("POST", "/", answer.chunked(size: 10).fault(.stall(gate), at: .body(10)), reading: .afterResponse)
        let session = Session { $0.http.expectContinue = .never }
        let api = Client(try BaseURL(server.url("/")), session: session)
        let (values, lines) = AsyncStream<Item>.makeStream()
        lines.yield(Item(id: 1))
        var answers: [Int] = []
        for try await item in api.stream(.post, "", .ndjson(values), using: .ndjson(Item.self)) {
            answers.append(item.id)
            // The response has begun, and the body has not ended.
            if answers.count == 1 { gate.open() }
            if answers.count == 2 { lines.finish() }
        }
        #expect(answers == [10, 20])
    }

    private func talk(to url: String, _ session: Session) async throws {
        let api = Client(try BaseURL(url), session: session)
        let (values, lines) = AsyncStream<Item>.makeStream()
        lines.yield(Item(id: 1))
        var answers: [Int] = []
        for try await item in api.stream(.post, "", .ndjson(values), using: .ndjson(Item.self)) {
            answers.append(item.id)
            if item.id == 10 { lines.yield(Item(id: 2)) }
            if item.id == 20 { lines.finish() }
        }
        #expect(answers == [10, 20, 30])
    }
}
