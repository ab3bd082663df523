// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CurlewImages

/// GIF (GIF89a specification).
@Suite struct HeaderGIFTests {
    private let start = GIFFile.start(9, 7)
    private let image = GIFFile.image()
    private let end = GIFFile.end

    @Test func imagesAreCounted() throws {
        #expect(try ImageHeader(start + end) == facts(.gif, 9, 7))
        #expect(try ImageHeader(joined(start, image)) == facts(.gif, 9, 7, frames: .atLeast(1)))
        #expect(try ImageHeader(joined(start, image, end)) == facts(.gif, 9, 7))
        #expect(
            try ImageHeader(joined(start, image, image)) == facts(.gif, 9, 7, frames: .atLeast(2), animated: true))
        #expect(
            try ImageHeader(joined(start, image, image, end)) == facts(.gif, 9, 7, frames: .count(2), animated: true))
        // Nothing counts behind the trailer (§27).
        #expect(try ImageHeader(joined(start, image, end, image)) == facts(.gif, 9, 7))
    }

    /// Tables of colours have 3 · 2^(n + 1) bytes (§18, §20).
    @Test(arguments: 0...7 as ClosedRange<UInt8>) func tablesAreSkipped(_ bits: UInt8) throws {
        let flags = 0x80 | bits
        let bytes = joined(
            GIFFile.start(9, 7, flags: flags), GIFFile.image(flags: flags), GIFFile.image(flags: bits), end)
        #expect(try ImageHeader(bytes).frames == .count(2))
    }

    @Test func subBlocksAreSkipped() throws {
        let noise = [UInt8](repeating: 0x2C, count: 255)
        let bytes = joined(
            start, GIFFile.loop, [0x21, 0xFE, 3, 0x2C, 0x3B, 0x21, 1, 0x2C, 0], [0x21, 0x01, 0],
            GIFFile.image(blocks: [noise, noise, [0]]), GIFFile.image(blocks: []), end)
        #expect(try ImageHeader(bytes).frames == .count(2))
    }

    /// A graphic control extension says whether a colour is transparent (§23).
    @Test func controlExtensionStatesTransparency() throws {
        #expect(try ImageHeader(joined(start, GIFFile.control(1), image, end)) == facts(.gif, 9, 7, alpha: true))
        #expect(try ImageHeader(joined(start, GIFFile.control(0xFE), image, end)) == facts(.gif, 9, 7))
        #expect(try ImageHeader(joined(start, [0x21, 0xF9, 0], image, end)) == facts(.gif, 9, 7))
        #expect(try ImageHeader(joined(start, [0x21, 0xF9, 1, 1, 0], image, end)) == facts(.gif, 9, 7, alpha: true))
    }

    @Test func oldVersionIsRead() throws {
        #expect(
            try ImageHeader(joined(ascii("GIF87a"), start.dropFirst(6).map { $0 }, image, end)) == facts(.gif, 9, 7))
    }
}
