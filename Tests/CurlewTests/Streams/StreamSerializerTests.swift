// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// All stream serializers with a client: Accept fields, accepted types, and elements in chunks of any size.
@Suite(.timeLimit(.minutes(5)))
struct StreamSerializerTests {
    private func read<S: StreamSerializer>(
        _ serializer: S, _ type: String?, _ body: String, accept: String?, _ location: SourceLocation = #_sourceLocation
    ) async throws -> [S.Element] {
        let fields = type.map { [("Content-Type", $0)] } ?? []
        let server = try MockServer { _ in .status(200, fields, body: Array(body.utf8)).chunked(size: 3) }
        let api = Client(try BaseURL(server.url("/")), session: Session())
        var elements: [S.Element] = []
        for try await element in api.stream("x", using: serializer) { elements.append(element) }
        #expect(server.requests.first?.field("Accept") == accept, sourceLocation: location)
        return elements
    }

    @Test func linesAndFramesAreReadByAClient() async throws {
        let accept = "text/*, */*; q=0.1"
        #expect(try await read(Streams.Lines.lines, "text/plain", "a\r\nb", accept: accept) == ["a", "b"])
        #expect(try await read(Streams.Lines(omittingEmpty: true), nil, "\n\na", accept: accept) == ["a"])
        let frames = try await read(Streams.Frames(lengthPrefix: .uint8), nil, "\u{2}ab\u{0}", accept: "*/*")
        #expect(frames == [Data("ab".utf8), Data()])
    }

    @Test func ndjsonAndJSONSequencesAreReadByAClient() async throws {
        let accept =
            "application/x-ndjson, application/ndjson, application/jsonl, application/x-jsonlines, "
            + "application/stream+json, application/json; q=0.5, application/x-jsonl; q=0.1, "
            + "application/json-lines; q=0.1, application/jsonlines; q=0.1, text/x-ndjson; q=0.1, text/plain; q=0.1"
        for type in ["application/x-ndjson", "application/json", "text/plain; charset=utf-8"] {
            #expect(try await read(Streams.NDJSON(Int.self), type, "1\n22\n333", accept: accept) == [1, 22, 333])
        }
        let sequence = Streams.JSONSequence(Int.self)
        for type in ["application/json-seq", "application/geo+json-seq"] {
            let values = try await read(sequence, type, "\u{1E}1\n\u{1E}22\n", accept: "application/json-seq")
            #expect(values == [1, 22])
        }
        let error = try await networkError { try await read(sequence, "application/json", "1", accept: nil) }
        #expect(error.kind == .unacceptableContentType)
    }

    @Test func serverSentEventsAreReadByAClient() async throws {
        let (type, text) = ("text/event-stream", "data:1\n\ndata:2\n\n")
        let standard: Streams.ServerSentEvents = .serverSentEvents
        #expect(try await read(standard, type, text, accept: type).map(\.data) == ["1", "2"])
        #expect(try await read(Streams.ServerSentValues(Int.self), type, text, accept: type) == [1, 2])
    }

    /// The end marker ends the stream, although the response does not end.
    @Test func streamEndsAtTheEndMarker() async throws {
        let gate = Gate()
        defer { gate.open() }
        let text = "data:1\n\ndata:[DONE]\n\n"
        let server = try MockServer { _ in
            .status(200, [("Content-Type", "text/event-stream")], body: Array((text + "data:2\n\n").utf8))
                .fault(.stall(gate), at: .body(text.utf8.count))
        }
        let api = Client(try BaseURL(server.url("/")), session: Session())
        var values: [Int] = []
        for try await value in api.stream("", using: .serverSentEvents(of: Int.self, until: "[DONE]")) {
            values.append(value)
        }
        #expect(values == [1])
    }

    /// A response with a wrong content type fails without waiting for its body.
    @Test func unacceptableContentTypeFailsBeforeTheBody() async throws {
        let gate = Gate()
        defer { gate.open() }
        let server = try MockServer { _ in
            .status(200, [("Content-Type", "text/html")], body: [1]).fault(.stall(gate), at: .body(0))
        }
        let api = Client(try BaseURL(server.url("/")), session: Session())
        let error = try await networkError {
            for try await _ in api.stream("", using: .serverSentEvents) {}
        }
        #expect(error.kind == .unacceptableContentType)
    }

    /// A client's stream returns the elements before a malformed one, then throws the same error on each call.
    @Test func elementsBeforeAnErrorAreReturned() async throws {
        let server = try MockServer { _ in
            .status(200, [("Content-Type", "application/json")], body: Array("1\n2\nx\n".utf8))
        }
        let api = Client(try BaseURL(server.url("/")), session: Session())
        var iterator = api.stream("x", using: .ndjson(Int.self)).makeAsyncIterator()
        #expect(try await iterator.next() == 1)
        #expect(try await iterator.next() == 2)
        for _ in 0..<2 {
            let error = try await networkError { try await iterator.next() }
            #expect(error.kind == .decodingFailed && error.body == Array("x".utf8) && error.request != nil)
            #expect(error.message.hasPrefix("Line 3: Decoding Int failed") && error.response?.status == .ok)
        }
    }
}
