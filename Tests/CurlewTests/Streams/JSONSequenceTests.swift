// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

/// JSON text sequences (RFC 7464): valid and malformed sequences, and the completion of elements.
struct JSONSequenceTests {
    private func outcome(_ text: String, _ malformed: Streams.MalformedElements = .fail) -> Outcome {
        let text = text.replacing("§", with: "\u{1E}")
        return Streams.JSONSequence(JSONValue.self, malformed: malformed).outcome(ofAnyCutting: text)
    }

    private func values(_ values: JSONValue...) -> [String] { values.map { String(reflecting: $0) } }

    @Test func validSequencesAreRead() {
        let mixed = outcome("§{\"a\":[1,2]}\n§\"x\\\"\\n]\"\n§1\n§null\n§[\n {\"b\": \"}\"}\n]\n")
        #expect(mixed == Outcome(elements: values(["a": [1, 2]], "x\"\n]", 1, nil, [["b": "}"]])))
        #expect(outcome("") == Outcome() && outcome("§§§\n§") == Outcome(), "consecutive RS are ignored (§2.1)")
        #expect(outcome("§1\r\n§ \t2 \n\n").elements == values(1, 2))
    }

    /// Objects, arrays and strings are self-delimiting; numbers and literals may be truncated (§2.4).
    @Test func truncatedElementsFailOrAreSkipped() {
        #expect(outcome("§{}§[]§\"a\"") == Outcome(elements: values([:], [], "a")))
        for text in ["1", "12", "true", "null", "false", "-0.5e3"] {
            #expect(outcome("§{}\n§\(text)").elements == values([:]), "\(text)")
            #expect(outcome("§\(text)§{}\n").failure?.contains("Element 1 may have been cut") == true, "\(text)")
            #expect(outcome("§\(text)§{}\n", .skip) == Outcome(elements: values([:])), "\(text)")
            #expect(outcome("§\(text) §{}\n").elements.count == 2, "\(text), delimited")
        }
    }

    @Test func malformedElementsFailOrAreSkipped() {
        for text in [
            "{\"a\":", "{\"a\":\n 1", "\"abc", "[1,\n2", "tru\n", "}\n", "{\"a\":\"\u{1}\"}\n", "1 2\n", "]]\n",
        ] {
            let skipped = outcome("§1\n§\(text)§2\n", .skip)
            #expect(skipped == Outcome(elements: values(1, 2)), "\(text.debugDescription)")
            let failed = outcome("§1\n§\(text)§2\n")
            #expect(failed.elements == values(1), "\(text.debugDescription)")
            #expect(failed.failure?.hasPrefix("decoding failed: Element 2: Decoding JSONValue failed") == true)
        }
        let start = outcome(" \n x\n§1\n")
        #expect(start.failure?.hasPrefix("decoding failed: Element 1 does not begin with RS") == true)
        #expect(outcome("{}\n§1\n", .skip).elements == values(1))
        let more = outcome("§1\n{}\n§2\n")
        #expect(more.elements == values(1))
        #expect(more.failure == "decoding failed: Element 2 continues after the LF that ends it.")
        #expect(outcome("§1\n{}\n§2\n", .skip).elements == values(1, 2))
    }

    /// An element is returned at its LF, before the next element arrives.
    @Test func elementIsReturnedAtItsLineFeed() throws {
        let serializer = Streams.JSONSequence(JSONValue.self)
        var state = serializer.begin(ResponseHead(status: .ok))
        #expect(try serializer.decode(ByteChunk(Array("\u{1E}{\"a\":\n1}".utf8)), &state).isEmpty)
        #expect(try serializer.decode(ByteChunk(Array("\n".utf8)), &state) == [["a": 1]])
        #expect(try serializer.decode(nil, &state).isEmpty)
    }

    @Test func elementSizesAreLimited() {
        let serializer = Streams.JSONSequence(JSONValue.self, malformed: .skip, limit: 4)
        #expect(serializer.outcome(ofAnyCutting: "\u{1E}[12]\n\u{1E}  1234\n").elements == values([12], 1234))
        for text in ["\u{1E}1\n\u{1E}[123]\n\u{1E}1\n", "\u{1E}1\n\u{1E}\"abcdefgh"] {
            let outcome = serializer.outcome(ofAnyCutting: text)
            #expect(outcome.elements == values(1))
            #expect(outcome.failure == "body too large: Element 2 of the stream has more than 4 bytes.")
        }
    }

    @Test(arguments: 0..<60 as Range<UInt64>) func randomSequencesRoundTripForEverySplit(_ seed: UInt64) throws {
        var chance = SeededChance(seed)
        let values = (0..<Int.random(in: 0...8, using: &chance)).map { _ in JSONValue.randomObject(&chance, depth: 3) }
        let pretty = JSON { encoder, _ in encoder.outputFormatting = .prettyPrinted }
        let bytes = try values.enumerated().flatMap { index, value in
            try (index.isMultiple(of: 2) ? pretty : JSON()).record(value, index)
        }
        let outcome = Streams.JSONSequence(JSONValue.self).outcome(ofAnyCutting: bytes, seed: seed)
        #expect(outcome == Outcome(elements: values.map { String(reflecting: $0) }))
    }

    /// Random input yields the same outcome for every split.
    @Test(arguments: 0..<200 as Range<UInt64>) func randomInputHasTheSameOutcomeForEverySplit(_ seed: UInt64) {
        var chance = SeededChance(seed)
        let pieces = ["\u{1E}", "\n", "{", "}", "[", "]", "\"", "\\", "1", "null", " ", ",", "a", ":"].map {
            Array($0.utf8)
        }
        let bytes = [UInt8].random(of: pieces, upTo: 60, by: &chance)
        for malformed in [Streams.MalformedElements.fail, .skip] {
            let serializer = Streams.JSONSequence(JSONValue.self, malformed: malformed)
            let outcome = serializer.outcome(ofAnyCutting: bytes, seed: seed)
            #expect(malformed == .fail || outcome.failure == nil)
        }
    }
}
