// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// Streams written by Python with flushes at random positions, and NDJSON read by Python.
@Suite(.enabledIfInstalled(.python3), .peer(.python3), .timeLimit(.minutes(5)))
struct PythonStreamTests {
    private struct Record: Codable, Equatable, Sendable {
        var number: Int
        var text: String

        init(_ number: Int) {
            self.number = number
            text = String(repeating: "é漢👴🏻 \n\u{1E} ", count: number % 4)
        }
    }

    private struct Reading: Decodable {
        var type: String
        var numbers: [Int]
    }

    private let api: JSONClient

    init() throws { api = try PythonStreamServer.shared().client() }

    @Test(arguments: 1...4) func ndjsonStreamIsRead(_ seed: Int) async throws {
        var read: [Record] = []
        for try await record in api.stream("ndjson", query: ["seed": seed], using: .ndjson(Record.self)) {
            read.append(record)
        }
        #expect(read == (0..<200).map(Record.init))
    }

    @Test(arguments: 1...4) func jsonSequenceStreamIsRead(_ seed: Int) async throws {
        var read: [Record] = []
        for try await record in api.stream("json-seq", query: ["seed": seed], using: .jsonSequence(Record.self)) {
            read.append(record)
        }
        #expect(read == (0..<200).map(Record.init))
    }

    /// An event source joins several connections, each of which breaks off within an event.
    @Test(arguments: ["lf", "cr", "crlf"]) func eventSourceReconnectsWithinEvents(_ end: String) async throws {
        var numbers: [Int] = []
        for try await event in api.eventSource("events", query: ["count": 23, "end": end]) {
            let record = try event.decode(Record.self)
            numbers.append(record.number)
            #expect(event.type == "tick" && event.id == "\(record.number)" && record.text == "é漢👴🏻 \(record.number)")
        }
        #expect(numbers == Array(1...23))
    }

    @Test func ndjsonBodyIsReadByPython() async throws {
        let reading: Reading = try await api.post("x", .ndjson((0..<500).map(Record.init)))
        #expect(reading.numbers == Array(0..<500) && reading.type == "application/x-ndjson")
    }
}
