// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

@testable import CurlewTesting
import Testing

/// The examples of RFC 7541 Appendix C, and invalid blocks that the decoder must refuse.
@Suite(.timeLimit(.minutes(5)))
struct HPACKTests {
    /// Requests without and with Huffman coding (C.3 and C.4).
    @Test(arguments: [
        [
            "828684410f7777772e6578616d706c652e636f6d", "828684be58086e6f2d6361636865",
            "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565",
        ],
        [
            "828684418cf1e3c2e5f23a6ba0ab90f4ff", "828684be5886a8eb10649cbf",
            "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
        ],
    ]) func requestsOfRFC7541AreDecoded(_ blocks: [String]) throws {
        var decoder = HPACKDecoder()
        let host = ":authority: www.example.com"
        #expect(try decoder.lines(blocks[0]) == [":method: GET", ":scheme: http", ":path: /", host])
        #expect(decoder.tableSize == 57)
        let second = [":method: GET", ":scheme: http", ":path: /", host, "cache-control: no-cache"]
        #expect(try decoder.lines(blocks[1]) == second)
        #expect(decoder.tableSize == 110)
        let third = [":method: GET", ":scheme: https", ":path: /index.html", host, "custom-key: custom-value"]
        #expect(try decoder.lines(blocks[2]) == third)
        #expect(decoder.tableSize == 164 && decoder.table.map(\.name) == ["custom-key", "cache-control", ":authority"])
    }

    /// Responses with a table so small that entries are evicted (C.5 and C.6).
    @Test(arguments: [
        [
            """
            4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a323120474d546e1768747470733a\
            2f2f7777772e6578616d706c652e636f6d
            """,
            "4803333037c1c0bf",
            """
            88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c05a04677a69707738666f6f3d4153444a4b4851\
            4b425a584f5157454f50495541585157454f49553b206d61782d6167653d333630303b2076657273696f6e3d31
            """,
        ],
        [
            """
            488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8e9ae82ae43\
            d3
            """,
            "4883640effc1c0bf",
            """
            88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335dfdfcd5b3960d5af27\
            087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007
            """,
        ],
    ]) func responsesOfRFC7541AreDecodedWithEvictions(_ blocks: [String]) throws {
        var decoder = HPACKDecoder(tableSize: 256)
        let date = "date: Mon, 21 Oct 2013 20:13:21 GMT"
        let rest = ["cache-control: private", date, "location: https://www.example.com"]
        #expect(try decoder.lines(blocks[0]) == [":status: 302"] + rest)
        #expect(decoder.tableSize == 222)
        #expect(try decoder.lines(blocks[1]) == [":status: 307"] + rest)
        #expect(decoder.tableSize == 222)
        let cookie = "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"
        let third = [
            ":status: 200", "cache-control: private", "date: Mon, 21 Oct 2013 20:13:22 GMT",
            "location: https://www.example.com", "content-encoding: gzip", cookie,
        ]
        #expect(try decoder.lines(blocks[2]) == third)
        #expect(decoder.tableSize == 215 && decoder.table.count == 3)
    }

    /// One field of each representation (C.2).
    @Test(arguments: [
        ("400a637573746f6d2d6b65790d637573746f6d2d686561646572", "custom-key: custom-header", 1),
        ("040c2f73616d706c652f70617468", ":path: /sample/path", 0),
        ("100870617373776f726406736563726574", "password: secret", 0),
        ("82", ":method: GET", 0),
    ]) func eachFieldRepresentationIsDecoded(_ block: String, _ line: String, _ entries: Int) throws {
        var decoder = HPACKDecoder()
        #expect(try decoder.lines(block) == [line])
        #expect(decoder.table.count == entries)
    }

    @Test(arguments: [(10, 5, "0a"), (1337, 5, "1f9a0a"), (42, 8, "2a")])
    func integersAreEncoded(_ value: Int, _ prefix: Int, _ bytes: String) {
        var block: [UInt8] = []
        HPACK.append(value, prefix: prefix, to: &block)
        #expect(block == hexadecimalBytes(bytes))
    }

    @Test func smallerTableEvictsEntries() throws {
        var decoder = HPACKDecoder()
        _ = try decoder.lines("400a637573746f6d2d6b65790d637573746f6d2d686561646572")
        #expect(try decoder.lines("20") == [])
        #expect(decoder.table.isEmpty && decoder.tableSize == 0)
        #expect(throws: MalformedFields.self) { try decoder.lines("be") }
    }

    /// The size of an entry is the number of received bytes, even if they are not valid UTF-8 (RFC 7541 §4.1).
    @Test func entrySizesCountReceivedBytes() throws {
        var decoder = HPACKDecoder()
        let block = [0x40, 1, 0x61, 126] + [UInt8](repeating: 0xFF, count: 126)
        for _ in 0..<25 { _ = try decoder.decode(block[...]) }
        #expect(decoder.tableSize == 25 * 159)
        #expect(try decoder.decode([0xD6]).map(\.name) == ["a"])
        // A new value with the oldest entry's name, then one entry too many.
        _ = try decoder.decode([0x7F, 0x17, 0])
        #expect(decoder.tableSize == 25 * 159 + 33)
        _ = try decoder.decode(block[...])
        #expect(decoder.tableSize == 25 * 159 + 33)
    }

    @Test(arguments: [
        "80", "ff", "c0", "40", "400a63", "ffffffffffffff", "3fe21f", "8220",  // indices, numbers, table sizes
        "0081ff00", "00821fff00", "0085fffffffffc00", "00810000",  // strings: padding, end mark, no padding of ones
    ]) func invalidBlocksAreRejected(_ block: String) {
        var decoder = HPACKDecoder()
        #expect(throws: MalformedFields.self) { try decoder.lines(block) }
    }

    @Test func encodedFieldsRoundTrip() throws {
        let fields = [(":status", "200"), ("a", ""), ("x-long", String(repeating: "ü", count: 5000))]
        var decoder = HPACKDecoder()
        let block = HPACK.encode(fields.map { (name: $0.0, value: $0.1) })
        #expect(try decoder.decode(block[...]).map(\.value) == fields.map(\.1))
        #expect(decoder.table.isEmpty)
    }
}

func hexadecimalBytes(_ text: String) -> [UInt8] {
    let digits = Array(text.utf8).map { $0 < 58 ? $0 - 48 : $0 - 87 }
    return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
}

extension HPACKDecoder {
    fileprivate mutating func lines(_ block: String) throws -> [String] {
        try decode(hexadecimalBytes(block)[...]).map { "\($0.name): \($0.value)" }
    }
}
