// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

@Suite("HeaderFields, RFC 9110 §5")
struct HeaderFieldsTests {
    @Test func valuesAreJoinedExceptSetCookie() {
        let fields: HeaderFields = [
            "Accept": "a", "X": "1", "accept": "b", "Set-Cookie": "a=1", "set-cookie": "b=2",
        ]
        #expect(fields[.accept] == "a, b")
        #expect(fields["x"] == "1")
        #expect(fields["Y"] == nil)
        #expect(fields[.setCookie] == "a=1")
        #expect(fields.values(for: .setCookie) == ["a=1", "b=2"])
        #expect(fields.contains(.accept) && !fields.contains(.age))
    }

    @Test func settingReplacesAllAtTheFirstPosition() {
        var fields: HeaderFields = ["A": "1", "B": "2", "a": "1", "C": "3"]
        fields["a"] = "1"
        #expect(fields.map(\.description) == ["a: 1", "B: 2", "C: 3"])
        fields["C"] = "4"
        fields["D"] = "5"
        fields["B"] = nil
        #expect(fields.map(\.description) == ["a: 1", "C: 4", "D: 5"])
    }

    @Test func fieldsAreAppendedRemovedAndMerged() {
        var fields = HeaderFields()
        fields.append("A", "1")
        fields.append("A", "2")
        fields.append("B", "3")
        #expect(fields.merging([:]) == fields)
        #expect(fields.merging(["a": "9", "C": "8"]) == ["B": "3", "a": "9", "C": "8"])
        fields.remove("a")
        #expect(fields == ["B": "3"])
    }

    @Test func collectionKeepsTheOrder() {
        let fields: HeaderFields = ["A": "1", "B": "2"]
        #expect(fields.count == 2)
        #expect(fields[1] == HeaderFields.Field(name: "b", value: "2"))
        #expect(HeaderFields(fields.reversed()).first?.value == "2")
        #expect(Set([fields, ["a": "1", "b": "2"]]).count == 1)
    }

    @Test(arguments: [
        ("", true), ("a\tb c", true), ("é", true), ("a\r\nB: c", false), ("\u{0}", false), ("\u{1B}", false),
        ("\u{7F}", false), ("a\n", false),
    ])
    func valueValidityIsChecked(value: String, isValid: Bool) {
        #expect(HeaderFields.isValidValue(value) == isValid)
    }

    @Test func descriptionsHideSecrets() {
        let fields: HeaderFields = [
            "Authorization": "Bearer s3cret", "Location": "https://u:p@h/x?token=s3cret&b", "X": "a\r\nb",
        ]
        let shown = """
            Authorization: <redacted>
            Location: https://h/x?token=<redacted>&<redacted>
            X: a\\r\\nb
            """
        #expect(fields.description == shown)
        #expect(fields.redacted()[.authorization] == "<redacted>")
        #expect(fields[.authorization] == "Bearer s3cret")
    }

    @Test func everyFieldIsCodable() throws {
        let fields: HeaderFields = ["A": "1", "a": "2", "Cookie": "c"]
        let data = try JSONEncoder().encode(fields)
        #expect(try JSONDecoder().decode(HeaderFields.self, from: data) == fields)
    }
}

@Suite("Header block parsing, RFC 9112 §5")
struct HeaderParsingTests {
    static let blocks: [(String, HeaderFields)] = [
        ("", [:]),
        ("\r\n", [:]),
        ("A: 1\r\nB:2\r\n\r\nC: 3\r\n", ["A": "1", "B": "2"]),
        ("A: 1\nB: 2", ["A": "1", "B": "2"]),
        ("A:\t 1 2 \t\r\nB:\r\n", ["A": "1 2", "B": ""]),
        ("A : 1\r\n", ["A": "1"]),
        ("no colon\r\n: no name\r\nA: b:c\r\n", ["A": "b:c"]),
        ("A: 1\r\n  2\r\n\t3\r\nB: 4\r\n", ["A": "1 2 3", "B": "4"]),
        ("A:\r\n 2\r\n \r\n 3\r\n\r\n", ["A": "2 3"]),
        ("junk\r\n folded\r\nA: 1\r\n", ["A": "1"]),
        (" leading fold\r\nA: 1", ["A": "1"]),
        ("A: é\r\n", ["A": "é"]),
        (
            "A: 1\r\na: 2\r\nSet-Cookie: x\r\nset-cookie: y\r\n",
            ["A": "1", "a": "2", "Set-Cookie": "x", "Set-Cookie": "y"]
        ),
    ]

    @Test func foldedLineAfterAMalformedOneIsIgnored() {
        // Found by fuzzing: the colon of a continuation line made a name of two lines.
        #expect(HeaderFields(parsing: Array("junk\r\n folded: 1\r\nA: 1\r\n".utf8)) == ["A": "1"])
    }

    @Test func forbiddenTrailerFieldsAreRemoved() {
        let lines = "Content-Length: 1\r\nETag: x\r\nHost: y\r\nset-cookie: z\r\nTE: a\r\nX: 1\r\n 2\r\n"
        #expect(HeaderFields(trailers: Array(lines.utf8)) == ["ETag": "x", "X": "1 2"])
    }

    @Test(arguments: blocks)
    func blocksAreParsed(block: String, expected: HeaderFields) {
        #expect(HeaderFields(parsing: Array(block.utf8)) == expected)
    }

    @Test(arguments: blocks)
    func scanningAgreesWithParsing(block: String, expected: HeaderFields) {
        let bytes = Array(block.utf8)
        for name: HeaderName in ["A", "B", "C", "Set-Cookie", "a"] {
            #expect(HeaderFields.value(of: name, in: bytes) == expected[name])
        }
    }

    @Test func nonUTF8ValuesAreLatin1() {
        let bytes: [UInt8] = Array("A: caf".utf8) + [0xE9, 0x0D, 0x0A] + Array("B: é".utf8)
        let fields = HeaderFields(parsing: bytes)
        #expect(fields["A"] == "café")
        #expect(fields["B"] == "é")
        #expect(HeaderFields.value(of: "A", in: bytes) == "café")
    }

    @Test func parsingStartsAtAnOffset() {
        let bytes = Array("HTTP/1.1 200 OK\r\nA: 1\r\n".utf8)
        #expect(HeaderFields(parsing: bytes, from: 17) == ["A": "1"])
        #expect(HeaderFields.value(of: "a", in: bytes, from: 17) == "1")
        #expect(HeaderFields(parsing: bytes, from: bytes.count).isEmpty)
    }

    @Test func longFoldedValueIsParsed() {
        let block = "A: 1\r\n" + String(repeating: " x\r\n", count: 20_000)
        #expect(HeaderFields(parsing: Array(block.utf8))["A"]?.utf8.count == 40_001)
    }
}
