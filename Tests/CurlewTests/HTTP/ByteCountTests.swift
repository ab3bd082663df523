// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

@Suite("ByteCount")
struct ByteCountTests {
    static let descriptionRows: [(ByteCount, String)] = [
        (ByteCount(0), "0 bytes"), (1, "1 byte"), (-1, "-1 byte"), (1023, "1023 bytes"), (1024, "1 KiB"),
        (1536, "1.5 KiB"), (-1536, "-1.5 KiB"), (1_048_575, "1 MiB"), (1_047_000, "1022.5 KiB"),
        (.mebibytes(3), "3 MiB"), (.bytes(1_572_864), "1.5 MiB"), (.gibibytes(2), "2 GiB"),
        (.gibibytes(1536), "1.5 TiB"), (.gibibytes(1 << 20), "1 PiB"), (ByteCount(.max), "8 EiB"),
        (ByteCount(.min), "-8 EiB"), (.kibibytes(1) + 51, "1 KiB"), (.kibibytes(1) + 52, "1.1 KiB"),
    ]

    @Test(arguments: descriptionRows)
    func descriptionsUseBinaryUnits(count: ByteCount, text: String) {
        #expect(count.description == text)
    }

    static let arithmeticRows: [(ByteCount, Int64)] = [
        (ByteCount.kibibytes(2) + 1, Int64(2049)), (.kibibytes(1) - 24, 1000),
        (ByteCount(.max) + 1, .max), (ByteCount(.min) + -1, .min), (ByteCount(.min) - 1, .min),
        (ByteCount(.max) - -1, .max), (.gibibytes(.max), .max), (.mebibytes(.min), .min),
    ]

    @Test(arguments: arithmeticRows)
    func arithmeticSaturates(count: ByteCount, bytes: Int64) {
        #expect(count.bytes == bytes)
    }

    @Test func byteCountIsComparableAndCodedAsANumber() throws {
        #expect(ByteCount.kibibytes(1) < .mebibytes(1))
        let data = try JSONEncoder().encode([ByteCount.kibibytes(1)])
        #expect(String(decoding: data, as: UTF8.self) == "[1024]")
        #expect(try JSONDecoder().decode([ByteCount].self, from: data) == [1024])
    }
}

@Suite("Durations as texts and from numbers")
struct DurationSecondsTests {
    static let briefRows: [(Duration, String)] = [
        (Duration.zero, "0 s"), (.seconds(90), "90 s"), (.milliseconds(1500), "1.5 s"), (.milliseconds(20), "20 ms"),
        (.microseconds(12), "12 µs"), (.nanoseconds(1250), "1.3 µs"), (.milliseconds(-20), "-20 ms"),
    ]

    @Test(arguments: briefRows)
    func briefDescriptionsUseTheFittingUnit(duration: Duration, text: String) {
        #expect(duration.brief == text)
    }

    static let untrustedRows: [(Double, Duration?)] = [
        (0.5, Duration.milliseconds(500)), (0, .zero), (-0.1, nil), (.nan, nil), (.infinity, nil), (1e10, nil),
    ]

    @Test(arguments: untrustedRows)
    func untrustedSecondsAreBounded(seconds: Double, duration: Duration?) {
        #expect(Duration(untrustedSeconds: seconds) == duration)
    }
}

@Suite("ByteSet, escaping and shortening")
struct ByteSetTests {
    @Test func membershipIsTested() {
        let set = ByteSet("az?é")
        #expect(set.contains(0x61) && set.contains(0x3F) && !set.contains(0x62) && !set.contains(0xC3))
        #expect(set.union(.digits).containsAll(of: "a0?"))
        #expect(!set.containsAll(of: "ab"))
    }

    @Test(arguments: [
        ("plain é", "plain é"), ("a\r\nb\t", "a\\r\\nb\\t"), ("\u{1B}[2J", "\\u{1B}[2J"), ("\u{202E}x", "\\u{202E}x"),
        ("\u{85}", "\\u{0085}"),
    ])
    func controlCharactersAreEscaped(text: String, escaped: String) {
        #expect(text.escapingControls == escaped)
    }

    @Test(arguments: [
        ("", 3, ""), ("abc", 3, "abc"), ("abcd", 3, "abc"), ("a", 0, ""), ("\r\n\r\n", 3, "\r\n\r"),
        ("e\u{301}\u{302}\u{303}x", 3, "e\u{301}\u{302}"), ("👩‍👩‍👧", 1, "👩"),
    ])
    func textsAreShortened(text: String, count: Int, shortened: String) {
        #expect(Array(text.shortened(to: count).utf8) == Array(shortened.utf8))
    }

    @Test func httpVersionsAreParsedAndDescribed() {
        #expect(ResponseHead.HTTPVersion(rawValue: "HTTP/2.0") == .http2)
        #expect(ResponseHead.HTTPVersion(rawValue: "HTTP/3.0") == .http3)
        #expect("\(ResponseHead.HTTPVersion.http1_1) \(ResponseHead.HTTPVersion.http1_0)" == "HTTP/1.1 HTTP/1.0")
    }
}
