// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

/// Questions, and responses about addresses and aliases.
@Suite struct DNSMessageTests {
    private let name = "www.example.com"
    /// A pointer to the name in the question.
    private let asked: [UInt8] = [0xC0, 12]

    private func flaw(_ bytes: [UInt8], _ type: DNSMessage.RecordType = .a) -> DNSMessage.Flaw? {
        do throws(DNSMessage.Flaw) {
            _ = try DNSMessage(response: bytes, to: name, type)
            return nil
        } catch {
            return error
        }
    }

    // MARK: Questions

    @Test(arguments: [
        ("www.example.com", "AAABAAABAAAAAAAAA3d3dwdleGFtcGxlA2NvbQAAAQAB"),
        (
            "a.62characterlabel-makes-base64url-distinct-from-standard-base64.example.com",
            "AAABAAABAAAAAAAAAWE-NjJjaGFyYWN0ZXJsYWJlbC1tYWtlcy1iYXNlNjR1cmwtZGlzdGluY3QtZnJvbS1zdGFuZGFyZC1iYXNl"
                + "NjQHZXhhbXBsZQNjb20AAAEAAQ"
        ),
    ])
    func questionsMatchTheExamples(_ name: String, _ text: String) throws {
        // RFC 8484 §4.1.1.
        let question = try #require(DNSMessage.question(name, .a))
        let base64 = Data(question).base64EncodedString()
        #expect(base64.replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "") == text)
    }

    @Test func questionHasTheBytesOfTheExample() {
        // RFC 8484 §4.1.1.
        let bytes = DNSBytes.hex(
            "00 00 01 00 00 01 00 00 00 00 00 00 03 77 77 77 07 65 78 61 6d 70 6c 65 03 63 6f 6d 00 00 01 00 01")
        #expect(DNSMessage.question(name, .a) == bytes)
        #expect(DNSMessage.question(name, .aaaa) == bytes.dropLast(3) + [28, 0, 1])
        #expect(DNSMessage.question(name, .https) == bytes.dropLast(3) + [65, 0, 1])
    }

    @Test func questionsHaveNamesOfValidLengths() {
        let label = String(repeating: "a", count: 63)
        let longest = [label, label, label, String(label.dropLast(2))].joined(separator: ".")
        #expect(longest.utf8.count == 253 && DNSMessage.question(longest, .a)?.count == 12 + 255 + 4)
        for wrong in [longest + "a", label + "a", "", ".", "a.", ".a", "a..b"] {
            #expect(DNSMessage.question(wrong, .a) == nil, "\(wrong)")
        }
    }

    // MARK: Responses

    @Test func responseOfTheExampleIsRead() throws {
        // RFC 8484 §4.2.2.
        let bytes = DNSBytes.hex(
            """
            00 00 81 80 00 01 00 01 00 00 00 00 03 77 77 77 07 65 78 61 6d 70 6c 65 03 63 6f 6d 00 00 1c 00 01
            c0 0c 00 1c 00 01 00 00 0e 7d 00 10 20 01 0d b8 ab cd 00 12 00 01 00 02 00 03 00 04
            """)
        let message = try DNSMessage(response: bytes, to: name, .aaaa)
        #expect(message.code == 0 && !message.isTruncated && message.negativeLifetime == nil)
        let found = try #require(message.addresses(of: name))
        #expect(found.addresses.map(HostName.address) == ["2001:db8:abcd:12:1:2:3:4"] && found.lifetime == 3709)
        #expect(message.addresses(of: "example.com") == nil)
    }

    @Test func responsesMustMatchTheQuestion() throws {
        let bytes = DNSBytes.message(answers: [DNSBytes.record(asked, 1, data: [192, 0, 2, 1])])
        #expect(flaw(bytes) == nil)
        #expect(flaw(bytes, .aaaa) == .otherQuestion)
        #expect(flaw(DNSBytes.message("mail.example.com")) == .otherQuestion)
        #expect(flaw(DNSBytes.message("www.example.com.test")) == .otherQuestion)
        #expect(flaw(DNSBytes.message(kind: 3)) == .otherQuestion)
        // A dot in a label must not look like the end of the label.
        let dotted = DNSBytes.label("www.example") + DNSBytes.name("com")
        #expect(flaw(DNSBytes.message(name: dotted)) == .otherQuestion)
    }

    @Test func onlyErrorsMayLackTheQuestion() throws {
        for code: UInt16 in [1, 2, 4, 5] {
            let bytes = DNSBytes.header(flags: 0x8180 | code, questions: 0)
            #expect(try DNSMessage(response: bytes, to: name, .a).code == code)
        }
        for code: UInt16 in [0, 3] {
            #expect(flaw(DNSBytes.header(flags: 0x8180 | code, questions: 0)) == .malformed)
        }
        let question = DNSBytes.name(name) + [0, 1, 0, 1]
        #expect(flaw(DNSBytes.header(questions: 1) + question) == nil)
        #expect(flaw(DNSBytes.header(questions: 2) + question + question) == .malformed)
    }

    @Test func headerIsChecked() throws {
        #expect(flaw(DNSBytes.message(flags: 0x0100)) == .isQuery)
        #expect(flaw(DNSBytes.message(flags: 0xA180)) == .malformed)
        let answer = DNSBytes.record(asked, 1, data: [192, 0, 2, 1])
        var bytes = DNSBytes.message(flags: 0x8380, answers: [answer])
        bytes[0] = 0x12
        let message = try DNSMessage(response: bytes, to: name, .a)
        #expect(message.isTruncated && message.code == 0 && message.addresses(of: name) != nil)
        #expect(try DNSMessage(response: DNSBytes.message(flags: 0x87F2), to: name, .a).code == 2)
    }

    @Test func optionsExtendTheCode() throws {
        // The version that the server refuses is 16, the lower four bits of which are 0.
        let options = DNSBytes.record([0], 41, kind: 1232, lifetime: 0x0100_0000, data: [0, 12, 0, 1, 0])
        #expect(try DNSMessage(response: DNSBytes.message(additions: [options]), to: name, .a).code == 16)
        let plain = DNSBytes.record([0], 41, kind: 1232, lifetime: 0x8000, data: [])
        #expect(try DNSMessage(response: DNSBytes.message(additions: [plain]), to: name, .a).code == 0)
        let other = DNSBytes.record(asked, 1, lifetime: 0x0100_0000, data: [192, 0, 2, 1])
        let message = try DNSMessage(response: DNSBytes.message(additions: [other]), to: name, .a)
        #expect(message.code == 0 && message.addresses(of: name) == nil)
    }

    @Test func namesAreComparedWithoutCase() throws {
        let bytes = DNSBytes.message(
            "WWW.Example.COM", answers: [DNSBytes.record(DNSBytes.name("wWw.eXample.com"), 1, data: [192, 0, 2, 1])])
        let message = try DNSMessage(response: bytes, to: "Www.example.Com", .a)
        #expect(message.addresses(of: "wwW.EXAMPLE.com")?.addresses == [[192, 0, 2, 1]])
    }

    @Test func otherRecordsAreSkipped() throws {
        let odd: [UInt8] = [0xFF, 0xC0, 0xFF, 0x00]
        let bytes = DNSBytes.message(
            answers: [
                DNSBytes.record(asked, 16, data: odd), DNSBytes.record(asked, 65_280, data: odd),
                DNSBytes.record(asked, 1, kind: 3, data: odd), DNSBytes.record(asked, 1, data: [192, 0, 2, 1]),
                DNSBytes.record(asked, 46, data: []),
            ], authorities: [DNSBytes.record(asked, 2, data: odd)], additions: [DNSBytes.record(asked, 1, data: [])])
        let message = try DNSMessage(response: bytes, to: name, .a)
        #expect(message.records.count == 1 && message.addresses(of: name)?.addresses == [[192, 0, 2, 1]])
    }

    @Test(arguments: [[], [0x20], [0x00], [0x2E], [0x5C], [0x0A], [0x7F], [0x2A], [0xC3, 0xBC]] as [[UInt8]])
    func namesWithOddBytesAreSkipped(_ odd: [UInt8]) throws {
        let target = DNSBytes.label([0x61] + odd + [0x62]) + [0]
        let bytes = DNSBytes.message(
            answers: [
                DNSBytes.record(target, 1, data: [192, 0, 2, 9]), DNSBytes.record(asked, 5, data: target),
                DNSBytes.record(DNSBytes.name("m.test"), 1, data: [192, 0, 2, 1]),
            ])
        let message = try DNSMessage(response: bytes, to: name, .a)
        // Without an odd byte, all three are kept.
        #expect(message.records.count == (odd.isEmpty ? 3 : 1))
        #expect(message.addresses(of: "m.test")?.addresses == [[192, 0, 2, 1]])
        #expect(message.addresses(of: name)?.addresses == (odd.isEmpty ? [[192, 0, 2, 9]] : nil))
    }

    @Test func wrongSizesAreMalformed() {
        let address = [UInt8](repeating: 1, count: 17)
        for (type, count) in [(1, 0), (1, 3), (1, 5), (1, 16), (28, 4), (28, 15), (28, 17)] as [(UInt16, Int)] {
            let record = DNSBytes.record(asked, type, data: Array(address.prefix(count)))
            #expect(flaw(DNSBytes.message(answers: [record])) == .malformed, "\(type), \(count)")
        }
        for data in [[], [0xC0], asked + [0], [3, 0x77], [1, 0x61], DNSBytes.name("a") + [0]] as [[UInt8]] {
            let record = DNSBytes.record(asked, 5, data: data)
            #expect(flaw(DNSBytes.message(answers: [record, record])) == .malformed, "\(data)")
        }
    }

    @Test func eachPrefixIsTruncated() throws {
        let alias = DNSBytes.record(asked, 5, data: DNSBytes.label("cdn") + [0xC0, 16])
        let address = DNSBytes.record(DNSBytes.name("cdn.example.com"), 1, data: [192, 0, 2, 1])
        let service = DNSBytes.record(asked, 65, data: DNSBytes.hex("0001 00 0001 0003 02 6832"))
        let authority = DNSBytes.record(asked, 6, data: asked + asked + [UInt8](repeating: 0, count: 20))
        let options = DNSBytes.record([0], 41, data: [0, 12, 0, 1, 0])
        let bytes = DNSBytes.message(
            answers: [alias, address, service], authorities: [authority], additions: [options])
        #expect(flaw(bytes) == nil)
        for count in bytes.indices {
            #expect(flaw(Array(bytes.prefix(count))) == .truncated, "\(count) of \(bytes.count) bytes")
        }
        #expect(flaw(bytes + [0]) == .malformed)
    }

    @Test func countsAndSizesAreBounded() throws {
        let record = DNSBytes.record(asked, 1, data: [192, 0, 2, 1])
        let full = DNSBytes.message(answers: Array(repeating: record, count: 256))
        #expect(try DNSMessage(response: full, to: name, .a).addresses(of: name)?.addresses.count == 256)
        #expect(flaw(DNSBytes.message(answers: Array(repeating: record, count: 257))) == .tooManyRecords)
        let parts = Array(repeating: record, count: 100)
        #expect(flaw(DNSBytes.message(answers: parts, authorities: parts, additions: parts)) == .tooManyRecords)
        #expect(flaw(DNSBytes.header(answers: .max, authorities: .max, additions: .max)) == .tooManyRecords)

        let text = DNSBytes.record(asked, 16, data: [UInt8](repeating: 0, count: 65_535 - 33 - 12))
        let largest = DNSBytes.message(answers: [text])
        #expect(largest.count == 65_535 && flaw(largest) == nil)
        let longer = DNSBytes.record(asked, 16, data: [UInt8](repeating: 0, count: 65_536 - 33 - 12))
        #expect(flaw(DNSBytes.message(answers: [longer])) == .malformed)
    }

    @Test(
        arguments: [
            (0, 0), (300, 300), (0x7FFF_FFFF, 0x7FFF_FFFF), (0x8000_0000, 0), (.max, 0),
        ] as [(UInt32, UInt32)])
    func lifetimesWithTheHighestBitAreZero(_ sent: UInt32, _ expected: UInt32) throws {
        let record = DNSBytes.record(asked, 1, lifetime: sent, data: [192, 0, 2, 1])
        let message = try DNSMessage(response: DNSBytes.message(answers: [record]), to: name, .a)
        #expect(message.addresses(of: name)?.lifetime == expected)
    }

    // MARK: Aliases

    private func chain(_ count: Int, _ last: [UInt8]) -> [[UInt8]] {
        let names = (0...count).map { $0 == 0 ? DNSBytes.name(name) : DNSBytes.name("n\($0).test") }
        let aliases = (0..<count).map { DNSBytes.record(names[$0], 5, lifetime: 100, data: names[$0 + 1]) }
        return aliases + [names[count] + last]
    }

    @Test func aliasesAreFollowedInAnyOrder() throws {
        let last = DNSBytes.record([], 1, lifetime: 200, data: [192, 0, 2, 1])
        let stray = DNSBytes.record(DNSBytes.name("other.test"), 1, lifetime: 1, data: [192, 0, 2, 7])
        for answers in [chain(3, last) + [stray], (chain(3, last) + [stray]).reversed()] {
            let message = try DNSMessage(response: DNSBytes.message(answers: answers), to: name, .a)
            let found = try #require(message.addresses(of: name))
            #expect(found.addresses == [[192, 0, 2, 1]] && found.lifetime == 100)
            #expect(message.addresses(of: "n3.test")?.lifetime == 200)
            #expect(message.services(of: name) == nil)
        }
    }

    @Test func shortestLifetimeCounts() throws {
        let both = DNSBytes.message(
            answers: [
                DNSBytes.record(asked, 1, lifetime: 30, data: [192, 0, 2, 1]),
                DNSBytes.record(asked, 1, lifetime: 20, data: [192, 0, 2, 2]),
                // The name has addresses, so its alias is not followed and its lifetime does not count.
                DNSBytes.record(asked, 5, lifetime: 10, data: DNSBytes.name("n.test")),
            ])
        let found = try #require(try DNSMessage(response: both, to: name, .a).addresses(of: name))
        #expect(found.addresses == [[192, 0, 2, 1], [192, 0, 2, 2]] && found.lifetime == 20)
    }

    @Test func chainsOfAliasesAreBounded() throws {
        let last = DNSBytes.record([], 1, data: [192, 0, 2, 1])
        for (count, isFound) in [(0, true), (1, true), (16, true), (17, false), (100, false)] {
            let message = try DNSMessage(response: DNSBytes.message(answers: chain(count, last)), to: name, .a)
            #expect((message.addresses(of: name) != nil) == isFound, "\(count) aliases")
        }
        let loop = [
            DNSBytes.record(asked, 5, data: DNSBytes.name("n.test")),
            DNSBytes.record(DNSBytes.name("n.test"), 5, data: asked),
        ]
        let message = try DNSMessage(response: DNSBytes.message(answers: loop), to: name, .a)
        #expect(message.records.count == 2 && message.addresses(of: name) == nil)
    }

    // MARK: Negative responses

    private func authority(_ lifetime: UInt32, _ minimum: UInt32, kind: UInt16 = 1, names: [UInt8]? = nil) -> [UInt8] {
        let numbers = [UInt8](repeating: 0xEE, count: 16) + DNSBytes.longNumber(minimum)
        let names = names ?? (DNSBytes.name("ns.test") + DNSBytes.label("host.master") + [0xC0, 16])
        return DNSBytes.record([0xC0, 16], 6, kind: kind, lifetime: lifetime, data: names + numbers)
    }

    @Test(
        arguments: [
            (900, 60, 60), (60, 900, 60), (0x8000_0000, 60, 0), (60, 0x8000_0000, 60), (0, 5, 0),
        ] as [(UInt32, UInt32, UInt32)])
    func negativeResponsesHaveALifetime(_ own: UInt32, _ minimum: UInt32, _ expected: UInt32) throws {
        let bytes = DNSBytes.message(
            flags: 0x8183,
            authorities: [
                authority(1, 1, kind: 3), DNSBytes.record(asked, 2, data: asked), authority(own, minimum),
                authority(7, 7),
            ])
        let message = try DNSMessage(response: bytes, to: name, .a)
        #expect(message.code == 3 && message.negativeLifetime == expected && message.records.isEmpty)
        #expect(message.addresses(of: name) == nil && message.services(of: name) == nil)
    }

    @Test func negativeLifetimeComesFromTheAuthorities() throws {
        let answered = DNSBytes.message(answers: [authority(9, 9)], additions: [authority(9, 9)])
        #expect(try DNSMessage(response: answered, to: name, .a).negativeLifetime == nil)
        #expect(try DNSMessage(response: DNSBytes.message(flags: 0x8183), to: name, .a).negativeLifetime == nil)
        for names in [asked, asked + asked + [0], asked + [0xC0]] {
            #expect(flaw(DNSBytes.message(authorities: [authority(9, 9, names: names)])) == .malformed, "\(names)")
        }
    }

    // MARK: Compression

    @Test func pointersReferToEarlierPositions() throws {
        let bytes = DNSBytes.message(
            answers: [
                // At 33; its data is at 45: "cdn.example.com".
                DNSBytes.record(asked, 5, data: DNSBytes.label("cdn") + [0xC0, 16]),
                // A pointer to a label and a pointer.
                DNSBytes.record([0xC0, 45], 5, data: DNSBytes.label("edge") + [0xC0, 45]),
                DNSBytes.record(DNSBytes.name("edge.cdn.example.com"), 1, data: [192, 0, 2, 1]),
            ])
        let message = try DNSMessage(response: bytes, to: name, .a)
        #expect(message.records.map(\.name) == [name, "cdn.example.com", "edge.cdn.example.com"])
        #expect(message.addresses(of: name)?.addresses == [[192, 0, 2, 1]])
    }

    /// Names at 49, after a text at 45.
    @Test(
        arguments: [
            ([0], [0xC0, 45], nil),
            // A pointer to itself, to its second byte, to a later place, outside, and to the label before it.
            ([], [0xC0, 49], .malformed), ([], [0xC0, 50], .malformed), ([], [0xC0, 61], .malformed),
            ([], [0xFF, 0xFF], .malformed), ([], [1, 0x61, 0xC0, 49], .malformed),
            // A pointer from the text to a later place in it, pointers to each other, and a label with a pointer to it.
            ([0xC0, 47, 0], [0xC0, 45], .malformed),
            ([0xC0, 49], [0xC0, 45], .malformed), ([1, 0x61, 0xC0, 45], [0xC0, 45], .malformed),
            // Reserved types of labels.
            ([], [0x40, 0], .malformed), ([], [0x80, 0], .malformed), ([], [1, 0x61, 0x7F, 0], .malformed),
        ] as [([UInt8], [UInt8], DNSMessage.Flaw?)])
    func badPointersAreMalformed(_ text: [UInt8], _ owner: [UInt8], _ expected: DNSMessage.Flaw?) {
        let padded = text + [UInt8](repeating: 0, count: 4 - text.count)
        let answers = [DNSBytes.record(asked, 16, data: padded), DNSBytes.record(owner, 1, data: [192, 0, 2, 1])]
        #expect(flaw(DNSBytes.message(answers: answers)) == expected)
    }

    @Test func runsOfPointersAreBounded() {
        for (count, expected) in [(2, nil), (253, nil), (254, .malformed)] as [(Int, DNSMessage.Flaw?)] {
            // The data of a record at 45: the root, and pointers, each to the previous one.
            var data: [UInt8] = [0]
            for index in 1..<count { data += DNSBytes.number(UInt16(0xC000 + (index == 1 ? 45 : 42 + 2 * index))) }
            let owner = DNSBytes.number(UInt16(0xC000 + 42 + 2 * count))
            let answers = [DNSBytes.record(asked, 16, data: data), DNSBytes.record(owner, 1, data: [192, 0, 2, 1])]
            #expect(flaw(DNSBytes.message(answers: answers)) == expected, "\(count) pointers")
        }
    }

    @Test func pointersCannotMakeLongNames() {
        let long = DNSBytes.label(String(repeating: "a", count: 63))
        for (size, expected) in [(1, 193), (61, 253), (62, nil)] as [(Int, Int?)] {
            // The tail of the name is at 45.
            let tail = DNSBytes.record(asked, 5, data: long + long + long + [0])
            let text = String(repeating: "b", count: size)
            let record = DNSBytes.record(DNSBytes.label(text) + [0xC0, 45], 1, data: [192, 0, 2, 1])
            let bytes = DNSBytes.message(answers: [tail, record])
            let records = try? DNSMessage(response: bytes, to: name, .a).records
            #expect(records?.last?.name.utf8.count == expected)
            #expect(flaw(bytes) == (expected == nil ? .malformed : nil))
        }
    }
}
