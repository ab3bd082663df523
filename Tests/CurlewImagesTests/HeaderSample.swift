// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CurlewImages

/// A valid file and its header, for the rules that hold for all formats.
struct HeaderSample: Sendable, CustomTestStringConvertible {
    var name: String
    var bytes: [UInt8]
    var header: ImageHeader

    var testDescription: String { name }

    private init(_ name: String, _ bytes: [UInt8], _ header: ImageHeader) {
        (self.name, self.bytes, self.header) = (name, bytes, header)
    }

    static func all() throws -> [HeaderSample] { try raster() + containers() + text() }

    private static func raster() throws -> [HeaderSample] {
        let png = joined(
            PNGFile.start(40, 30, type: 6), PNGFile.data, PNGFile.chunk("eXIf", TIFFFile.exif(8)), PNGFile.end)
        let apng = joined(
            PNGFile.start(40, 30), PNGFile.animation(2), PNGFile.control, PNGFile.data, PNGFile.control,
            PNGFile.chunk("fdAT", [1]), PNGFile.end)
        let jpeg = joined(
            JPEGFile.start, JPEGFile.exif(6), JPEGFile.segment(0xDB, [1, 2]), JPEGFile.frame(640, 480), JPEGFile.scan)
        let gif = joined(
            GIFFile.start(20, 10, flags: 0x81), GIFFile.loop, GIFFile.control(1), GIFFile.image(flags: 0x80),
            GIFFile.image(blocks: [[1], [2, 3]]), GIFFile.end)
        let masks = [0x7C00, 0x3E0, 0x1F]
        return [
            .init("png", png, try facts(.png, 40, 30, .left, alpha: true)),
            .init("apng", apng, try facts(.png, 40, 30, frames: .count(2), animated: true)),
            .init("jpeg", jpeg, try facts(.jpeg, 640, 480, .right)),
            .init("gif", gif, try facts(.gif, 20, 10, frames: .count(2), alpha: true, animated: true)),
            .init("bmp-core", BMPFile.core(7, 8), try facts(.bmp, 7, 8)),
            .init("bmp-40", BMPFile.file(40, 7, -8), try facts(.bmp, 7, 8)),
            .init(
                "bmp-masks", BMPFile.file(40, 7, 8, bits: 16, compression: 3, masks: masks),
                try facts(.bmp, 7, 8, bits: 5)),
            .init(
                "bmp-124",
                BMPFile.file(124, 7, 8, bits: 32, compression: 3, masks: [0xFF, 0xFF00, 0xFF0000, 0xFF00_0000]),
                try facts(.bmp, 7, 8, alpha: true)),
        ]
    }

    private static func containers() throws -> [HeaderSample] {
        let exif = WebPFile.chunk("EXIF", TIFFFile.exif(3))
        let animation = WebPFile.file(WebPFile.canvas(50, 60, flags: 0x1A), WebPFile.frame, WebPFile.frame, exif)
        let icon = joined(
            ICOFile.file([ICOFile.entry(16, 16, at: 40), ICOFile.entry(0, 0, at: 40)]), [0, 0], PNGFile.start(512, 300))
        let file = TIFFFile(order: .big)
        let entries = [file.entry(258, count: 3, at: 80), file.entry(274, 5), file.entry(338, 2)]
        // The first directory has 66 bytes, and the bits of its channels follow.
        let tiff = joined(
            file.start(14), [1, 2, 3, 4, 5, 6], file.directory(90, 70, next: 86, entries), file.number(16, 2),
            file.number(16, 2), file.number(16, 2), file.directory(1, 2))
        let still = AVIFFile.file(
            [AVIFFile.size(64, 48), AVIFFile.depth(10), AVIFFile.box("irot", [1])], [1, 2, 0x83])
        let sequence = joined(
            AVIFFile.type("avis"), AVIFFile.meta(AVIFFile.primary, AVIFFile.properties([AVIFFile.size(64, 48)], [1])),
            AVIFFile.box("mdat", [0, 0, 0]), AVIFFile.box("moov", AVIFFile.track("pict", 64, 48, frames: 4)))
        return [
            .init("webp-lossy", WebPFile.file(WebPFile.lossy(300, 200)), try facts(.webp, 300, 200)),
            .init(
                "webp-lossless", WebPFile.file(WebPFile.lossless(300, 200, alpha: true)),
                try facts(.webp, 300, 200, alpha: true)),
            .init(
                "webp-exif", WebPFile.file(WebPFile.canvas(50, 60, flags: 8), WebPFile.lossy(50, 60), exif),
                try facts(.webp, 50, 60, .down)),
            .init(
                "webp-animation", animation,
                try facts(.webp, 50, 60, .down, frames: .count(2), alpha: true, animated: true)),
            .init("ico", icon, try facts(.ico, 512, 300, frames: .count(2), alpha: true)),
            .init("tiff", tiff, try facts(.tiff, 90, 70, .leftMirrored, frames: .count(2), bits: 16, alpha: true)),
            .init("avif", still, try facts(.avif, 64, 48, .left, bits: 10)),
            .init("avis", sequence, try facts(.avif, 64, 48, frames: .count(4), animated: true)),
        ]
    }

    private static func text() throws -> [HeaderSample] {
        let svg = """
            \u{FEFF}<?xml version="1.0"?>
            <!-- Drawn by hand. --><!DOCTYPE svg [ <!ENTITY a "]>"> <!-- it's --> ]>
            <svg:svg xmlns:svg="http://www.w3.org/2000/svg" width="1in" height = '2.54cm'><svg:g/></svg:svg>
            """
        let wide: [UInt8] =
            [0xFF, 0xFE] + ascii("<svg viewBox='0 0 30 10'/>").flatMap { (byte: UInt8) -> [UInt8] in [byte, 0] }
        let xbm = """
            /* A bitmap. */
            #define a_width 16
            #define a_x_hot -1
            #define a_height 7
            static unsigned char a_bits[] = { 0x00 };
            """
        return [
            .init("svg", ascii(svg), try facts(.svg, 96, 96, alpha: true)),
            .init("svg-utf16", wide, try facts(.svg, 30, 10, alpha: true)),
            .init("xbm", ascii(xbm), try facts(.xbm, 16, 7, bits: 1)),
        ]
    }
}
