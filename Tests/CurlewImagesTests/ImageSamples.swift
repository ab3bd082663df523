// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewImages
import Foundation

/// Small image files.
enum ImageSamples {
    /// The pixels of an image whose left half is red and whose right half is blue.
    static func halves(_ width: Int, _ height: Int) -> [UInt8] {
        (0..<height).flatMap { _ in (0..<width).flatMap { $0 < width / 2 ? [255, 0, 0] : [0, 0, 255] as [UInt8] } }
    }

    static func png(_ width: Int, _ height: Int) async throws -> Data {
        try await DecodedImage(pixels: halves(width, height), width: width, height: height).encoded(as: .png)
    }

    static func jpeg(_ width: Int, _ height: Int) async throws -> Data {
        try await DecodedImage(pixels: halves(width, height), width: width, height: height)
            .encoded(as: .jpeg(quality: 95))
    }

    /// A JPEG file with an orientation (Exif 2.3 §4.6.4, tag 274).
    static func turned(_ jpeg: Data, _ orientation: UInt8) -> Data {
        let exif: [UInt8] =
            [0xFF, 0xE1, 0, 34] + Array("Exif\0\0MM\0*".utf8)
            + [0, 0, 0, 8, 0, 1, 0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0, 0, 0, 0, 0]
        return jpeg.prefix(2) + exif + jpeg.dropFirst(2)
    }

    private static func little(_ number: Int, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    }

    /// A bitmap of 24 bits for each pixel, in the order from the bottom.
    static func bmp(_ width: Int, _ height: Int) -> Data {
        let padding = [UInt8](repeating: 0, count: (4 - width * 3 % 4) % 4)
        let row = (0..<width).flatMap { $0 < width / 2 ? [0, 0, 255] : [255, 0, 0] as [UInt8] } + padding
        let size = 54 + row.count * height
        let head =
            Array("BM".utf8) + little(size, 4) + little(0, 4) + little(54, 4) + little(40, 4) + little(width, 4)
            + little(height, 4) + little(1, 2) + little(24, 2) + little(0, 24)
        return Data(head + (0..<height).flatMap { _ in row })
    }

    /// An icon with a bitmap of 32 bits for each pixel.
    static func icon(_ side: Int) -> Data {
        let pixels = (0..<side).flatMap { _ in
            (0..<side).flatMap { $0 < side / 2 ? [0, 0, 255, 255] : [255, 0, 0, 255] as [UInt8] }
        }
        let mask = [UInt8](repeating: 0, count: side * ((side + 31) / 32 * 4))
        let head = little(40, 4) + little(side, 4) + little(side * 2, 4) + little(1, 2) + little(32, 2) + little(0, 24)
        return icon([(side, head + pixels + mask)])
    }

    /// An icon file of several images.
    static func icon(_ images: [(side: Int, bytes: [UInt8])]) -> Data {
        var offset = 6 + 16 * images.count
        var directory = little(0, 2) + little(1, 2) + little(images.count, 2)
        for (side, bytes) in images {
            directory += [UInt8(truncatingIfNeeded: side), UInt8(truncatingIfNeeded: side), 0, 0] + little(1, 2)
            directory += little(32, 2) + little(bytes.count, 4) + little(offset, 4)
            offset += bytes.count
        }
        return Data(directory + images.flatMap(\.bytes))
    }

    /// A GIF file with one frame for each colour of `colours`, 0 for red, 1 for green and 2 for blue.
    ///
    /// Each pixel is a code of 8 bits, and a code to clear the table comes before the codes would become longer.
    static func gif(_ width: Int, _ height: Int, colours: [UInt8], centiseconds: Int = 10) -> Data {
        let palette: [UInt8] = [255, 0, 0, 0, 255, 0, 0, 0, 255] + [UInt8](repeating: 0, count: 125 * 3)
        var file = Array("GIF89a".utf8) + little(width, 2) + little(height, 2) + [0xF6, 0, 0] + palette
        for colour in colours {
            file += [0x21, 0xF9, 4, 0] + little(centiseconds, 2) + [0, 0]
            file += [0x2C] + little(0, 4) + little(width, 2) + little(height, 2) + [0, 7]
            var codes: [UInt8] = []
            for pixel in 0..<(width * height) {
                if pixel % 100 == 0 { codes.append(128) }
                codes.append(colour)
            }
            codes.append(129)
            for start in stride(from: 0, to: codes.count, by: 255) {
                let block = codes[start..<min(start + 255, codes.count)]
                file += [UInt8(block.count)] + block
            }
            file.append(0)
        }
        return Data(file + [0x3B])
    }

    private static func decoded(_ text: String) -> Data { Data(base64Encoded: text) ?? Data() }

    /// A progressive JPEG of 16 × 8 pixels in halves.
    static var progressive: Data {
        decoded(
            """
            /9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABQODxIPDRQSEBIXFRQYHjIhHhwcHj0sLiQySUBMS0dARkVQWnNiUFVtVkVGZIhlbXd7gYKBTmCNl4\
            x9lnN+gXz/2wBDARUXFx4aHjshITt8U0ZTfHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHz/wgARCAAI\
            ABADASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAT/xAAUAQEAAAAAAAAAAAAAAAAAAAAE/9oADAMBAAIQAxAAAAGSYQr/xAAUEAEAAA\
            AAAAAAAAAAAAAAAAAQ/9oACAEBAAEFAj//xAAWEQADAAAAAAAAAAAAAAAAAAAABEH/2gAIAQMBAT8Bbh//xAAWEQADAAAAAAAAAAAAAAAAAAAA\
            BEL/2gAIAQIBAT8BSo//xAAUEAEAAAAAAAAAAAAAAAAAAAAQ/9oACAEBAAY/Aj//xAAUEAEAAAAAAAAAAAAAAAAAAAAQ/9oACAEBAAE/IT//2g\
            AMAwEAAgADAAAAEIP/xAAVEQEBAAAAAAAAAAAAAAAAAADBAP/aAAgBAwEBPxBy/8QAFREBAQAAAAAAAAAAAAAAAAAAwQD/2gAIAQIBAT8QJv/E\
            ABQQAQAAAAAAAAAAAAAAAAAAABD/2gAIAQEAAT8QP//Z
            """)
    }

    /// A JPEG with the four colours of a printer, of 16 × 8 pixels in halves.
    static var cmyk: Data {
        decoded(
            """
            /9j/7gAOQWRvYmUAZAAAAAAA/9sAQwAUDg8SDw0UEhASFxUUGB4yIR4cHB49LC4kMklATEtHQEZFUFpzYlBVbVZFRmSIZW13e4GCgU5gjZeMfZ\
            ZzfoF8/8AAFAgACAAQBEMRAE0RAFkRAEsRAP/EABYAAQEBAAAAAAAAAAAAAAAAAAYAB//EABQQAQAAAAAAAAAAAAAAAAAAAAD/2gAOBEMATQBZ\
            AEsAAD8AZhgYZsZTZk//2Q==
            """)
    }

    /// A grey PNG of 4 × 2 pixels with 16 bits; the pixel at (x, y) has the value x · 16384 + y · 256.
    static var deep: Data {
        decoded(
            "iVBORw0KGgoAAAANSUhEUgAAAAQAAAACEAAAAAAKU/78AAAAFUlEQVR4nGNkYHBgcGBwYGBiZIBAAAoKAMi9KU5LAAAAAElFTkSuQmCC")
    }

    /// A TIFF of 4 × 2 pixels in halves, with LZW.
    static var tiff: Data {
        decoded(
            """
            SUkqAB4AAACAP8AAB2AAJhOCQN/wKEweEgB/wEAACgAAAQMAAQAAAAQAAAABAQMAAQAAAAIAAAACAQMAAwAAAJwAAAADAQMAAQAAAAUAAAAGAQ\
            MAAQAAAAIAAAARAQQAAQAAAAgAAAAVAQMAAQAAAAMAAAAWAQMAAQAAAAIAAAAXAQQAAQAAABUAAAAcAQMAAQAAAAEAAAAAAAAACAAIAAgA
            """)
    }

    /// An X bitmap of 8 × 2 pixels, whose left half is black.
    static var xbm: Data {
        Data("#define x_width 8\n#define x_height 2\nstatic char x_bits[] = {\n0x0f, 0x0f };\n".utf8)
    }
}

extension DecodedImage {
    /// Whether the left half is red and the right half blue, except for small differences.
    var hasHalves: Bool {
        let (left, right) = (self[width / 4, height / 2], self[width * 3 / 4, height / 2])
        return left.red > 200 && left.blue < 60 && right.blue > 200 && right.red < 60
    }
}
