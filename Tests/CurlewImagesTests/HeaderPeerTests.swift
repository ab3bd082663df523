// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import CurlewImages

/// Compares headers with those that Pillow reads, for files that Pillow writes.
@Suite(
    .enabled(if: Pillow.isInstalled, "Scripts/setup-peers installs Pillow from PyPI"),
    .timeLimit(.minutes(5)))
struct HeaderPeerTests {
    /// A line of the script: a file and the facts that Pillow finds when it opens the file again.
    private struct Answer: Decodable {
        var file: String
        var format: String
        var width: Int
        var height: Int
        var orientation: Int
        var frames: Int
    }

    /// Writes images into a folder and prints what Pillow reads from them.
    private static let script = #"""
        import itertools, json, os, sys
        sys.path.insert(0, sys.argv[1])
        from PIL import Image, features
        folder = sys.argv[2]
        sizes = [(1, 1), (17, 5), (40, 30), (3, 200), (256, 255)]
        numbers = itertools.count()

        def picture(mode, size, shade=0):
            return Image.linear_gradient("L").resize(size).point(lambda v: (v + shade) % 256).convert("RGB").convert(mode)

        def answer(path):
            with Image.open(path) as image:
                width, height = image.size
                frames = image.ico.nb_items if image.format == "ICO" else getattr(image, "n_frames", 1)
                # Pillow turns TIFF images while it opens them.
                number = image.getexif().get(274, 1)
                if image.format == "TIFF": width, height = image.tag_v2[256], image.tag_v2[257]
                name = "JPEG" if image.format == "MPO" else image.format
            print(json.dumps({"file": os.path.basename(path), "format": name, "width": width, "height": height,
                "orientation": number, "frames": frames}))

        def write(kind, image, **options):
            path = f"{folder}/{next(numbers)}.{kind}"
            image.save(path, **options)
            answer(path)

        def exif(number, endian="<"):
            data = Image.Exif()
            data.endian = endian
            data[271], data[274] = "Curlew", number
            return data

        modes = {
            "png": ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"], "jpeg": ["L", "RGB", "CMYK"],
            "gif": ["1", "L", "P", "RGB", "RGBA"], "webp": ["RGB", "RGBA"], "bmp": ["1", "L", "P", "RGB", "RGBA"],
            "tiff": ["1", "L", "P", "RGB", "RGBA", "CMYK", "I;16", "I;16B"], "xbm": ["1"],
        }
        if features.check("avif"): modes["avif"] = ["RGB", "RGBA"]
        for kind, names in modes.items():
            for mode, size in itertools.product(names, sizes):
                wide = mode.startswith("I;")
                write(kind, Image.new(mode, size, 1000) if wide else picture(mode, size))
        for size in sizes:
            write("jpeg", picture("RGB", size), progressive=True, comment="c" * 70)
            write("webp", picture("RGBA", size), lossless=True)
            for compression in "tiff_lzw", "tiff_adobe_deflate", "packbits", "jpeg":
                write("tiff", picture("RGB", size), compression=compression)
        for kind in "jpeg", "png", "webp", "tiff", *(["avif"] if "avif" in modes else []):
            for number in range(1, 9): write(kind, picture("RGB", (30, 20)), exif=exif(number))
        for number in 3, 6:
            write("jpeg", picture("RGB", (30, 20)), exif=exif(number, ">"))
            write("png", picture("RGB", (30, 20)), exif=exif(number, ">"))
        for kind in "png", "gif", "webp", "tiff", *(["avif"] if "avif" in modes else []):
            for count in 2, 3, 7:
                for mode in "RGB", "RGBA":
                    pages = [picture(mode, (40, 30), 30 * page) for page in range(count)]
                    write(kind, pages[0], save_all=True, append_images=pages[1:], **({} if kind == "tiff" else {"duration": 90}))
        for format in "png", "bmp":
            write("ico", picture("RGBA", (256, 256)), sizes=[(16, 16), (32, 32), (256, 256)], bitmap_format=format)
            write("ico", picture("RGBA", (64, 48)), sizes=[(16, 12), (64, 48)], bitmap_format=format)
        """#

    @Test func pillowReadsTheSameHeaders() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "curlew-pillow-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        let answers = try await Pillow.output(of: Self.script, folder).split(separator: UInt8(ascii: "\n")).map {
            try JSONDecoder().decode(Answer.self, from: $0)
        }
        #expect(answers.count >= 250)
        for answer in answers {
            let bytes = try [UInt8](Data(contentsOf: folder.appending(path: answer.file)))
            let header = try ImageHeader(bytes)
            let size = (header.width, header.height)
            #expect(header.format.description.uppercased() == answer.format, "\(answer)")
            #expect(size == (answer.width, answer.height), "\(answer)")
            #expect(header.orientation.rawValue == answer.orientation, "\(answer)")
            #expect(header.frames == .count(answer.frames), "\(answer)")
            #expect(header.isAnimated == (answer.frames > 1 && ![.tiff, .ico].contains(header.format)), "\(answer)")
            var scanner = ImageHeader.Scanner()
            for start in stride(from: 0, to: bytes.count, by: 100) {
                try scanner.append(bytes[start..<min(start + 100, bytes.count)])
            }
            #expect(scanner.header == header && scanner.isComplete, "\(answer)")
        }
        print("peer-test: pillow pillowReadsTheSameHeaders")
    }
}
