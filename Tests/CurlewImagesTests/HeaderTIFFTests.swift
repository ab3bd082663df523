// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CurlewImages

/// TIFF (TIFF 6.0).
@Suite struct HeaderTIFFTests {
    private let file = TIFFFile()

    private func page(_ others: [UInt8]...) -> [UInt8] { file.start() + file.directory(30, 20, others) }

    @Test(arguments: [ByteOrder.little, .big]) func bothOrdersAreRead(_ order: ByteOrder) throws {
        let file = TIFFFile(order: order)
        for number in 1...8 {
            let orientation = try #require(ImageHeader.Orientation(rawValue: number))
            let bytes = file.start() + file.directory(300, 70_000, [file.entry(258, 8), file.entry(274, number)])
            #expect(try ImageHeader(bytes) == facts(.tiff, 300, 70_000 & 0xFFFF_FFFF, orientation))
        }
    }

    /// §8: defaults and meanings of the tags.
    @Test func tagsStateTheFacts() throws {
        #expect(try ImageHeader(page()) == facts(.tiff, 30, 20, bits: 1))
        #expect(try ImageHeader(page(file.entry(258, 12))) == facts(.tiff, 30, 20, bits: 12))
        #expect(try ImageHeader(page(file.entry(258, 32))) == facts(.tiff, 30, 20, bits: 16))
        #expect(try ImageHeader(page(file.entry(258, 0))) == facts(.tiff, 30, 20, bits: 1))
        #expect(try ImageHeader(page(file.entry(258, 4), file.entry(262, 3))) == facts(.tiff, 30, 20))
        #expect(try ImageHeader(page(file.entry(274, 0))) == facts(.tiff, 30, 20, bits: 1))
        #expect(try ImageHeader(page(file.entry(274, 9))) == facts(.tiff, 30, 20, bits: 1))
        for (value, alpha) in [(0, false), (1, true), (2, true), (3, false)] {
            #expect(try ImageHeader(page(file.entry(338, value))).hasAlpha == alpha)
        }
        #expect(try ImageHeader(page(file.entry(338, count: 3, at: 8))).hasAlpha)
        // The first entry of a tag counts, and unknown types are skipped.
        let double = file.directory([
            file.entry(256, 5), file.entry(256, 6), file.entry(257, 7),
            joined(little(258, 2), little(12, 2), little(1, 8)),
        ])
        #expect(try ImageHeader(file.start() + double) == facts(.tiff, 5, 7, bits: 1))
        // A side may be a BYTE.
        let bytes = file.directory([
            joined(little(256, 2), little(1, 2), little(1, 4), [9, 1, 1, 1]), file.entry(257, 7),
        ])
        #expect(try ImageHeader(file.start() + bytes) == facts(.tiff, 9, 7, bits: 1))
    }

    @Test func directoryIsChecked() {
        let damaged = [
            file.start(0), file.start(7), file.start() + file.directory([]),
            file.start() + file.directory([file.entry(256, 1)]), file.start() + file.directory([file.entry(257, 1)]),
            file.start() + file.directory([file.entry(256, count: 9, at: 8), file.entry(257, 1)]),
        ]
        for bytes in damaged { #expect(flaw(bytes)?.kind == .malformed) }
        #expect(flaw(file.start() + little(0xFFFF, 2) + file.entry(256, 1))?.kind == .truncated)
        for order in [ByteOrder.big, .little] {
            let error = flaw(TIFFFile(order: order).start(version: 43))
            #expect(error?.kind == .unsupportedFormat && error?.hint != nil)
        }
    }

    /// Bits of several channels lie before or behind the directory.
    @Test func bitsElsewhereAreRead() throws {
        let bits = little(16, 2) + little(16, 2) + little(16, 2)
        let size = file.directory(30, 20, [file.entry(258, 1)]).count
        let behind = joined(
            file.start(), file.directory(30, 20, [file.entry(258, count: 3, at: 8 + size)]), bits)
        #expect(try ImageHeader(behind) == facts(.tiff, 30, 20, bits: 16))
        let before = joined(file.start(14), bits, file.directory(30, 20, [file.entry(258, count: 3, at: 8)]))
        #expect(try ImageHeader(before) == facts(.tiff, 30, 20, bits: 16))
        // Too far behind the directory, where the image data may come first: the usual number.
        let far = joined(file.start(), file.directory(30, 20, [file.entry(258, count: 3, at: 200_000)]))
        #expect(try ImageHeader(far) == facts(.tiff, 30, 20))
        // Behind 100,000 bytes of image data: directly behind the directory, kept from the start, and lost.
        let data = [UInt8](repeating: 5, count: 100_000)
        let start = 14 + data.count
        for (offset, expected) in [(start + size, 16), (8, 16), (65_534, 0x0505), (70_000, 8)] {
            let bytes = joined(
                file.start(start), bits, data, file.directory(30, 20, [file.entry(258, count: 3, at: offset)]), bits)
            #expect(try ImageHeader(bytes).bitsPerChannel == min(16, expected), "\(offset)")
        }
    }

    @Test func directoriesAreCounted() throws {
        let size = file.directory(1, 1).count
        let pages = joined(file.directory(30, 20, next: 8 + size), file.directory(1, 1, next: 8 + 2 * size))
        #expect(try ImageHeader(file.start() + pages).frames == .atLeast(2))
        #expect(
            try ImageHeader(joined(file.start(), pages, file.directory(2, 2)))
                == facts(.tiff, 30, 20, frames: .count(3), bits: 1))
        // An empty directory ends the count.
        #expect(try ImageHeader(joined(file.start(), pages, [0, 0])).frames == .atLeast(2))
    }

    /// A chain that returns to a counted directory ends.
    @Test func loopsEnd() throws {
        let size = file.directory(1, 1).count
        let own = file.start() + file.directory(30, 20, next: 8)
        #expect(try ImageHeader(own) == facts(.tiff, 30, 20, bits: 1))
        let loop = joined(
            file.start(), file.directory(30, 20, next: 8 + size), file.directory(1, 1, next: 8 + 2 * size),
            file.directory(1, 1, next: 8 + size))
        #expect(try ImageHeader(loop).frames == .count(3))
    }

    /// Directories may come in any order within the first 64 KiB, and in the order of the file behind them.
    @Test func directoriesBehindLargeData() throws {
        let size = file.directory(1, 1).count
        let second = file.directory(1, 1, next: 200_000)
        var bytes = [UInt8](repeating: 0, count: 300_000)
        func put(_ part: [UInt8], at offset: Int) { bytes.replaceSubrange(offset..<offset + part.count, with: part) }
        put(file.start(100_000), at: 0)
        put(file.directory(30, 20, next: 1000), at: 100_000)
        put(second, at: 1000)
        put(file.directory(1, 1, next: 250_000), at: 200_000)
        put(file.directory(1, 1, next: 0), at: 250_000)
        #expect(try ImageHeader(bytes) == facts(.tiff, 30, 20, frames: .count(4), bits: 1))
        // The fourth lies before the third, and behind the kept bytes; or it begins in them.
        for offset in [150_000, 65_536 - size + 1] {
            put(file.directory(1, 1, next: offset), at: 200_000)
            #expect(try ImageHeader(bytes) == facts(.tiff, 30, 20, frames: .atLeast(3), bits: 1))
        }
        put(file.directory(1, 1), at: 65_536 - size)
        put(file.directory(1, 1, next: 65_536 - size), at: 200_000)
        #expect(try ImageHeader(bytes).frames == .count(4))
        // The loop through kept directories ends, also with a directory behind them.
        put(file.directory(1, 1, next: 1000), at: 200_000)
        #expect(try ImageHeader(bytes).frames == .count(3))
    }
}
