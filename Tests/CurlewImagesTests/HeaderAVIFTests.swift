// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CurlewImages

/// AVIF (AVIF 1.1, ISO/IEC 23008-12 and ISO/IEC 14496-12).
@Suite struct HeaderAVIFTests {
    private typealias File = AVIFFile
    private let size = AVIFFile.size(64, 48)

    /// §6.5.10 and §6.5.12 of ISO/IEC 23008-12: counterclockwise quarter turns, and a mirror with axis 0 or 1.
    @Test func transformationsMakeAnOrientation() throws {
        let turns = [ImageHeader.Orientation.up, .left, .down, .right]
        for (angle, expected) in turns.enumerated() {
            let bytes = File.file([size, File.box("irot", [UInt8(angle)])], [1, 0x82])
            #expect(try ImageHeader(bytes) == facts(.avif, 64, 48, expected))
        }
        // After the turn: left and right, or top and bottom, exchange.
        let mirrors: [[ImageHeader.Orientation]] = [
            [.downMirrored, .leftMirrored, .upMirrored, .rightMirrored],
            [.upMirrored, .rightMirrored, .downMirrored, .leftMirrored],
        ]
        for (axis, row) in mirrors.enumerated() {
            for (angle, expected) in row.enumerated() {
                let properties = [size, File.box("irot", [UInt8(angle)]), File.box("imir", [UInt8(axis)])]
                #expect(try ImageHeader(File.file(properties, [1, 0x82, 0x83])).orientation == expected)
                // In the other order the turn goes the other way round, seen from the mirror.
                let other = row[(4 - angle) % 4]
                #expect(try ImageHeader(File.file(properties, [1, 0x83, 0x82])).orientation == other)
            }
        }
        // Two mirrors cancel each other.
        let twice = File.file([size, File.box("imir", [1])], [1, 2, 2])
        #expect(try ImageHeader(twice).orientation == .up)
    }

    @Test func propertiesStateBitsAndAlpha() throws {
        #expect(try ImageHeader(File.file([size, File.depth(12)], [1, 2])) == facts(.avif, 64, 48, bits: 12))
        for (flags, bits) in [(0x00, 8), (0x40, 10), (0x60, 12)] as [(UInt8, Int)] {
            let codec = File.box("av1C", [0x81, 0x20, flags, 0])
            #expect(try ImageHeader(File.file([size, codec], [1, 2])).bitsPerChannel == bits)
            #expect(try ImageHeader(File.file([size, codec, File.depth(9)], [1, 3, 2])).bitsPerChannel == 9)
        }
        #expect(try ImageHeader(File.file([size, File.full("pixi", [0, 0])], [1, 2])).bitsPerChannel == 8)
        #expect(try ImageHeader(File.file([size, File.depth(200)], [1, 2])).bitsPerChannel == 16)
        #expect(try ImageHeader(File.file([size, File.alpha], [1])) == facts(.avif, 64, 48, alpha: true))
        #expect(
            try ImageHeader(File.file([size, File.full("auxC", ascii("urn:mpeg:hevc:2015:auxid:1\0"))], [1])).hasAlpha)
        #expect(try !ImageHeader(File.file([size, File.full("auxC", ascii("urn:depth\0"))], [1])).hasAlpha)
    }

    /// Properties of other types have numbers as well, and numbers without a property have no effect.
    @Test func propertiesAreNumbered() throws {
        let other = File.box("colr", ascii("nclx"))
        #expect(
            try ImageHeader(File.file([other, File.size(1, 2), other, size], [4, 1, 0, 99])) == facts(.avif, 64, 48))
        #expect(flaw(File.file([other, size], [1]))?.kind == .malformed)
        #expect(flaw(File.file([], [1]))?.kind == .malformed)
        // The first size counts.
        #expect(try ImageHeader(File.file([File.size(1, 2), size], [2, 1])) == facts(.avif, 64, 48))
    }

    /// §9.3.2 of ISO/IEC 23008-12: numbers of 7 or 15 bits, items of 16 or 32 bits, boxes in any order.
    @Test func associationsHaveVersions() throws {
        let properties = File.box("ipco", File.size(1, 2), size)
        let wide = File.full(
            "ipma", version: 1, flags: 1, big(2, 4), big(7, 4), [0], big(70_000, 4), [1], big(0x8002, 2))
        let primary = File.full("pitm", version: 1, big(70_000, 4))
        #expect(
            try ImageHeader(File.type() + File.meta(primary, File.box("iprp", properties, wide)))
                == facts(.avif, 64, 48))
        // The primary item comes last, and other boxes between.
        let free = File.box("free", [1, 2, 3])
        let late = File.type() + free + File.meta(free, File.box("iprp", free, wide, properties), free, primary, free)
        #expect(try ImageHeader(late) == facts(.avif, 64, 48))
        // Two boxes of associations.
        let empty = File.full("ipma", big(0, 4))
        #expect(
            try ImageHeader(File.type() + File.meta(primary, File.box("iprp", properties, empty, wide)))
                == facts(.avif, 64, 48))
    }

    @Test func boxesAreChecked() {
        let (type, primary) = (File.type(), File.primary)
        var damaged = [
            type + File.meta(), type + File.meta(primary),
            type + File.meta(File.properties([size], [1])),
            type + File.full("meta", File.full("pitm", [1])),
            type + File.meta(joined(big(100, 4), ascii("pitm"), [UInt8](repeating: 0, count: 100))),
            type + joined(big(7, 4), ascii("free")),
            type + joined(big(1, 4), ascii("free"), big(15, 8)),
            type + joined(big(1, 4), ascii("free"), [1], big(0, 7)),
            type + joined(big(0, 4), ascii("free")),
            // The associations end before their items.
            type + File.meta(primary, File.box("iprp", File.full("ipma", big(2, 4), big(1, 2), [0]))),
            type + File.meta(primary, File.box("iprp", File.full("ipma", big(1, 4), big(1, 2), [2, 1]))),
        ]
        // A box is larger than the one around it, although its bytes are there.
        let properties = File.properties([size], [1])
        let wide = big(properties.count + 16, 4) + properties.dropFirst(4)
        damaged.append(type + File.meta(primary, wide) + File.box("free", [UInt8](repeating: 0, count: 8)) + type)
        for (index, bytes) in damaged.enumerated() { #expect(flaw(bytes)?.kind == .malformed, "file \(index)") }
    }

    @Test func propertiesAreBounded() {
        let other = File.box("free")
        let many = [[UInt8]](repeating: other, count: AVIFItem.maximumCount)
        #expect(flaw(File.file(many + [size], [1]))?.kind == .tooLarge)
        let associations = File.full(
            "ipma", big(20, 4), (0..<20).flatMap { big($0, 2) + [250] + [UInt8](repeating: 1, count: 250) })
        let late = File.type() + File.meta(File.box("iprp", File.box("ipco", size), associations), File.primary)
        #expect(flaw(late)?.kind == .tooLarge)
        // With the primary item first, only its own are kept.
        let early = File.type() + File.meta(File.primary, File.box("iprp", File.box("ipco", size), associations))
        #expect(flaw(early) == nil)
    }

    /// Boxes with a size of 64 bits, and a last one without a size.
    @Test func boxesHaveThreeSizes() throws {
        let meta = File.meta(File.primary, File.properties([size], [1]))
        let large = joined(big(1, 4), ascii("free"), big(20, 8), [1, 2, 3, 4])
        #expect(try ImageHeader(File.type() + large + meta) == facts(.avif, 64, 48))
        let open = joined(File.type(), big(0, 4), ascii("meta"), Array(meta.dropFirst(8)))
        #expect(try ImageHeader(open) == facts(.avif, 64, 48))
    }

    /// §7 of ISO/IEC 23008-12 and §3 of AVIF: a sequence has tracks.
    @Test func sequencesHaveTracks() throws {
        let meta = File.meta(File.primary, File.properties([size], [1]))
        let tracks = File.box(
            "moov", File.box("mvhd", [1]), File.track("auxv", 64, 48, frames: 5),
            File.track("pict", 64, 48, frames: 5, version: 1), File.track("pict", 9, 9, frames: 2))
        let wanted = try facts(.avif, 64, 48, frames: .count(5), alpha: true, animated: true)
        #expect(try ImageHeader(File.type("avis") + meta + tracks) == wanted)
        #expect(try ImageHeader(File.type("avis") + tracks + meta) == wanted)
        #expect(try ImageHeader(File.type("msf1", "avis") + tracks) == wanted)
        #expect(
            try ImageHeader(File.type("avis") + meta) == facts(.avif, 64, 48, frames: .atLeast(1), animated: true))
        let single = File.box("moov", File.track("pict", 64, 48, frames: 1))
        #expect(try ImageHeader(File.type("avis") + meta + single) == facts(.avif, 64, 48))
        // The item of a still image counts, even if the file has tracks as well.
        #expect(try ImageHeader(File.type("avif", "avis") + tracks + meta) == facts(.avif, 64, 48))
        #expect(flaw(File.type("avis") + File.box("moov", File.track("soun", 0, 0, frames: 9)))?.kind == .malformed)
        #expect(flaw(File.type("avis") + File.box("moov", File.track("pict", 0, 48, frames: 9)))?.kind == .malformed)
        // A damaged item leaves the size to the tracks.
        #expect(try ImageHeader(File.type("avis") + File.meta() + meta + tracks) == wanted)
    }
}
