// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CurlewImages

/// WebP (RFC 9649).
@Suite struct HeaderWebPTests {
    private let exif = WebPFile.chunk("EXIF", TIFFFile.exif(6))

    /// §3.4 of RFC 9649 and §9.1 of RFC 6386: sides of 14 bits, in VP8 with two bits for scaling.
    @Test func simpleFilesStateTheSize() throws {
        #expect(try ImageHeader(WebPFile.file(WebPFile.lossy(16_383, 1))) == facts(.webp, 16_383, 1))
        #expect(try ImageHeader(WebPFile.file(WebPFile.lossy(0x4005, 0xC006))) == facts(.webp, 5, 6))
        #expect(try ImageHeader(WebPFile.file(WebPFile.lossless(16_384, 1))) == facts(.webp, 16_384, 1))
        #expect(
            try ImageHeader(WebPFile.file(WebPFile.lossless(1, 16_384, alpha: true)))
                == facts(.webp, 1, 16_384, alpha: true))
    }

    @Test func chunksAreChecked() {
        let damaged = [
            WebPFile.file(WebPFile.chunk("VP8 ", [1] + Array(WebPFile.lossy(5, 6).dropFirst(9)))),
            WebPFile.file(WebPFile.chunk("VP8 ", [UInt8](repeating: 0, count: 10))),
            WebPFile.file(WebPFile.chunk("VP8 ", [UInt8](repeating: 0, count: 9))),
            WebPFile.file(WebPFile.chunk("VP8L", [0x2E, 0, 0, 0, 0])),
            WebPFile.file(WebPFile.chunk("VP8L", [0x2F, 0, 0, 0, 0x20])),
            WebPFile.file(WebPFile.chunk("VP8L", [0x2F, 0, 0, 0])),
            WebPFile.file(WebPFile.chunk("VP8X", [UInt8](repeating: 0, count: 9))),
            WebPFile.file(WebPFile.chunk("VP8Y", [UInt8](repeating: 0, count: 10))),
            // The chunk is larger than the file.
            joined(ascii("RIFF"), little(12, 4), ascii("WEBP"), WebPFile.lossy(5, 6)),
            joined(ascii("RIFF"), little(0, 4), ascii("WEBP"), WebPFile.lossy(5, 6)),
        ]
        for (index, bytes) in damaged.enumerated() { #expect(flaw(bytes)?.kind == .malformed, "file \(index)") }
    }

    /// §2.7.1: the flags of the canvas.
    @Test func canvasStatesTheFacts() throws {
        #expect(try ImageHeader(WebPFile.file(WebPFile.canvas(1 << 24, 255, flags: 0))) == facts(.webp, 1 << 24, 255))
        #expect(try ImageHeader(WebPFile.file(WebPFile.canvas(5, 6, flags: 16))) == facts(.webp, 5, 6, alpha: true))
        #expect(
            try ImageHeader(WebPFile.file(WebPFile.canvas(5, 6, flags: 2)).dropLast(0).map { $0 })
                == facts(.webp, 5, 6))
        let canvas = WebPFile.canvas(5, 6, flags: 2)
        #expect(
            try ImageHeader(WebPFile.file(canvas, WebPFile.frame).dropLast(26))
                == facts(.webp, 5, 6, frames: .atLeast(1), animated: true))
        #expect(try ImageHeader(WebPFile.file(canvas, WebPFile.frame)) == facts(.webp, 5, 6))
        #expect(
            try ImageHeader(WebPFile.file(canvas, WebPFile.frame, WebPFile.frame, WebPFile.frame))
                == facts(.webp, 5, 6, frames: .count(3), animated: true))
        // Frames need the flag.
        #expect(
            try ImageHeader(WebPFile.file(WebPFile.canvas(5, 6, flags: 8), WebPFile.frame, WebPFile.frame, exif))
                == facts(.webp, 5, 6, .right))
    }

    /// §2.7.1.5: Exif comes behind the pixels, if the flag is set.
    @Test func exifIsReadBehindThePixels() throws {
        let pixels = WebPFile.lossless(5, 6)
        let old = WebPFile.chunk("EXIF", ascii("Exif\0\0") + TIFFFile.exif(5, .big))
        let canvas = WebPFile.canvas(5, 6, flags: 8)
        #expect(try ImageHeader(WebPFile.file(canvas, pixels, exif)) == facts(.webp, 5, 6, .right))
        #expect(try ImageHeader(WebPFile.file(canvas, pixels, old)) == facts(.webp, 5, 6, .leftMirrored))
        #expect(try ImageHeader(WebPFile.file(canvas, pixels)) == facts(.webp, 5, 6))
        #expect(try ImageHeader(WebPFile.file(canvas, pixels, WebPFile.chunk("EXIF", [1]))) == facts(.webp, 5, 6))
        #expect(
            try ImageHeader(WebPFile.file(canvas, WebPFile.chunk("EXIF", []), pixels, exif))
                == facts(.webp, 5, 6, .right))
        #expect(try ImageHeader(WebPFile.file(WebPFile.canvas(5, 6, flags: 0), pixels, exif)) == facts(.webp, 5, 6))
        let moving = WebPFile.canvas(5, 6, flags: 10)
        #expect(
            try ImageHeader(WebPFile.file(moving, WebPFile.frame, exif, WebPFile.frame))
                == facts(.webp, 5, 6, .right, frames: .count(2), animated: true))
    }
}
