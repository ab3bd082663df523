// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CurlewImages

/// PNG (W3C PNG, third edition).
@Suite struct HeaderPNGTests {
    /// The header of the smallest PNG file, with a CRC from elsewhere.
    @Test func checksumOfAKnownFileIsRight() throws {
        let bytes =
            PNGFile.signature + [
                0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52, 0, 0, 0, 1, 0, 0, 0, 1, 8, 6, 0, 0, 0, 0x1F, 0x15, 0xC4, 0x89,
            ]
        #expect(try ImageHeader(bytes) == facts(.png, 1, 1, frames: .atLeast(1), alpha: true))
        // CRC-32/ISO-HDLC has this check value.
        #expect(PNGHeaderReader.checksum(of: ascii("123456789")[...]) == 0xCBF4_3926)
    }

    /// The permitted bits of each colour type (§11.2.1).
    @Test(arguments: 0...7 as ClosedRange<UInt8>) func colourTypesHaveDepths(_ type: UInt8) throws {
        let permitted: [UInt8: [UInt8]] = [
            0: [1, 2, 4, 8, 16], 2: [8, 16], 3: [1, 2, 4, 8], 4: [8, 16], 6: [8, 16],
        ]
        for depth in 0...17 as ClosedRange<UInt8> {
            let bytes = PNGFile.start(3, 2, depth: depth, type: type) + PNGFile.data
            if permitted[type]?.contains(depth) == true {
                #expect(
                    try ImageHeader(bytes)
                        == facts(.png, 3, 2, bits: type == 3 ? 8 : Int(depth), alpha: type == 4 || type == 6))
            } else {
                #expect(flaw(bytes)?.kind == .malformed)
            }
        }
    }

    @Test func headerChunkIsChecked() {
        let good = PNGFile.start(3, 2)
        for index in 8..<33 {
            var bytes = good
            bytes[index] ^= 1
            #expect(flaw(bytes)?.kind == .malformed, "byte \(index)")
        }
        for tail in [[1, 0, 0], [0, 1, 0], [0, 0, 2]] as [[UInt8]] {
            #expect(flaw(PNGFile.start(3, 2, tail: tail))?.kind == .malformed)
        }
        let apple = PNGFile.signature + PNGFile.chunk("CgBI", [0, 0, 0, 0]) + good.dropFirst(8)
        #expect(flaw(apple)?.kind == .unsupportedFormat)
    }

    /// A chunk acTL before the data makes an animation (§11.3.6).
    @Test func animationsAreAnnouncedAndCounted() throws {
        let start = PNGFile.start(3, 2)
        let (control, data, end) = (PNGFile.control, PNGFile.data, PNGFile.end)
        #expect(try ImageHeader(start + end) == facts(.png, 3, 2))
        #expect(try ImageHeader(start + data) == facts(.png, 3, 2))
        let announced = start + PNGFile.animation(3)
        #expect(try ImageHeader(announced) == facts(.png, 3, 2, frames: .atLeast(1), animated: true))
        let counted = joined(announced, control, data, control)
        #expect(try ImageHeader(counted) == facts(.png, 3, 2, frames: .atLeast(2), animated: true))
        #expect(try ImageHeader(counted + end) == facts(.png, 3, 2, frames: .count(2), animated: true))
        // The default image, which comes first here, is no frame.
        #expect(try ImageHeader(joined(announced, data, control, end)).frames == .count(1))
        // One frame is no animation; nor are announcements of 0 frames, behind the data, or of a wrong size.
        let still = try facts(.png, 3, 2)
        #expect(try ImageHeader(joined(start, PNGFile.animation(1), control, data, end)) == still)
        #expect(try ImageHeader(joined(announced, control, data, end)) == still)
        #expect(try ImageHeader(joined(announced, data, end)) == still)
        #expect(try ImageHeader(joined(start, PNGFile.animation(0), control, control, data, end)) == still)
        #expect(try ImageHeader(joined(start, data, PNGFile.animation(3), control, control, end)) == still)
        #expect(try ImageHeader(joined(start, PNGFile.chunk("acTL", [1]), control, control, data, end)) == still)
    }

    @Test func ancillaryChunksAddFacts() throws {
        let start = PNGFile.start(3, 2)
        #expect(try ImageHeader(joined(start, PNGFile.chunk("tRNS", [0, 0]), PNGFile.data)).hasAlpha)
        for order in [ByteOrder.big, .little] {
            let exif = PNGFile.chunk("eXIf", TIFFFile.exif(7, order))
            #expect(try ImageHeader(joined(start, exif, PNGFile.data)).orientation == .rightMirrored)
            #expect(try ImageHeader(joined(start, PNGFile.data, exif, PNGFile.end)).orientation == .rightMirrored)
            // The first valid chunk counts.
            let others = [
                PNGFile.chunk("eXIf"), PNGFile.chunk("eXIf", [1]), exif, PNGFile.chunk("eXIf", TIFFFile.exif(2)),
            ]
            #expect(try ImageHeader(start + others.flatMap { $0 }).orientation == .rightMirrored)
        }
        // A block of more than 64 KiB is read in part.
        let long = PNGFile.chunk("eXIf", TIFFFile.exif(4) + [UInt8](repeating: 0, count: 100_000))
        #expect(try ImageHeader(joined(start, long, PNGFile.end)) == facts(.png, 3, 2, .downMirrored))
    }
}
