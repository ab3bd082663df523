// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

struct FramesTests {
    private static let prefixes: [Streams.LengthPrefix] = [
        .uint8, .uint16(.bigEndian), .uint16(.littleEndian), .uint32(.bigEndian), .uint32(.littleEndian),
        .uint64(.bigEndian), .uint64(.littleEndian), .varint,
    ]

    @Test func lengthPrefixesAreEncoded() {
        #expect(
            Self.prefixes.map { $0.bytes(for: 0x96) } == [
                [0x96], [0, 0x96], [0x96, 0], [0, 0, 0, 0x96], [0x96, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0x96],
                [0x96, 0, 0, 0, 0, 0, 0, 0], [0x96, 0x01],
            ])
        #expect(
            Streams.LengthPrefix.uint8.bytes(for: 256) == nil && Streams.LengthPrefix.uint8.bytes(for: 255) == [255])
        #expect(Streams.LengthPrefix.uint16(.bigEndian).bytes(for: 65_536) == nil)
        #expect(Streams.LengthPrefix.uint32(.bigEndian).bytes(for: 1 << 32) == nil)
        #expect(Streams.LengthPrefix.uint64(.bigEndian).bytes(for: .max) == [0x7F] + [UInt8](repeating: 0xFF, count: 7))
        #expect(
            Streams.LengthPrefix.varint.bytes(for: 300) == [0xAC, 0x02]
                && Streams.LengthPrefix.varint.bytes(for: 0) == [0])
    }

    @Test(arguments: prefixes) func framesOfAnySizeAreRead(_ prefix: Streams.LengthPrefix) throws {
        var chance = SeededChance(7)
        let contents = [0, 1, 2, 127, 128, 255, 0].map { count in
            (0..<count).map { _ in UInt8.random(in: 0...255, using: &chance) }
        }
        let bytes = try contents.enumerated().flatMap { try prefix.frame($1, $0) }
        let outcome = Streams.Frames.frames(lengthPrefix: prefix).outcome(ofAnyCutting: bytes)
        #expect(outcome == Outcome(elements: contents.map { String(reflecting: Data($0)) }))
        // The contents are compared, too, not only the sizes.
        let serializer = Streams.Frames(lengthPrefix: prefix)
        var state = serializer.begin(ResponseHead(status: .ok))
        let whole = try bytes.cut(by: &chance).flatMap { try serializer.decode(ByteChunk($0), &state) }
        #expect(whole == contents.map { Data($0) })
    }

    @Test func incompleteFramesFail() {
        let frames = Streams.Frames.frames(lengthPrefix: .uint16(.bigEndian))
        let inside = frames.outcome(ofAnyCutting: [0, 1, 7, 0, 3, 1, 2])
        #expect(inside.elements.count == 1)
        #expect(inside.failure == "decoding failed: The stream ends inside frame 2: 2 of 3 bytes arrived.")
        let before = frames.outcome(ofAnyCutting: [0, 1, 7, 0])
        #expect(before.failure == "decoding failed: The stream ends inside the length of frame 2.")
        #expect(frames.outcome(ofAnyCutting: [UInt8]()) == Outcome())
    }

    @Test func frameSizesAreLimited() {
        let frames = Streams.Frames.frames(lengthPrefix: .varint, limit: 2)
        #expect(frames.outcome(ofAnyCutting: [2, 7, 7]).failure == nil)
        let long = frames.outcome(ofAnyCutting: [0, 3, 1, 2, 3])
        #expect(long.elements.count == 1)
        #expect(long.failure == "body too large: Frame 2 of the stream has more than 2 bytes.")
        let huge = Streams.Frames(lengthPrefix: .uint64(.bigEndian), limit: .gibibytes(1 << 40))
        let most = huge.outcome(ofAnyCutting: [UInt8](repeating: 0xFF, count: 8))
        #expect(most.failure?.hasPrefix("body too large") == true)
    }

    @Test func varintsBeyond64BitsFail() {
        let frames = Streams.Frames(lengthPrefix: .varint, limit: .bytes(.max))
        let eighty = [UInt8](repeating: 0x80, count: 9)
        #expect(frames.outcome(ofAnyCutting: eighty + [0x02]).failure?.contains("more than 64 bits") == true)
        #expect(frames.outcome(ofAnyCutting: eighty + [0x80]).failure?.contains("more than 64 bits") == true)
        #expect(frames.outcome(ofAnyCutting: eighty + [0x00]) == frames.outcome(ofAnyCutting: [0]), "a padded 0")
        #expect(frames.outcome(ofAnyCutting: eighty + [0x01]).failure?.hasPrefix("body too large") == true)
    }
}
