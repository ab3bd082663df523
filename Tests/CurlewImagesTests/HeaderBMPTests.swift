// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CurlewImages

/// BMP (Microsoft, "Bitmap Header Types") and the icons made of it.
@Suite struct HeaderBMPTests {
    @Test(arguments: [16, 40, 52, 56, 64, 108, 124]) func headersOfAllSizesAreRead(_ size: Int) throws {
        #expect(try ImageHeader(BMPFile.file(size, 300, 200)) == facts(.bmp, 300, 200))
        // The first row is the top.
        #expect(try ImageHeader(BMPFile.file(size, 300, -200)) == facts(.bmp, 300, 200))
    }

    @Test(arguments: [0, 11, 13, 14, 15, 125, 1 << 31]) func otherSizesAreErrors(_ size: Int) {
        let bytes = joined(BMPFile.start, little(size, 4), [UInt8](repeating: 1, count: 200))
        #expect(flaw(bytes)?.kind == .malformed)
    }

    @Test func coreHeaderHasSidesOf16Bits() throws {
        #expect(try ImageHeader(BMPFile.core(65_535, 40_000, bits: 8)) == facts(.bmp, 65_535, 40_000))
        #expect(flaw(BMPFile.core(1, 1, bits: 5))?.kind == .malformed)
    }

    @Test(arguments: 0...40) func pixelsHaveBits(_ bits: Int) throws {
        let bytes = BMPFile.file(40, 3, 2, bits: bits)
        if [0, 1, 2, 4, 8, 16, 24, 32].contains(bits) {
            #expect(try ImageHeader(bytes) == facts(.bmp, 3, 2, bits: bits == 16 ? 5 : 8))
        } else {
            #expect(flaw(bytes)?.kind == .malformed)
        }
    }

    /// BI_BITFIELDS (3) and BI_ALPHABITFIELDS (6) have masks behind a short header, or in a long one.
    @Test func masksStateBitsAndAlpha() throws {
        let colours = [0xFF00, 0xFF_0000, 0xFF00_0000]
        for (size, alpha, hasAlpha) in [(52, 0xFF, false), (56, 0xFF, true), (56, 0, false), (108, 0xFF, true)] {
            let masks = size == 52 ? colours : colours + [alpha]
            let bytes = BMPFile.file(size, 3, 2, bits: 32, compression: 3, masks: masks)
            #expect(try ImageHeader(bytes) == facts(.bmp, 3, 2, alpha: hasAlpha), "\(size)")
        }
        let behind = BMPFile.file(40, 3, 2, bits: 32, compression: 6, masks: colours + [0xFF])
        #expect(try ImageHeader(behind) == facts(.bmp, 3, 2, alpha: true))
        let wide = BMPFile.file(40, 3, 2, bits: 32, compression: 3, masks: [0xFFFF_F000, 0xFFC, 3])
        #expect(try ImageHeader(wide) == facts(.bmp, 3, 2, bits: 16))
        let empty = BMPFile.file(40, 3, 2, bits: 16, compression: 3, masks: [0, 0, 0])
        #expect(try ImageHeader(empty) == facts(.bmp, 3, 2, bits: 1))
        // Without the compression the masks have no meaning; the number 3 means another one in OS/2.
        #expect(try !ImageHeader(BMPFile.file(124, 3, 2, bits: 32, masks: colours + [0xFF])).hasAlpha)
        #expect(try ImageHeader(BMPFile.file(64, 3, 2, bits: 32, compression: 3)) == facts(.bmp, 3, 2))
        #expect(try ImageHeader(BMPFile.file(40, 3, 2, bits: 24, compression: 3)) == facts(.bmp, 3, 2))
        #expect(flaw(Array(behind.dropLast()))?.kind == .truncated)
    }
}

/// ICO and CUR (Microsoft, "Icons").
@Suite struct HeaderICOTests {
    private func entry(_ width: UInt8, _ height: UInt8, bits: Int = 32, size: Int = 100) -> [UInt8] {
        ICOFile.entry(width, height, bits: bits, size: size, at: 100)
    }

    @Test func largestImageIsReported() throws {
        let bytes = ICOFile.file([entry(16, 16), entry(48, 32), entry(64, 2), entry(32, 32)])
        #expect(try ImageHeader(bytes) == facts(.ico, 48, 32, frames: .count(4), alpha: true))
        let cursor = ICOFile.file([entry(16, 16), entry(48, 32)], kind: 2)
        #expect(try ImageHeader(cursor) == facts(.ico, 48, 32, frames: .count(2), alpha: true))
    }

    /// A side of 0 means 256, unless a PNG file inside has another size.
    @Test func zeroMeans256() throws {
        let icon = ICOFile.file([ICOFile.entry(16, 16, at: 40), ICOFile.entry(0, 0, at: 40)])
        let expected = try facts(.ico, 256, 256, frames: .count(2), alpha: true)
        #expect(try ImageHeader(joined(icon, [0, 0], BMPFile.file(40, 256, 512).dropFirst(14).map { $0 })) == expected)
        #expect(try ImageHeader(joined(icon, [0, 0], PNGFile.start(256, 256))) == expected)
        #expect(try ImageHeader(joined(icon, [0, 0], PNGFile.start(0, 256))) == expected)
        #expect(try ImageHeader(joined(icon, [0, 0], PNGFile.start(1024, 9))).width == 1024)
        #expect(flaw(joined(icon, [0, 0], PNGFile.start(1 << 31, 9)))?.kind == .tooLarge)
        #expect(flaw(icon)?.kind == .truncated)
        #expect(try ImageHeader(ICOFile.file([entry(0, 8, size: 23)])) == facts(.ico, 256, 8, alpha: true))
    }

    /// With two images of 256 pixels, the one with more bits is read; a cursor has a position instead of the bits.
    @Test func bitsDecideBetweenEqualSizes() throws {
        let entries = [ICOFile.entry(0, 0, bits: 8, at: 38), ICOFile.entry(0, 0, bits: 32, at: 62)]
        let images = joined(Array(PNGFile.start(300, 300).prefix(24)), PNGFile.start(400, 400))
        #expect(try ImageHeader(ICOFile.file(entries) + images).width == 400)
        #expect(try ImageHeader(ICOFile.file(entries, kind: 2) + images).width == 300)
    }

    @Test func directoryIsChecked() {
        #expect(flaw(ICOFile.file([]))?.kind == .malformed)
        #expect(flaw(ICOFile.file([ICOFile.entry(16, 16, at: 21)]))?.kind == .malformed)
        #expect(flaw(joined([0, 0, 1, 0], little(0xFFFF, 2), entry(1, 1)))?.kind == .truncated)
    }
}
