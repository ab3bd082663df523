// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import CurlewImages

/// The search for the end of JPEG, WebP and BMP files.
@Suite
struct ImageEndTests {
    private func length(_ format: ImageFormat, _ bytes: [UInt8], step: Int = 1) -> Int? {
        var end = ImageEnd(format)
        var position = 0
        while position < bytes.count {
            if end.isFound { return position }
            let next = min(position + step, bytes.count)
            end.append(Array(bytes[position..<next]).span)
            position = next
        }
        return end.isFound ? position : nil
    }

    @Test func endOfJPEGIsTheMarkerOutsideOfSegments() {
        let segment: [UInt8] = [0xFF, 0xE1, 0, 6, 0xFF, 0xD9, 0xFF, 0xD9]
        let scan: [UInt8] = [0xFF, 0xFF, 0xDA, 0, 3, 1, 0x55, 0xFF, 0x00, 0xD9, 0xFF, 0xD0, 0x12, 0xFF, 0xFF, 0xD7, 1]
        let table: [UInt8] = [0xFF, 0xC4, 0, 3, 0xFF, 0xFF, 0xDA, 0, 2, 0x13]
        let file = [0xFF, 0xD8] + segment + scan + table + [0xFF, 0xFF, 0xD9]
        #expect(length(.jpeg, file) == file.count)
        #expect(length(.jpeg, file.dropLast()) == nil)
        for step in 2...file.count { #expect(length(.jpeg, file, step: step) != nil) }
        // Bytes between segments, TEM and a second SOI have no length; a length below 2 counts as 2.
        let odd: [UInt8] = [0xFF, 0xD8, 7, 8, 0xFF, 0x01, 0xFF, 0xD8, 0xFF, 0xE0, 0, 0, 0xFF, 0xD9]
        #expect(length(.jpeg, odd) == odd.count)
    }

    @Test func scansAreCounted() {
        let scan: [UInt8] = [0xFF, 0xDA, 0, 2, 1]
        for (count, isRefused) in [(ImageEnd.maximumScans, false), (ImageEnd.maximumScans + 1, true)] {
            var end = ImageEnd(.jpeg)
            end.append(([0xFF, 0xD8] + (0..<count).flatMap { _ in scan }).span)
            #expect(end.hasTooManyScans == isRefused)
        }
    }

    @Test func lengthOfABitmapIsThatOfItsRows() {
        let bitmap = Array(ImageSamples.bmp(5, 3))
        #expect(bitmap.count == 54 + 16 * 3)
        for step in [1, 7, 60] { #expect(length(.bmp, bitmap + [1, 2, 3], step: step) != nil) }
        #expect(length(.bmp, bitmap) == bitmap.count)
        #expect(length(.bmp, bitmap.dropLast()) == nil)
        var flipped = bitmap
        flipped.replaceSubrange(22..<26, with: [0xFD, 0xFF, 0xFF, 0xFF])
        #expect(length(.bmp, flipped) == bitmap.count, "a negative height is the order of the rows")
        var compressed = bitmap
        compressed[30] = 1
        #expect(length(.bmp, compressed.prefix(40).map { $0 }) == 34)
        // The oldest form: 5 × 3 pixels of 24 bits from byte 26 on.
        let core: [UInt8] =
            Array("BM".utf8) + [0, 0, 0, 0, 0, 0, 0, 0, 26, 0, 0, 0, 12, 0, 0, 0, 5, 0, 3, 0, 1, 0, 24, 0]
            + [UInt8](repeating: 1, count: 48)
        #expect(length(.bmp, core) == core.count)
        #expect(length(.bmp, core.dropLast()) == nil)
    }

    @Test func lengthOfAWebPIsThatOfItsContainer() {
        let file = Array("RIFF".utf8) + [9, 0, 0, 0] + Array("WEBPVP8L1".utf8)
        for step in [1, 5, 30] { #expect(length(.webp, file, step: step) != nil) }
        #expect(length(.webp, file.dropLast()) == nil)
    }

    @Test func otherFormatsNeedNoSearch() {
        #expect(ImageEnd(.gif).isFound)
        #expect(ImageEnd(.png).isFound && !ImageEnd(.jpeg).isFound)
    }
}
