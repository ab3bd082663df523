// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import Testing

/// The encoding of frames (RFC 9113 §4.1 and §6).
@Suite(.timeLimit(.minutes(5)))
struct HTTP2FrameTests {
    @Test(arguments: [
        (HTTP2Frame.data(1, [7, 8], endStream: true), "000002" + "00" + "01" + "00000001" + "0708"),
        (.data(3, [7], padding: 2), "000004" + "00" + "08" + "00000003" + "02070000"),
        (.headers(1, [("a", "b")]), "000005" + "01" + "04" + "00000001" + "0001610162"),
        (.headers(1, [], endStream: true, endHeaders: false), "000000" + "01" + "01" + "00000001"),
        (.priority(5, dependsOn: 3, weight: 9), "000005" + "02" + "00" + "00000005" + "0000000309"),
        (.rstStream(5, .refusedStream), "000004" + "03" + "00" + "00000005" + "00000007"),
        (
            .settings([.maxConcurrentStreams(1), .enablePush(false)]),
            "00000c" + "04" + "00" + "00000000" + "000300000001000200000000"
        ),
        (.settingsAck, "000000" + "04" + "01" + "00000000"),
        (.pushPromise(1, promising: 2, []), "000004" + "05" + "04" + "00000001" + "00000002"),
        (.ping([1, 2, 3, 4, 5, 6, 7, 8], ack: true), "000008" + "06" + "01" + "00000000" + "0102030405060708"),
        (
            .goAway(lastStream: 9, .enhanceYourCalm, debug: [65]),
            "000009" + "07" + "00" + "00000000" + "000000090000000b41"
        ),
        (.windowUpdate(1, by: 65_536), "000004" + "08" + "00" + "00000001" + "00010000"),
        (.continuation(1, endHeaders: false), "000000" + "09" + "00" + "00000001"),
        (
            HTTP2Frame(.init(rawValue: 0xFA), flags: .init(rawValue: 0xFF), stream: 7, payload: [1]),
            "000001" + "fa" + "ff" + "00000007" + "01"
        ),
    ]) func framesRoundTrip(_ frame: HTTP2Frame, _ bytes: String) {
        #expect(frame.encoded == hexadecimalBytes(bytes))
        var input = (frame.encoded + [0])[...]
        #expect(HTTP2Frame.decode(from: &input) == frame)
        #expect(input == [0])
    }

    @Test func incompleteFramesAreNotDecoded() {
        let bytes = HTTP2Frame.ping().encoded
        for count in 0..<bytes.count {
            var part = bytes[..<count]
            #expect(HTTP2Frame.decode(from: &part) == nil && part.count == count)
        }
    }

    @Test func reservedBitsAreIgnored() {
        var bytes = HTTP2Frame.windowUpdate(1, by: 5).encoded
        bytes[5] |= 0x80
        bytes[9] |= 0x80
        var input = bytes[...]
        let frame = HTTP2Frame.decode(from: &input)
        #expect(frame?.stream == 1 && frame?.increment == 5)
    }

    @Test func declaredLengthMayDifferFromThePayload() {
        var frame = HTTP2Frame.data(1, [1, 2, 3])
        frame.declaredLength = 4
        #expect(frame.encoded.prefix(3) == [0, 0, 4] && frame.encoded.count == 12)
        #expect(frame.description == "DATA stream 1 flags 0x0 length 4")
    }

    @Test func payloadsAreParsed() {
        #expect(HTTP2Frame.data(1, [5], padding: 3).content == [5])
        #expect(HTTP2Frame(.data, flags: .padded, stream: 1, payload: [9, 1]).content == nil)
        let prioritized = HTTP2Frame(
            .headers, flags: [.priority, .endHeaders], stream: 1, payload: [0, 0, 0, 0, 1, 130])
        #expect(prioritized.content == [130])
        #expect(HTTP2Frame.rstStream(1, .cancel).errorCode == .cancel)
        let goAway = HTTP2Frame.goAway(lastStream: 5, .noError)
        #expect(goAway.errorCode == .noError && goAway.lastStream == 5 && goAway.increment == nil)
        let settings = [HTTP2Setting.initialWindowSize(0), HTTP2Setting(identifier: 99, value: .max)]
        #expect(HTTP2Frame.settings(settings).settings == settings)
        #expect(HTTP2Frame.ping().settings.isEmpty && HTTP2Frame.ping().errorCode == nil)
    }

    @Test func descriptionsNameCodesAndKinds() {
        #expect("\(HTTP2ErrorCode.refusedStream)" == "REFUSED_STREAM")
        #expect("\(HTTP2ErrorCode(rawValue: 255))" == "0xff")
        #expect("\(HTTP2Frame.Kind.goAway) \(HTTP2Frame.Kind(rawValue: 0xFA))" == "GOAWAY 0xfa")
    }
}
