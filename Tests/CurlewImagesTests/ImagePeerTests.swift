// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import CurlewImages

/// Compares decoded pixels with those of Pillow, for files that Pillow writes, and for broken files.
@Suite(
    .enabled(if: Pillow.isInstalled, "Scripts/setup-peers installs Pillow from PyPI"),
    .timeLimit(.minutes(5)))
struct ImagePeerTests {
    /// A file, and the pixels that Pillow finds in it: RGBA in `pixels`, or an error.
    private struct Answer: Decodable {
        var file: String
        /// The largest permitted difference of a channel.
        var tolerance: Int
        var width: Int?
        var height: Int?
        var frames: Int?
        var pixels: String?
        var error: String?
    }

    private static let start = #"""
        import itertools, json, os, random, sys
        sys.path.insert(0, sys.argv[1])
        from PIL import Image, ImageOps
        folder = sys.argv[2]
        numbers = itertools.count()
        chance = random.Random(29)

        def picture(mode, size, noise=0):
            image = Image.linear_gradient("L").resize(size)
            image = Image.merge("RGB", [image, image.transpose(Image.FLIP_TOP_BOTTOM), image.point(lambda v: 255 - v)])
            if noise:
                image.putdata([tuple(chance.randrange(256) for _ in range(3)) for _ in range(size[0] * size[1])])
            return image.convert(mode)

        def answer(path, tolerance=0):
            result = {"file": os.path.basename(path), "tolerance": tolerance}
            try:
                with Image.open(path) as image:
                    image.load()
                    # TIFF and ICO files have pages and sizes instead of frames.
                    frames = 1 if image.format in ("TIFF", "ICO") else getattr(image, "n_frames", 1)
                    if image.mode.startswith("I;16"): image = image.point(lambda v: v / 256).convert("L")
                    # A set bit of an X bitmap is black; Pillow reads it as white.
                    if image.format == "XBM": image = ImageOps.invert(image.convert("L"))
                    image = ImageOps.exif_transpose(image).convert("RGBA")
                    pixels = path + ".rgba"
                    open(pixels, "wb").write(image.tobytes())
                    result.update(width=image.width, height=image.height, frames=frames, pixels=os.path.basename(pixels))
            except Exception as error:
                result["error"] = str(error)
            print(json.dumps(result))

        def write(kind, image, tolerance=0, **options):
            path = f"{folder}/{next(numbers)}.{kind}"
            image.save(path, **options)
            answer(path, tolerance)

        def exif(number):
            data = Image.Exif()
            data[274] = number
            return data
        """#

    private static let whole =
        start + #"""

            for size in (1, 1), (40, 30):
                write("webp", picture("RGB", size, 1), lossless=True)
                write("webp", picture("RGBA", size), lossless=True, exact=True)
            for number in range(1, 9):
                write("webp", picture("RGB", (30, 20), 1), lossless=True, exif=exif(number))
                write("avif", picture("RGB", (64, 32)), 12, quality=100, subsampling="4:4:4", exif=exif(number))
            pages = [picture("RGB", (40, 30), 1) for _ in range(3)]
            write("webp", pages[0], save_all=True, append_images=pages[1:], duration=90, lossless=True)
            write("gif", pages[0].convert("P"), save_all=True, append_images=[page.convert("P") for page in pages[1:]])
            sizes = [(1, 1), (17, 5), (40, 30), (3, 200), (256, 255)]
            modes = {
                "png": ["1", "L", "LA", "P", "RGB", "RGBA"], "gif": ["1", "L", "P", "RGB"],
                "bmp": ["1", "L", "P", "RGB"], "tiff": ["1", "L", "P", "RGB", "RGBA"], "xbm": ["1"],
            }
            for kind, names in modes.items():
                for mode, size in itertools.product(names, sizes):
                    for noise in (0, 1):
                        write(kind, picture(mode, size, noise))
            # libjpeg may round differently in another version.
            for size in sizes:
                for noise in (0, 1):
                    for options in {}, {"progressive": True}, {"quality": 20}, {"subsampling": 0}, {"subsampling": 1}:
                        write("jpeg", picture("RGB", size, noise), 3, **options)
                    write("jpeg", picture("L", size, noise), 3)
            for number in range(1, 9):
                write("jpeg", picture("RGB", (30, 20)), 3, exif=exif(number))
                write("png", picture("RGB", (30, 20), 1), exif=exif(number))
                write("tiff", picture("RGB", (30, 20), 1), exif=exif(number))
            for compression in "tiff_lzw", "tiff_adobe_deflate", "packbits":
                write("tiff", picture("RGB", (40, 30), 1), compression=compression)
            for size in 16, 48, 256:
                for kind in "png", "bmp":
                    write("ico", picture("RGBA", (size, size), 1), sizes=[(size, size)], bitmap_format=kind)
            """#

    /// Files that end early, or in which bytes have changed.
    private static let broken =
        start
            + #"""

            for kind in "png", "jpeg", "gif", "bmp", "tiff", "ico", "webp":
                path = f"{folder}/whole.{kind}"
                options = {"sizes": [(40, 40)], "bitmap_format": "bmp"} if kind == "ico" else {}
                picture("RGB", (40, 40), 1).save(path, **options)
                file = open(path, "rb").read()
                for step in range(1, 13):
                    cut = f"{folder}/{next(numbers)}.{kind}"
                    open(cut, "wb").write(file[:len(file) * step // 13])
                    answer(cut)
                for position in range(0, 60, 3):
                    changed = bytearray(file)
                    changed[position] ^= 0x55
                    path = f"{folder}/{next(numbers)}.{kind}"
                    open(path, "wb").write(changed)
                    answer(path)
            """#

    private func answers(_ script: String, in folder: URL) async throws -> [Answer] {
        try await Pillow.output(of: script, folder).split(separator: UInt8(ascii: "\n")).map {
            try JSONDecoder().decode(Answer.self, from: $0)
        }
    }

    private func withFolder(_ body: (URL) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "curlew-pillow-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        try await body(folder)
    }

    /// Returns the largest difference of a channel; transparent pixels count as equal.
    private func difference(_ image: DecodedImage, _ expected: Data) -> Int {
        let bytes = [UInt8](expected)
        return image.withPixels { span in
            var largest = 0
            for y in 0..<image.height {
                for x in 0..<image.width {
                    let (ours, theirs) = (y * image.bytesPerRow + x * image.channels, (y * image.width + x) * 4)
                    let alpha = image.hasAlpha ? Int(span[ours + 3]) : 255
                    largest = max(largest, abs(alpha - Int(bytes[theirs + 3])))
                    if alpha == 0 { continue }
                    for channel in 0..<3 {
                        largest = max(largest, abs(Int(span[ours + channel]) - Int(bytes[theirs + channel])))
                    }
                }
            }
            return largest
        }
    }

    @Test func pillowDecodesTheSamePixels() async throws {
        try await withFolder { folder in
            let answers = try await answers(Self.whole, in: folder)
            #expect(answers.count >= 250)
            for answer in answers {
                let format = ImageFormat(rawValue: answer.file.split(separator: ".").last.map(String.init) ?? "")
                if let format, !format.isDecodable { continue }
                let image = try await DecodedImage(file: folder.appending(path: answer.file).path)
                #expect(image.frames.count == answer.frames, "\(answer)")
                #expect(image.width == answer.width && image.height == answer.height, "\(answer)")
                let expected = try Data(contentsOf: folder.appending(path: answer.pixels ?? ""))
                guard expected.count == image.width * image.height * 4 else { continue }
                #expect(difference(image, expected) <= answer.tolerance, "\(answer)")
            }
        }
        print("peer-test: pillow pillowDecodesTheSamePixels")
    }

    /// Both accept or refuse a file; a file that both accept has the same size.
    @Test func pillowRefusesTheSameFiles() async throws {
        try await withFolder { folder in
            let answers = try await answers(Self.broken, in: folder)
            #expect(answers.count >= 180 && answers.filter { $0.error != nil }.count >= 100)
            var different: [String] = []
            for answer in answers {
                if answer.file.hasSuffix(".webp"), !ImageFormat.webp.isDecodable { continue }
                do throws(ImageError) {
                    let image = try await DecodedImage(file: folder.appending(path: answer.file).path)
                    if answer.error != nil || image.width != answer.width || image.height != answer.height {
                        different.append("\(answer) was accepted with \(image.width) × \(image.height)")
                    }
                } catch {
                    if answer.error == nil { different.append("\(answer): \(error)") }
                }
            }
            // Pillow accepts a PNG without its last chunk and a TIFF with some damaged fields, and refuses a WebP whose
            // frames are damaged.
            #expect(different.count <= 15, "\(different.joined(separator: "\n"))")
        }
        print("peer-test: pillow pillowRefusesTheSameFiles")
    }
}
