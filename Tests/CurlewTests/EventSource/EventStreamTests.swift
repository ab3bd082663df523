// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

/// The parser of `text/event-stream` (HTML §9.2.6).
struct EventStreamTests {
    private func events(
        _ bytes: [UInt8], seed: UInt64 = 1, _ location: SourceLocation = #_sourceLocation
    ) -> [ServerSentEvent] {
        let whole = Streams.ServerSentEvents().outcome(ofAnyCutting: bytes, seed: seed, location)
        var parser = EventStreamParser(limit: .mebibytes(1))
        var events: [ServerSentEvent] = []
        do { try parser.parse(bytes.span, into: &events) } catch { Issue.record(error) }
        #expect(whole.elements.count == events.count, sourceLocation: location)
        return events
    }

    private func events(_ text: String, _ location: SourceLocation = #_sourceLocation) -> [ServerSentEvent] {
        events(Array(text.utf8), seed: 1, location)
    }

    private func data(_ text: String, _ location: SourceLocation = #_sourceLocation) -> [String] {
        events(text, location).map(\.data)
    }

    private func parsed(_ text: String) throws -> EventStreamParser {
        var parser = EventStreamParser(limit: .mebibytes(1))
        var events: [ServerSentEvent] = []
        for byte in text.utf8 { try parser.parse([byte].span, into: &events) }
        return parser
    }

    // MARK: The examples of HTML §9.2.6

    @Test func severalDataLinesAreJoined() {
        #expect(events("data: YHOO\ndata: +2\ndata: 10\n\n") == [ServerSentEvent(data: "YHOO\n+2\n10")])
    }

    @Test func fourBlocksExampleIsParsed() {
        let text = ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n"
        #expect(
            events(text) == [
                ServerSentEvent(data: "first event", id: "1"), ServerSentEvent(data: "second event"),
                ServerSentEvent(data: " third event"),
            ])
        #expect(data(String(text.dropLast())) == ["first event", "second event"], "an incomplete event is dropped")
    }

    @Test func emptyDataIsDelivered() {
        #expect(data("data\n\ndata\ndata\n\ndata:\n") == ["", "\n"])
    }

    @Test func oneSpaceAfterTheColonIsIgnored() {
        #expect(data("data:test\n\ndata: test\n\n") == ["test", "test"])
    }

    // MARK: The edge cases of web-platform-tests (eventsource/format-*)

    @Test func byteOrderMarkIsIgnoredOnce() {
        #expect(data("\u{FEFF}data:1\n\n\u{FEFF}data:2\n\ndata:3\n\n") == ["1", "3"])
        #expect(data("\u{FEFF}\u{FEFF}data:1\n\ndata:2\n\ndata:3\n\n") == ["2", "3"])
    }

    @Test func commentsAreIgnored() {
        let long = String(repeating: "x", count: 2 * 1024)
        let text = "data:1\r:\0\n:\r\ndata:2\n:\(long)\rdata:3\n:data:fail\r:\(long)\ndata:4\n\n"
        #expect(data(text) == ["1\n2\n3\n4"])
    }

    @Test func fieldsAreParsedExactly() {
        let text =
            "data:\0\ndata:  2\rData:1\ndata\0:2\ndata:1\r\0data:4\nda-ta:3\rdata_5\ndata:3\rdata:\r\n data:32\ndata:4\n\n"
        #expect(data(text) == ["\0\n 2\n1\n3\n\n4"])
        #expect(
            data("data:test\n data\ndata\nfoobar:xxx\njustsometext\n:thisisacommentyay\ndata:test\n\n") == [
                "test\n\ntest"
            ])
        #expect(data("data:\ttest\rdata: \ndata:test\n\n") == ["\ttest\n\ntest"])
        #expect(data("datax:1\nretr:2\neventt:x\ndat:1\n\n") == [])
        #expect(data("data:\0\n\n\n\n") == ["\0"])
    }

    @Test func lineEndsAreRecognised() {
        #expect(data("data:test\r\ndata\ndata:test\r\n\r\n") == ["test\n\ntest"])
        #expect(data("data:1\r\rdata:2\r\n\r\ndata:3\n\ndata:4\n\rdata:5\r\n\n") == ["1", "2", "3", "4", "5"])
        #expect(data("data:1\u{85}\u{2028}\u{B}\u{C}\n\n") == ["1\u{85}\u{2028}\u{B}\u{C}"])
    }

    @Test func eventTypesAreParsed() {
        let read = events("event:test\ndata:x\n\ndata:x\n\nevent: \ndata:y\n\nevent:a\nevent:b\ndata\n\n")
        #expect(read.map(\.type) == ["test", "message", "message", "b"])
        #expect(
            events("event:lost\n\ndata:x\n\n").map(\.type) == ["message"], "without data, the type is dropped")
    }

    @Test func eventIDsAreKept() throws {
        let read = events("id: 1\ndata:a\n\ndata:b\n\nid:a\0b\ndata:c\n\nid\ndata:d\n\nid: … \ndata:e\n\n")
        #expect(read.map(\.id) == ["1", "1", "1", "", "… "])
        #expect(try parsed("id:5\n\n").lastEventID == "5", "the ID of a block without data is kept")
        #expect(try parsed("id:5\n\nid:6\ndata:x\n").lastEventID == "5", "the ID of an incomplete block is dropped")
        #expect(try parsed("id:5\n\nid:6\n\r").lastEventID == "6")
    }

    @Test func eventIDLengthIsLimited() throws {
        let most = String(repeating: "a", count: 4096)
        #expect(try parsed("id:\(most)\n\n").lastEventID == most)
        #expect(try parsed("id:5\n\nid:\(most)b\ndata:x\n\n").lastEventID == "5")
        #expect(events("id:5\nid:\(most)b\ndata:x\n\n").map(\.id) == ["5"])
    }

    @Test func reconnectionTimesAreParsed() throws {
        #expect(try parsed("retry:3000\nretry:1000x\n").reconnectionTime == .seconds(3))
        #expect(try parsed("retry:03000\n").reconnectionTime == .seconds(3), "valid as soon as its line is complete")
        for text in ["retry\n", "retry:\n", "retry: -1\n", "retry:1.5\n", "retry:１\n", "retry:  1\n", "retry:1"] {
            #expect(try parsed(text).reconnectionTime == nil, "\(text)")
        }
        #expect(try parsed("retry:\(String(repeating: "9", count: 400))\n").reconnectionTime == nil)
        #expect(try parsed("retry:0\n").reconnectionTime == .zero)
        let read = events("retry:10\ndata:a\n\ndata:b\n\nretry:20\n\ndata:c\n\n")
        #expect(read.map(\.retry) == [.milliseconds(10), nil, nil])
    }

    @Test func invalidUTF8IsReplaced() {
        let bytes = Array("data:a".utf8) + [0xFF, 0x0A] + Array("data:".utf8) + [0xE2, 0x82, 0x0A, 0x0A]
        #expect(events(bytes) == [ServerSentEvent(data: "a\u{FFFD}\n\u{FFFD}")])
    }

    // MARK: Limits, decoding

    @Test func lineAndDataLengthsAreLimited() {
        let serializer = Streams.ServerSentEvents.serverSentEvents(limit: 10)
        #expect(serializer.outcome(ofAnyCutting: "data:12345\n:123456789\r\ndata:1234\n\n").failure == nil)
        for text in ["data:123456\n", ":1234567890", "data:123456\r\n\r\n"] {
            let outcome = serializer.outcome(ofAnyCutting: "data\n\n" + text)
            #expect(outcome.elements.count == 1)
            #expect(outcome.failure == "body too large: A line of the stream has more than 10 bytes.", "\(text)")
        }
        let sum = serializer.outcome(ofAnyCutting: "data\n\ndata:12345\ndata:12345\n\n")
        #expect(sum.elements.count == 1)
        #expect(sum.failure == "body too large: The data of an event of the stream has more than 10 bytes.")
    }

    private struct Price: Decodable, Equatable, Sendable { var cents: Int }

    @Test func dataOfAnEventIsDecoded() throws {
        let event = ServerSentEvent(type: "price", data: "{\"cents\":\n 7}")
        #expect(try event.decode(Price.self) == Price(cents: 7))
        let error = #expect(throws: NetworkError.self) {
            try ServerSentEvent(type: "a\nb", data: "{}").decode(Price.self)
        }
        #expect(error?.message == "Event “a\\nb”: Decoding Price failed (column 1): nothing for the key “cents”.")
        #expect(error?.body == Array("{}".utf8) && error?.kind == .decodingFailed)
        #expect(ServerSentEvent(data: "secret").description == "message (6 bytes)")
        #expect(!String(reflecting: ServerSentEvent(data: "secret")).contains("secret"))
    }

    @Test func valuesAreDecodedFromData() {
        let serializer = Streams.ServerSentValues(Price.self)
        let outcome = serializer.outcome(
            ofAnyCutting: "data:{\"cents\":1}\n\nevent:x\ndata:{\"cents\":\ndata:2}\n\ndata:3\n\n")
        #expect(outcome.elements == [1, 2].map { String(reflecting: Price(cents: $0)) })
        #expect(outcome.failure?.hasPrefix("decoding failed: Event “message”: Decoding Price failed") == true)
        let long = Streams.ServerSentValues(Price.self, limit: 20).outcome(
            ofAnyCutting: "data:{\"cents\":1}\n\n:\(String(repeating: " ", count: 20))")
        #expect(long.elements.count == 1 && long.failure?.hasPrefix("body too large") == true)
    }

    // MARK: Comparison with a reference parser

    /// The steps of §9.2.6 as they are written there, for the whole text at once.
    private func reference(_ bytes: [UInt8]) -> [ServerSentEvent] {
        var text = Array(String(decoding: bytes, as: UTF8.self).unicodeScalars)
        if text.first == "\u{FEFF}" { text.removeFirst() }
        var lines: [[Unicode.Scalar]] = [[]]
        for (index, scalar) in text.enumerated() {
            if scalar == "\n", index > 0, text[index - 1] == "\r" { continue }
            if scalar == "\n" || scalar == "\r" { lines.append([]) } else { lines[lines.count - 1].append(scalar) }
        }
        var events: [ServerSentEvent] = []
        var (data, type, id): (String, String, String) = ("", "", "")
        var retry: Duration?
        for line in lines.dropLast() {
            if line.isEmpty {
                if !data.isEmpty {
                    data.unicodeScalars.removeLast()
                    events.append(
                        ServerSentEvent(type: type.isEmpty ? "message" : type, data: data, id: id, retry: retry))
                }
                (data, type, retry) = ("", "", nil)
                continue
            }
            let colon = line.firstIndex(of: ":") ?? line.count
            var value = line[min(colon + 1, line.count)...]
            if value.first == " " { value.removeFirst() }
            var valueText = ""
            valueText.unicodeScalars.append(contentsOf: value)
            var name = ""
            name.unicodeScalars.append(contentsOf: line[..<colon])
            if name.unicodeScalars.elementsEqual("data".unicodeScalars) {
                data.unicodeScalars.append(contentsOf: value)
                data.unicodeScalars.append("\n")
            }
            if name.unicodeScalars.elementsEqual("event".unicodeScalars) { type = valueText }
            if name.unicodeScalars.elementsEqual("id".unicodeScalars), !value.contains("\0") { id = valueText }
            if name.unicodeScalars.elementsEqual("retry".unicodeScalars), let first = value.first,
                ("0"..."9").contains(first), let number = UInt32(valueText)
            {
                retry = .milliseconds(number)
            }
        }
        return events
    }

    @Test func descriptionsHideData() {
        var dumped = ""
        dump(ServerSentEvent(type: "tick", data: "secret", id: "7", retry: nil), to: &dumped)
        #expect(dumped.contains("tick (6 bytes)") && !dumped.contains("secret"))
    }

    @Test func leadingDotSerializersAcceptEndMarkerAndLimit() throws {
        func read<S: StreamSerializer>(_ serializer: S, _ text: String) throws -> [S.Element] {
            var state = try serializer.begin(ResponseHead(status: .ok))
            return try serializer.decode(ByteChunk(Array(text.utf8)), &state) + serializer.decode(nil, &state)
        }
        let text = "data:1\n\ndata:2\n\ndata:end\n\ndata:x\n\n"
        #expect(try read(.serverSentEvents(of: Int.self, until: "end"), text) == [1, 2])
        #expect(throws: NetworkError.self) { try read(.serverSentEvents(of: Int.self), text) }
        #expect(try read(.serverSentEvents(limit: 8), text).count == 4)
        let error = #expect(throws: NetworkError.self) { try read(.serverSentEvents(limit: 3), text) }
        #expect(error?.kind == .bodyTooLarge)
    }

    @Test(arguments: 0..<300 as Range<UInt64>) func randomStreamsEqualTheReferenceParser(_ seed: UInt64) {
        var chance = SeededChance(seed)
        let pieces =
            ["data", "data:", "id", "id: ", "event:", "retry:", "12", ":", " ", "é", "\0", "x", "\u{FEFF}"].map {
                Array($0.utf8)
            }
            + [[0x0A], [0x0A], [0x0A], [0x0D], [0x0D, 0x0A], [0xFF], [0xE2, 0x82]]
        let bytes = [UInt8].random(of: pieces, upTo: 60, by: &chance)
        #expect(events(bytes, seed: seed) == reference(bytes))
    }
}
