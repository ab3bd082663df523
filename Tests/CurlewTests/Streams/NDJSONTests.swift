// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

struct NDJSONTests {
    private struct Item: Codable, Equatable { var id: Int }

    private func values<T: Decodable & Sendable>(_ text: String, of type: T.Type) -> Outcome {
        Streams.NDJSON(type).outcome(ofAnyCutting: text)
    }

    private func items(_ ids: Int...) -> [String] { ids.map { String(reflecting: Item(id: $0)) } }

    @Test func linesAreDecoded() {
        #expect(values("{\"id\":1}\n{ \"id\" : 2 }\r\n{\"id\":3}", of: Item.self).elements == items(1, 2, 3))
        #expect(
            values("\u{FEFF}\n \t\r\n\n{\"id\":1}\n\n", of: Item.self).elements == items(1), "blank lines are skipped")
        #expect(values("", of: Item.self) == Outcome() && values("\u{FEFF}", of: Item.self) == Outcome())
        #expect(values("1\nnull\n3\n", of: Int?.self).elements == ["Optional(1)", "nil", "Optional(3)"])
        let anything = values("[1]\n\"a\\nb\"\n", of: JSONValue.self)
        #expect(anything.elements == [JSONValue.array([1]), "a\nb"].map { String(reflecting: $0) })
    }

    /// Elements before a malformed line are returned; the error has the number of the line and the location in it.
    @Test func errorsNameTheLine() {
        let bad = values("{\"id\":1}\n\n{\"id\":\"x\"}\n{\"id\":4}\n", of: Item.self)
        #expect(bad.elements == items(1))
        #expect(
            bad.failure
                == "decoding failed: Line 3: Decoding Item failed at id (column 7): expected Int, found a string.")
        let cut = values("{\"id\":1}\n{\"id\":", of: Item.self)
        #expect(
            cut.elements == items(1) && cut.failure?.hasPrefix("decoding failed: Line 2: Decoding Item failed") == true)
        let long = Streams.NDJSON(Item.self, limit: 10).outcome(
            ofAnyCutting: "{\"id\":1}\n{\"id\":12345}\n{\"id\":3}\n")
        #expect(
            long.elements == items(1) && long.failure == "body too large: Line 2 of the stream has more than 10 bytes.")
    }

    @Test func errorBodyIsTheLine() throws {
        let serializer = Streams.NDJSON(Item.self)
        var state = serializer.begin(ResponseHead(status: .ok))
        let chunk = ByteChunk(Array("{\"id\":1}\n{\"no\":2}\n".utf8))
        let error = #expect(throws: NetworkError.self) { try serializer.decode(chunk, &state) }
        #expect(error.map { String(decoding: $0.body, as: UTF8.self) } == "{\"no\":2}")
        #expect(
            error?.message == "Line 2: Decoding Item failed (column 1): nothing for the key “id”."
                && error?.cause is DecodingError
        )
        #expect(error?.hint == "Make the property Optional if the server may leave it out.")
    }

    @Test func customFormatDecodesLines() {
        let format = JSON { _, decoder in decoder.dateDecodingStrategy = .secondsSince1970 }
        let outcome = Streams.NDJSON(Date.self, format).outcome(ofAnyCutting: "0\n1\n")
        #expect(outcome.elements == [0, 1].map { String(reflecting: Date(timeIntervalSince1970: $0)) })
    }

    @Test(arguments: 0..<60 as Range<UInt64>) func randomLinesRoundTripForEverySplit(_ seed: UInt64) throws {
        var chance = SeededChance(seed)
        let values = (0..<Int.random(in: 0...12, using: &chance)).map { _ in
            JSONValue.randomObject(&chance, depth: 3)
        }
        let ends = ["\n", "\r\n", "\n\n", " \n"]
        let text = try values.map { value in
            String(decoding: try JSON().encode(value), as: UTF8.self) + (ends.randomElement(using: &chance) ?? "\n")
        }.joined()
        let outcome = Streams.NDJSON(JSONValue.self).outcome(ofAnyCutting: Array(text.utf8), seed: seed)
        #expect(outcome == Outcome(elements: values.map { String(reflecting: $0) }))
    }
}
