// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

@Suite("RS-22: checks against malicious property lists", .timeLimit(.minutes(5)))
struct PropertyListCheckTests {
    private typealias Failure = PropertyListCheck.Failure

    private static func failure(_ bytes: some Sequence<UInt8>) -> PropertyListCheck.Failure? {
        do throws(PropertyListCheck.Failure) {
            try PropertyListCheck.check(Array(bytes))
            return nil
        } catch { return error }
    }

    private static func nested(_ depth: Int, _ inmost: String = "") -> String {
        String(repeating: "<array>", count: depth) + inmost + String(repeating: "</array>", count: depth)
    }

    static let texts: [(String, PropertyListCheck.Failure?)] = [
        ("<plist><array/></plist>", nil), ("<array></array>", nil), ("\u{FEFF} \n<true/>", nil),
        ("<true/></x></y>", nil),
        ("<?xml version=\"1.0\"?><!DOCTYPE plist PUBLIC \"a\" \"b\"><plist><string>a</string></plist>", nil),
        ("<!-- <array> --><plist><!-- </plist> --><string><![CDATA[</string>]]></string></plist>", nil),
        ("<array>" + String(repeating: "<array/><true /><string>x</string>", count: 1000) + "</array>", nil),
        (nested(256), nil), (nested(257), .tooDeep), (nested(10_000), .tooDeep),
        (String(repeating: "<array>", count: 10_000), .tooDeep),
        (String(repeating: "<dict><key>a</key>", count: 10_000), .tooDeep),
        (String(repeating: "<plist>", count: 10_000), .tooDeep),
        // End tags inside comments, instructions and CDATA sections do not reduce the depth.
        (String(repeating: "<array><!-- </array> -->", count: 300), .tooDeep),
        (String(repeating: "<array><?a </array> ?>", count: 300), .tooDeep),
        (String(repeating: "<array><![CDATA[</array>]]>", count: 300), .tooDeep),
        ("<array><?><!-- ?></array>", .malformed), ("<!DOCTYPE plist [<!ENTITY a \"b\">]><true/>", .malformed),
        ("", .malformed), ("  ", .malformed), ("hello", .malformed), ("{ a = b; }", .malformed),
        (String(repeating: "(", count: 10_000), .malformed), ("<", .malformed), ("<array", .malformed),
        ("<array>", .malformed), ("<!-- ", .malformed), ("<!-->", .malformed), ("<?xml", .malformed),
        ("<array><![CDATA[ ]] >", .malformed), ("<!DOCTYPE", .malformed), ("</array>", nil),
    ]

    @Test(arguments: texts)
    func xmlPropertyListsAreChecked(text: String, failure: PropertyListCheck.Failure?) {
        #expect(Self.failure(text.utf8) == failure)
    }

    @Test(arguments: [[0xFE, 0xFF, 0, 0x3C], [0xFF, 0xFE, 0x3C, 0], [0, 0x3C]] as [[UInt8]])
    func xmlInOtherEncodingsIsRejected(bytes: [UInt8]) {
        #expect(Self.failure(bytes) == .malformed)
    }

    /// Builds a binary property list of encoded objects; offsets and references have one byte.
    private static func binary(
        _ objects: [[UInt8]], top: UInt8 = 0, count: UInt8? = nil, sizes: [UInt8] = [1, 1], table: UInt8? = nil
    ) -> [UInt8] {
        var bytes = Array("bplist00".utf8)
        var offsets: [UInt8] = []
        for object in objects {
            offsets.append(UInt8(truncatingIfNeeded: bytes.count))
            bytes += object
        }
        let end = UInt8(truncatingIfNeeded: bytes.count)
        let number = { (value: UInt8) in [0, 0, 0, 0, 0, 0, 0, value] as [UInt8] }
        return bytes + offsets + [0, 0, 0, 0, 0, 0] + sizes + number(count ?? UInt8(objects.count)) + number(top)
            + number(table ?? end)
    }

    /// Builds nested arrays, each of which refers to the next one `width` times; the last one is empty.
    private static func pyramid(levels: UInt8, width: UInt8) -> [UInt8] {
        binary((1...levels).map { [0xA0 | width] + Array(repeating: $0, count: Int(width)) } + [[0xA0]])
    }

    static let lists: [(name: String, bytes: [UInt8], failure: PropertyListCheck.Failure?)] = [
        ("true", binary([[0x09]]), nil), ("integers", binary([[0xA2, 1, 2], [0x10, 7], [0x11, 1, 7]]), nil),
        ("real", binary([[0x22, 0, 0, 0, 0]]), nil), ("date", binary([[0x33, 0, 0, 0, 0, 0, 0, 0, 0]]), nil),
        ("data", binary([[0x41, 9]]), nil), ("text", binary([[0x5F, 0x10, 1, 0x41]]), nil),
        ("UTF-16", binary([[0x61, 0, 0x41]]), nil), ("UID", binary([[0x80, 1]]), nil),
        ("set", binary([[0xC1, 1], [0x08]]), nil),
        ("dictionary", binary([[0xD1, 1, 2], [0x51, 0x41], [0x09]]), nil),
        ("shared", binary([[0xA3, 1, 1, 1], [0xA1, 2], [0x09]]), nil),
        ("top", binary([[0x09], [0xA1, 0]], top: 1), nil),
        ("an array of itself", binary([[0xA1, 0]]), .tooDeep),
        ("two of each other", binary([[0xA1, 1], [0xA1, 0]]), .tooDeep),
        ("a dictionary in its key", binary([[0xD1, 0, 1], [0x09]]), .tooDeep),
        ("few bytes, many objects", pyramid(levels: 10, width: 8), .tooLarge),
        ("an array of itself, many times", binary([[0xAE] + Array(repeating: 0, count: 14)]), .tooDeep),
        ("deepest", Self.pyramid(levels: 100, width: 1), nil),
        ("no such object", binary([[0xA1, 1]]), .malformed), ("no such top", binary([[0x09]], top: 1), .malformed),
        ("no objects", binary([[0x09]], count: 0), .malformed), ("too many", binary([[0x09]], count: 9), .malformed),
        ("no size of offsets", binary([[0x09]], sizes: [0, 1]), .malformed),
        ("no size of references", binary([[0x09]], sizes: [1, 0]), .malformed),
        ("sizes too large", binary([[0x09]], sizes: [1, 9]), .malformed),
        ("table in the header", binary([[0x09]], table: 8), .malformed),
        ("table in the trailer", binary([[0x09]], table: 10), .malformed),
        ("table beyond the end", binary([[0x09]], table: 200), .malformed),
        ("array too long", binary([[0xA9, 0]]), .malformed), ("text too long", binary([[0x5E, 0x41]]), .malformed),
        ("UTF-16 too long", binary([[0x62, 0, 0x41, 0]]), .malformed),
        ("data too long", binary([[0x43, 1, 2]]), .malformed),
        ("count too long", binary([[0x5F, 0x13, 0x7F, 255, 255, 255, 255, 255, 255, 255]]), .malformed),
        ("count beyond Int", binary([[0x5F, 0x13, 255, 255, 255, 255, 255, 255, 255, 255]]), .malformed),
        ("count times two beyond Int", binary([[0x6F, 0x13, 0x7F, 255, 255, 255, 255, 255, 255, 255]]), .malformed),
        ("references beyond Int", binary([[0xDF, 0x13, 0x7F, 255, 255, 255, 255, 255, 255, 255]]), .malformed),
        ("count that is no integer", binary([[0x5F, 0x41]]), .malformed),
        ("count of 16 bytes", binary([[0x5F, 0x14]]), .malformed),
        ("integer too long", binary([[0x13, 1]]), .malformed), ("date too short", binary([[0x33, 1]]), .malformed),
        ("UID too long", binary([[0x8F, 1]]), .malformed), ("no such kind", binary([[0x70]]), .malformed),
        ("only a header", Array("bplist00".utf8), .malformed),
        ("too short", Array("bplist00".utf8) + Array(repeating: 0, count: 32), .malformed),
        ("nothing but NUL", Array("bplist00".utf8) + Array(repeating: 0, count: 64), .malformed),
    ]

    @Test(arguments: lists)
    func binaryPropertyListsAreChecked(name: String, bytes: [UInt8], failure: PropertyListCheck.Failure?) {
        #expect(Self.failure(bytes) == failure, "\(name)")
    }

    @Test func invalidOffsetsAreRejected() {
        for offset in [0, 7, 9, 200] as [UInt8] {
            var bytes = Self.binary([[0x09]])
            bytes[9] = offset
            #expect(Self.failure(bytes) == .malformed)
        }
    }

    @Test("Many references to a long string")
    func manyReferencesToALongStringAreRejected() throws {
        let text = String(repeating: "a", count: 100_000)
        let data = try PropertyList(.binary).encode(Array(repeating: text, count: 10_000))
        #expect(data.count < 200_000 && Self.failure(data) == .tooLarge)
        #expect(Self.failure(try PropertyList(.binary).encode(Array(repeating: text, count: 500))) == nil)
    }

    @Test func decodingErrorsNameTheReason() throws {
        let rows: [([UInt8], String)] = [
            (Array(Self.nested(10_000).utf8), "the property list is more than 256 levels deep"),
            (Self.pyramid(levels: 10, width: 8), "the property list refers to the same objects too often"),
            (Self.binary([[0xA1, 0]]), "the property list is more than 256 levels deep"),
            (Array("hello".utf8), "the body is not a valid property list"),
        ]
        for (body, reason) in rows {
            let error = try #require(
                #expect(throws: NetworkError.self) {
                    try PropertyList().decode([JSONValue].self, from: Data(body), of: ReadingScene.head(nil))
                })
            #expect(error.kind == .decodingFailed && error.phase == .decoding && error.cause is DecodingError)
            #expect(error.message == "Decoding Array<JSONValue> failed: \(reason).")
        }
    }

    @Test("Encoded property lists pass", arguments: 0..<200 as Range<UInt64>)
    func encodedListsPass(seed: UInt64) throws {
        var chance = SeededChance(seed)
        let value = JSONValue.random(&chance, depth: 5).removingNulls(from: .objectsAndArrays)
        let values = Array(repeating: value, count: 300).filter { !$0.isNull }
        for layout in PropertyList.Layout.allCases {
            let data = try PropertyList(layout).encode(values)
            #expect(Self.failure(data) == nil)
        }
    }

    @Test(arguments: PropertyList.Layout.allCases)
    func valuesOfEveryTypeRoundTrip(layout: PropertyList.Layout) throws {
        struct Row: Codable, Equatable {
            var text = "é <>&]]> -->", same = "é <>&]]> -->", date = Date(timeIntervalSinceReferenceDate: 1),
                data = Data([0, 1, 2])
            var big = UInt64.max, small = Int8.min, float: Float = 1.5, double = 0.1, yes = true, list = [1, 2, 3]
            var long = Data(repeating: 7, count: 100_000), children: [Row]? = nil
        }
        let row = Row(children: Array(repeating: Row(), count: 40))
        let data = try PropertyList(layout).encode(row)
        #expect(try PropertyList().decode(Row.self, from: data, of: ReadingScene.head(nil)) == row)
    }
}
