// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CurlewImages

/// JPEG (ITU-T T.81, Annex B) and its Exif metadata.
@Suite struct HeaderJPEGTests {
    /// SOF0 to SOF15 state the size, but DHT, JPG and DAC have codes between them (Table B.1).
    @Test(arguments: 0xC0...0xCF as ClosedRange<UInt8>) func frameMarkersStateTheSize(_ marker: UInt8) throws {
        let bytes = joined(JPEGFile.start, JPEGFile.frame(5, 6, marker: marker), JPEGFile.scan)
        if [0xC4, 0xC8, 0xCC].contains(marker) {
            #expect(flaw(bytes)?.kind == .malformed)
        } else {
            #expect(try ImageHeader(bytes) == facts(.jpeg, 5, 6))
        }
    }

    @Test(arguments: [0, 1, 2, 8, 12, 16, 17] as [UInt8]) func samplesHaveBits(_ bits: UInt8) throws {
        let bytes = joined(JPEGFile.start, JPEGFile.frame(5, 6, bits: bits))
        if 2...16 ~= bits {
            #expect(try ImageHeader(bytes) == facts(.jpeg, 5, 6, bits: Int(bits)))
        } else {
            #expect(flaw(bytes)?.kind == .malformed)
        }
    }

    @Test func largestSidesAreRead() throws {
        #expect(try ImageHeader(JPEGFile.start + JPEGFile.frame(65_535, 65_535)) == facts(.jpeg, 65_535, 65_535))
    }

    /// Fill bytes, markers without a segment, and bytes that are no marker (B.1.1.2, B.1.1.3).
    @Test func otherBytesBetweenSegmentsAreSkipped() throws {
        let fillers: [[UInt8]] = [
            [0xFF], [0xFF, 0xFF, 0xFF], [0xFF, 0x01], [0xFF, 0xD0], [0xFF, 0xD7, 0xFF, 0xD8], [0x00, 0x12],
            [0xFF, 0x00],
        ]
        for filler in fillers {
            let bytes = joined(
                JPEGFile.start, JPEGFile.segment(0xE0, [1]), filler, JPEGFile.exif(3), filler, JPEGFile.frame(5, 6),
                filler,
                JPEGFile.scan)
            #expect(try ImageHeader(bytes) == facts(.jpeg, 5, 6, .down))
        }
    }

    @Test func segmentsAreChecked() {
        for length in [0, 1] {
            #expect(flaw(joined(JPEGFile.start, [0xFF, 0xDB], big(length, 2), [0, 0]))?.kind == .malformed)
        }
        #expect(flaw(JPEGFile.start + JPEGFile.segment(0xC0, [8, 0, 1, 0, 1]))?.kind == .malformed)
        #expect(flaw(JPEGFile.start + JPEGFile.scan)?.kind == .malformed)
        #expect(flaw(JPEGFile.start + [0xFF, 0xD9])?.kind == .malformed)
        let later = flaw(JPEGFile.start + JPEGFile.frame(5, 0))
        #expect(later?.kind == .unsupportedFormat && later?.hint != nil)
    }

    /// The first frame counts, and nothing behind the first scan does.
    @Test func scanEndsTheHeader() throws {
        let (start, frame, scan) = (JPEGFile.start, JPEGFile.frame(5, 6), JPEGFile.scan)
        #expect(try ImageHeader(joined(start, frame, JPEGFile.frame(9, 9), scan)) == facts(.jpeg, 5, 6))
        #expect(try ImageHeader(joined(start, frame, scan, JPEGFile.exif(3))) == facts(.jpeg, 5, 6))
        #expect(try ImageHeader(joined(start, frame, JPEGFile.exif(3), scan)) == facts(.jpeg, 5, 6, .down))
        #expect(try ImageHeader(joined(start, frame, [0xFF, 0xD9], JPEGFile.exif(3))) == facts(.jpeg, 5, 6))
    }

    @Test(arguments: 1...8, [ByteOrder.big, .little])
    func exifStatesTheOrientation(_ number: Int, _ order: ByteOrder) throws {
        let bytes = joined(JPEGFile.start, JPEGFile.exif(number, order), JPEGFile.frame(5, 6), JPEGFile.scan)
        #expect(try ImageHeader(bytes).orientation.rawValue == number)
    }

    /// Metadata without a valid orientation have no effect, and the next block may have one.
    @Test func damagedExifIsIgnored() throws {
        let name = ascii("Exif\0\0")
        let file = TIFFFile()
        let damaged: [[UInt8]] = [
            TIFFFile.exif(6), ascii("http://ns.adobe.com/xap/1.0/\0"), name + ascii("II*"),
            name + ascii("XX*\0") + little(8, 4),
            name + ascii("II*\0") + little(8, 3), name + file.start(0xFFFF_FFFF), name + file.start() + little(9, 1),
            name + file.start() + little(2, 2) + file.entry(256, 1), name + file.start() + file.directory([]),
            name + TIFFFile.exif(0), name + TIFFFile.exif(9),
            name + file.start() + file.directory([file.entry(274, count: 9, at: 8)]),
            name + file.start() + file.directory([joined(little(274, 2), little(2, 2), little(1, 4), little(6, 4))]),
            name + file.start() + file.directory([joined(little(274, 2), little(3, 2), little(0, 4), little(6, 4))]),
        ]
        for content in damaged {
            let block = JPEGFile.segment(0xE1, content)
            let (frame, scan) = (JPEGFile.frame(5, 6), JPEGFile.scan)
            #expect(try ImageHeader(joined(JPEGFile.start, block, frame, scan)) == facts(.jpeg, 5, 6))
            #expect(
                try ImageHeader(joined(JPEGFile.start, block, JPEGFile.exif(6), JPEGFile.exif(2), frame, scan))
                    == facts(.jpeg, 5, 6, .right))
        }
    }

    /// The largest segment has 65,533 bytes of content.
    @Test func largestExifIsRead() throws {
        let content = ascii("Exif\0\0") + TIFFFile.exif(6)
        let block = JPEGFile.segment(0xE1, content + [UInt8](repeating: 0, count: 65_533 - content.count))
        #expect(try ImageHeader(joined(JPEGFile.start, block, JPEGFile.frame(5, 6))) == facts(.jpeg, 5, 6, .right))
    }
}
