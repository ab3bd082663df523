// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

// Snippets of the doc comments about streams, word for word, and a test of a custom framing.

private struct User: Decodable, Sendable { var name: String }
private struct Entry: Decodable, Sendable {}
private struct Price: Decodable, Sendable {}
private struct TooLong: Error {}

// Serializers/StreamSerializer.swift
struct Records: StreamSerializer {  // NUL ends each, as with `find -print0`
    func begin(_ head: ResponseHead) -> [UInt8] { [] }

    func decode(_ chunk: ByteChunk?, _ rest: inout [UInt8]) throws -> [String] {
        guard let chunk else { return [] }
        var records = (rest + chunk).split(separator: 0, omittingEmptySubsequences: false)
        rest = Array(records.removeLast())
        guard rest.count <= 65_536 else { throw TooLong() }
        return records.map { String(decoding: $0, as: UTF8.self) }
    }
}

// Streams/
private func snippetsOfDecoders(_ api: JSONClient, _ prompt: [String: String]) async throws {
    for try await line in api.stream("log.txt", using: .lines) { print(line) }
    for try await user in api.stream("users", using: .ndjson(User.self)) { print(user.name) }
    for try await entry in api.stream("journal", using: .jsonSequence(Entry.self)) { print(entry) }
    for try await frame in api.stream("feed", using: .frames(lengthPrefix: .varint)) { print(frame.count) }
    for try await event in api.stream(.post, "chat", .json(prompt), using: .serverSentEvents) {
        print(event.type, event.data)
    }
    for try await price in api.stream("prices", using: .serverSentEvents(of: Price.self)) { print(price) }
}

// Streams/DecodedSequence.swift
private func snippetOfDecodedBytes(_ transfer: Transfer<Data>) async throws {
    for try await line in transfer.bytes.decoded(by: .lines) { print(line) }
}

// Client/Reconnection.swift, Client/EventSource.swift
private func snippetsOfEventSources(_ api: JSONClient) async throws {
    let patient = EventSource.Reconnection(delay: .seconds(1), longest: .seconds(60), attempts: 10)
    for try await event in api.eventSource("feed", reconnection: patient) { print(event.data) }
    for try await event in api.eventSource("prices") {
        let price = try event.decode(Price.self)
        print(event.id, price)
    }
    for try await event in api.eventSource(.post, "search", .json(["words": "snow"])) { print(event.data) }
}

// Client/Body+Streams.swift
private func snippetOfStreamedBody(_ api: JSONClient, _ operations: [[String: Int]]) async throws {
    try await api.post("_bulk", .ndjson(operations))
}

private func snippetOfJSONArrayBody(_ api: JSONClient, _ rows: [[String: Int]]) async throws {
    try await api.post("import", .jsonArray(rows))
}

@Suite(.timeLimit(.minutes(5)))
struct FramerTests {
    @Test func customFramingIsRead() async throws {
        let server = try MockServer { _ in .bytes(Array("one\0two\0\0three".utf8)).chunked(size: 2) }
        let api = Client(try BaseURL(server.url("/")), session: Session())
        var records: [String] = []
        for try await record in api.stream("x", using: Records()) { records.append(record) }
        #expect(records == ["one", "two", ""])
    }

    @Test func customFramingErrorIsThrown() async throws {
        let server = try MockServer { _ in .bytes([UInt8](repeating: 7, count: 100_000)) }
        let api = Client(try BaseURL(server.url("/")), session: Session())
        let error = await #expect(throws: NetworkError.self) {
            for try await _ in api.stream("x", using: Records()) {}
        }
        #expect(error?.kind == .decodingFailed && error?.cause is TooLong)
    }

    /// Event sources are available on every `APIClient`.
    @Test func eventSourceWorksWithAnyAPIClient() async throws {
        let server = try MockServer()
        let events = MockResponse.status(200, [("Content-Type", "text/event-stream")], body: Array("data:a\n\n".utf8))
        server.on("GET", "/x", inOrder: [events, .status(204)])
        let api: any APIClient = Client(try BaseURL(server.url("/")), session: Session())
        var data: [String] = []
        for try await event in api.eventSource("x", reconnection: EventSource.Reconnection(delay: .zero)) {
            data.append(event.data)
        }
        #expect(data == ["a"])
    }
}
