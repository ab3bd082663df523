// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Small image files, written by hand from the specifications. Most have a header and no pixels.

@testable import CurlewImages

/// A number of some bytes, the largest first.
func big(_ value: Int, _ count: Int) -> [UInt8] {
    (0..<count).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
}

/// A number of some bytes, the smallest first.
func little(_ value: Int, _ count: Int) -> [UInt8] { big(value, count).reversed() }

func ascii(_ text: String) -> [UInt8] { Array(text.utf8) }

func joined(_ parts: [UInt8]...) -> [UInt8] { parts.flatMap { $0 } }

/// A header as a test expects it.
func facts(
    _ format: ImageFormat, _ width: Int, _ height: Int, _ orientation: ImageHeader.Orientation = .up,
    frames: ImageHeader.Frames = .count(1), bits: Int = 8, alpha: Bool = false, animated: Bool = false
) throws -> ImageHeader {
    var header = try ImageHeader(format, width: width, height: height)
    (header.orientation, header.frames, header.bitsPerChannel) = (orientation, frames, bits)
    (header.hasAlpha, header.isAnimated) = (alpha, animated)
    return header
}

/// The error of the initializer; nil if it succeeds.
func flaw(_ bytes: [UInt8]) -> ImageError? {
    do throws(ImageError) {
        _ = try ImageHeader(bytes)
        return nil
    } catch {
        return error
    }
}

/// TIFF files: an order of bytes and directories, which are also the content of Exif.
struct TIFFFile {
    var order = ByteOrder.little

    func number(_ value: Int, _ count: Int) -> [UInt8] { order == .big ? big(value, count) : little(value, count) }

    func start(_ directory: Int = 8, version: Int = 42) -> [UInt8] {
        joined(ascii(order == .big ? "MM" : "II"), number(version, 2), number(directory, 4))
    }

    /// An entry of type SHORT or LONG with one value.
    func entry(_ tag: Int, _ value: Int, size: Int = 2) -> [UInt8] {
        joined(
            number(tag, 2), number(size == 2 ? 3 : 4, 2), number(1, 4), number(value, size),
            [UInt8](repeating: 0, count: 4 - size))
    }

    /// An entry of type SHORT whose values lie elsewhere.
    func entry(_ tag: Int, count: Int, at offset: Int) -> [UInt8] {
        joined(number(tag, 2), number(3, 2), number(count, 4), number(offset, 4))
    }

    func directory(_ entries: [[UInt8]], next: Int = 0) -> [UInt8] {
        joined(number(entries.count, 2), entries.flatMap { $0 }, number(next, 4))
    }

    func directory(_ width: Int, _ height: Int, next: Int = 0, _ others: [[UInt8]] = []) -> [UInt8] {
        directory([entry(256, width), entry(257, height, size: 4)] + others, next: next)
    }

    /// Exif metadata with an orientation.
    static func exif(_ orientation: Int, _ order: ByteOrder = .little) -> [UInt8] {
        let file = TIFFFile(order: order)
        return file.start() + file.directory([file.entry(271, 7), file.entry(274, orientation)])
    }
}

enum PNGFile {
    static let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]

    static func chunk(_ type: String, _ content: [UInt8] = []) -> [UInt8] {
        let named = ascii(type) + content
        return joined(big(content.count, 4), named, big(PNGHeaderReader.checksum(of: named[...]), 4))
    }

    static func start(_ width: Int, _ height: Int, depth: UInt8 = 8, type: UInt8 = 2, tail: [UInt8] = [0, 0, 0])
        -> [UInt8]
    {
        signature + chunk("IHDR", joined(big(width, 4), big(height, 4), [depth, type], tail))
    }

    static let data = chunk("IDAT", [1, 2, 3])
    static let end = chunk("IEND")
    static let control = chunk("fcTL", [UInt8](repeating: 0, count: 26))

    static func animation(_ frames: Int) -> [UInt8] { chunk("acTL", big(frames, 4) + big(0, 4)) }
}

enum JPEGFile {
    static func segment(_ marker: UInt8, _ content: [UInt8]) -> [UInt8] {
        joined([0xFF, marker], big(content.count + 2, 2), content)
    }

    static func frame(_ width: Int, _ height: Int, marker: UInt8 = 0xC0, bits: UInt8 = 8) -> [UInt8] {
        segment(marker, joined([bits], big(height, 2), big(width, 2), [1, 1, 0x11, 0]))
    }

    static func exif(_ orientation: Int, _ order: ByteOrder = .big) -> [UInt8] {
        segment(0xE1, ascii("Exif\0\0") + TIFFFile.exif(orientation, order))
    }

    static let start: [UInt8] = [0xFF, 0xD8]
    static let scan = segment(0xDA, [1, 1, 0, 0, 63, 0]) + [0x12, 0x34, 0xFF, 0xD9]
}

enum GIFFile {
    static func start(_ width: Int, _ height: Int, flags: UInt8 = 0) -> [UInt8] {
        let table = flags & 0x80 == 0 ? 0 : 3 << (Int(flags & 7) + 1)
        return joined(
            ascii("GIF89a"), little(width, 2), little(height, 2), [flags, 0, 0], [UInt8](repeating: 9, count: table))
    }

    static func image(flags: UInt8 = 0, blocks: [[UInt8]] = [[1, 2, 3]]) -> [UInt8] {
        let table = flags & 0x80 == 0 ? 0 : 3 << (Int(flags & 7) + 1)
        return joined(
            [0x2C], little(0, 4), little(1, 2), little(1, 2), [flags], [UInt8](repeating: 0x2C, count: table), [2],
            blocks.flatMap { [UInt8($0.count)] + $0 }, [0])
    }

    static func control(_ flags: UInt8) -> [UInt8] { [0x21, 0xF9, 4, flags, 10, 0, 0, 0] }
    static let loop = joined([0x21, 0xFF, 11], ascii("NETSCAPE2.0"), [3, 1, 0, 0, 0])
    static let end: [UInt8] = [0x3B]
}

enum WebPFile {
    static func chunk(_ type: String, _ content: [UInt8]) -> [UInt8] {
        joined(ascii(type), little(content.count, 4), content, content.count % 2 == 1 ? [0] : [])
    }

    static func file(_ chunks: [UInt8]...) -> [UInt8] {
        let content = ascii("WEBP") + chunks.flatMap { $0 }
        return joined(ascii("RIFF"), little(content.count, 4), content)
    }

    static func lossy(_ width: Int, _ height: Int) -> [UInt8] {
        chunk("VP8 ", joined([0x10, 0, 0, 0x9D, 0x01, 0x2A], little(width, 2), little(height, 2), [7]))
    }

    static func lossless(_ width: Int, _ height: Int, alpha: Bool = false) -> [UInt8] {
        let fields = (width - 1) | (height - 1) << 14 | (alpha ? 1 << 28 : 0)
        return chunk("VP8L", joined([0x2F], little(fields, 4), [1, 2]))
    }

    /// Flags: 2 animation, 8 Exif, 16 alpha.
    static func canvas(_ width: Int, _ height: Int, flags: UInt8) -> [UInt8] {
        chunk("VP8X", joined([flags, 0, 0, 0], little(width - 1, 3), little(height - 1, 3)))
    }

    static let frame = chunk("ANMF", [UInt8](repeating: 0, count: 17))
}

enum BMPFile {
    static func core(_ width: Int, _ height: Int, bits: Int = 24) -> [UInt8] {
        joined(start, little(12, 4), little(width, 2), little(height, 2), little(1, 2), little(bits, 2))
    }

    /// A header with masks, if the size has room for them, or else behind the header.
    static func file(
        _ size: Int, _ width: Int, _ height: Int, bits: Int = 24, compression: Int = 0, masks: [Int] = []
    ) -> [UInt8] {
        var header = joined(
            little(size, 4), little(width, 4), little(height, 4), little(1, 2), little(bits, 2), little(compression, 4),
            [UInt8](repeating: 0, count: 20))
        let values = masks.flatMap { little($0, 4) }
        if size < 52 { return joined(start, Array(header.prefix(size)), values) }
        header += values
        return joined(start, header, [UInt8](repeating: 0, count: max(0, size - header.count)))
    }

    static let start = joined(ascii("BM"), little(0, 12))
}

enum ICOFile {
    static func file(_ entries: [[UInt8]], kind: UInt8 = 1) -> [UInt8] {
        joined([0, 0, kind, 0], little(entries.count, 2), entries.flatMap { $0 })
    }

    static func entry(_ width: UInt8, _ height: UInt8, bits: Int = 32, size: Int = 100, at offset: Int) -> [UInt8] {
        joined([width, height, 0, 0], little(1, 2), little(bits, 2), little(size, 4), little(offset, 4))
    }
}

enum AVIFFile {
    static func box(_ type: String, _ contents: [UInt8]...) -> [UInt8] {
        let content = contents.flatMap { $0 }
        return joined(big(content.count + 8, 4), ascii(type), content)
    }

    /// A box with a version and flags.
    static func full(_ type: String, version: UInt8 = 0, flags: Int = 0, _ contents: [UInt8]...) -> [UInt8] {
        box(type, [version], big(flags, 3), contents.flatMap { $0 })
    }

    static func type(_ major: String = "avif", _ compatible: String = "mif1miaf") -> [UInt8] {
        box("ftyp", ascii(major), big(0, 4), ascii(compatible))
    }

    static func size(_ width: Int, _ height: Int) -> [UInt8] { full("ispe", big(width, 4), big(height, 4)) }
    static func depth(_ bits: UInt8) -> [UInt8] { full("pixi", [3, bits, bits, bits]) }
    static let alpha = full("auxC", ascii("urn:mpeg:mpegB:cicp:systems:auxiliary:alpha\0"))
    static let primary = full("pitm", big(1, 2))

    /// Properties, and their numbers for item 1, which is the primary one.
    static func properties(_ properties: [[UInt8]], _ numbers: [UInt8]) -> [UInt8] {
        box(
            "iprp", box("ipco", properties.flatMap { $0 }),
            full("ipma", big(2, 4), big(9, 2), [1, 0x81], big(1, 2), [UInt8(numbers.count)], numbers))
    }

    static func meta(_ parts: [UInt8]...) -> [UInt8] { full("meta", parts.flatMap { $0 }) }

    static func file(_ properties: [[UInt8]], _ numbers: [UInt8]) -> [UInt8] {
        type() + meta(primary, self.properties(properties, numbers)) + box("mdat", [1, 2, 3])
    }

    static func track(_ handler: String, _ width: Int, _ height: Int, frames: Int, version: UInt8 = 0) -> [UInt8] {
        let times = [UInt8](repeating: 0, count: version == 1 ? 84 : 72)
        let head = full("tkhd", version: version, times, big(width << 16, 4), big(height << 16, 4))
        return box(
            "trak", head,
            box(
                "mdia", full("hdlr", big(0, 4), ascii(handler), big(0, 12)),
                box("minf", box("stbl", full("stsz", big(0, 4), big(frames, 4))))))
    }
}
