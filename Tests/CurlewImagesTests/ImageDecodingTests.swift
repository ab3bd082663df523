// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import Foundation
import Testing

@testable import CurlewImages

/// Decoding of image files in memory and on the disk.
@Suite(.timeLimit(.minutes(5)))
struct ImageDecodingTests {
    private func decode(_ data: Data, chunk: Int) async throws(ImageError) -> DecodedImage {
        let decoder = ImageDecoder(DecodedImage.Options())
        var rest = data[...]
        while !rest.isEmpty {
            try await decoder.append(ByteChunk(rest.prefix(chunk)))
            rest = rest.dropFirst(chunk)
        }
        return try await decoder.finish()
    }

    @Test func everyFormatIsDecodedWholeAndInParts() async throws {
        let files: [(ImageFormat, Data, Int, Int)] = [
            (.png, try await ImageSamples.png(40, 20), 40, 20), (.jpeg, try await ImageSamples.jpeg(40, 20), 40, 20),
            (.jpeg, ImageSamples.progressive, 16, 8), (.jpeg, ImageSamples.cmyk, 16, 8),
            (.bmp, ImageSamples.bmp(10, 4), 10, 4), (.ico, ImageSamples.icon(16), 16, 16),
            (.tiff, ImageSamples.tiff, 4, 2),
        ]
        for (format, data, width, height) in files {
            let image = try await DecodedImage(data)
            #expect(image.header?.format == format && image.width == width && image.height == height)
            #expect(image.hasHalves, "\(format)")
            #expect(image.frames.count == 1 && !image.isAnimated && image.frames[0].duration == nil)
            for chunk in [1, 7, 100] {
                let same = try await decode(data, chunk: chunk)
                #expect(same.frames[0].bytes == image.frames[0].bytes, "\(format) in chunks of \(chunk)")
            }
        }
        let bitmap = try await DecodedImage(ImageSamples.xbm)
        #expect(bitmap.header?.format == .xbm && bitmap.width == 8 && bitmap.height == 2)
        #expect(bitmap[0, 0] == (0, 0, 0, 255) && bitmap[7, 1] == (255, 255, 255, 255))
    }

    @Test func deepChannelsBecomeEightBits() async throws {
        let image = try await DecodedImage(ImageSamples.deep)
        #expect(image.header?.bitsPerChannel == 16)
        // 257 steps of 16 bits are one of 8 bits; the decoder rounds.
        #expect((0..<4).map { image[$0, 1].green } == [1, 65, 129, 193])
    }

    @Test func animationsHaveFramesAndDurations() async throws {
        let data = ImageSamples.gif(12, 5, colours: [0, 1, 2], centiseconds: 20)
        let image = try await DecodedImage(data)
        #expect(image.isAnimated && image.frames.count == 3 && image.width == 12 && image.height == 5)
        #expect(image.header?.frames == .count(3) && image.header?.isAnimated == true)
        #expect(image.frames.map(\.duration) == [.milliseconds(200), .milliseconds(200), .milliseconds(200)])
        let first = image.frames.map { frame in frame.withPixels { [$0[0], $0[1], $0[2]] } }
        #expect(first == [[255, 0, 0], [0, 255, 0], [0, 0, 255]])
        let two = try await DecodedImage(data, options: DecodedImage.Options(maximumFrames: 2))
        #expect(two.frames.count == 2)
        let still = try await DecodedImage(data, options: .fitting(width: 6, height: 6))
        #expect(still.frames.count == 1 && still.width == 6 && still.height == 3)
        let small = try await DecodedImage(data, options: DecodedImage.Options(size: .scaled(by: 0.5)))
        #expect(small.frames.count == 3 && small.width == 6 && small.height == 3)
    }

    // MARK: Sizes

    @Test func imagesAreScaledToFit() async throws {
        let files = [
            try await ImageSamples.png(400, 200), try await ImageSamples.jpeg(400, 200), ImageSamples.bmp(400, 200),
        ]
        for data in files {
            let image = try await DecodedImage(data, options: .fitting(width: 100, height: 100))
            #expect(image.width == 100 && image.height == 50 && image.hasHalves)
            #expect(image.header?.width == 400, "the header is that of the file")
            let tall = try await DecodedImage(data, options: .fitting(width: 1000, height: 10))
            #expect(tall.width == 20 && tall.height == 10)
            let whole = try await DecodedImage(data, options: .fitting(width: 1000, height: 1000))
            #expect(whole.width == 400 && whole.height == 200, "images never become larger")
            let half = try await DecodedImage(data, options: .init(size: .scaled(by: 0.25)))
            #expect(half.width == 100 && half.height == 50)
        }
    }

    @Test func sizesOfExtremeProportionsStayPositive() {
        let thin = PixbufLoader.Size(width: 10_000, height: 1)
        let sizes: [(DecodedImage.Options.Size, PixbufLoader.Size)] = [
            (.fitting(width: 10, height: 10), .init(width: 10, height: 1)),
            (.fitting(width: 0, height: -1), .init(width: 1, height: 1)),
            (.scaled(by: 0), .init(width: 1, height: 1)), (.scaled(by: .nan), thin), (.scaled(by: 7), thin),
        ]
        for (size, expected) in sizes { #expect(size.applied(to: thin) == expected) }
    }

    /// The red half is on the side that the orientation moves to the given place.
    @Test(arguments: [
        (1, "left"), (2, "right"), (3, "right"), (4, "left"), (5, "top"), (6, "top"), (7, "bottom"), (8, "bottom"),
    ])
    func orientationIsApplied(_ orientation: UInt8, _ red: String) async throws {
        let data = ImageSamples.turned(try await ImageSamples.jpeg(80, 40), orientation)
        let image = try await DecodedImage(data)
        let isTurned = orientation > 4
        #expect(image.width == (isTurned ? 40 : 80) && image.height == (isTurned ? 80 : 40))
        let places = [
            "left": (4, image.height / 2), "right": (image.width - 4, image.height / 2), "top": (image.width / 2, 4),
            "bottom": (image.width / 2, image.height - 4),
        ]
        for (name, (x, y)) in places where isTurned == ["top", "bottom"].contains(name) {
            #expect((image[x, y].red > 128) == (name == red), "\(name)")
        }
        let thumbnail = try await DecodedImage(data, options: .fitting(width: 20, height: 20))
        #expect(thumbnail.width == (isTurned ? 10 : 20) && thumbnail.height == (isTurned ? 20 : 10))
        let stored = try await DecodedImage(data, options: .init(appliesOrientation: false))
        #expect(stored.width == 80 && stored.hasHalves)
    }

    // MARK: Limits

    @Test func limitsAreCheckedBeforeTheDecoderStarts() async throws {
        let data = try await ImageSamples.png(400, 200)
        // The header is enough for the refusal.
        for options in [
            DecodedImage.Options(limits: .init(pixels: 79_999)), .init(limits: .init(memory: 319_999)),
            .init(limits: .init(file: 39)),
        ] {
            let decoder = ImageDecoder(options)
            let error = await #expect(throws: ImageError.self) { try await decoder.append(data.prefix(60)) }
            #expect(error?.kind == .tooLarge && error?.hint?.contains("limits") == true)
        }
        let fitting = DecodedImage.Options(
            limits: .init(pixels: 80_000, memory: 320_000, file: .bytes(Int64(data.count))))
        #expect(try await DecodedImage(data, options: fitting).hasHalves)
        let error = await #expect(throws: ImageError.self) {
            try await DecodedImage(data, options: .init(limits: .init(pixels: 79_999)))
        }
        #expect(error?.message == "The image has 400 × 200 pixels, more than the limit of 79999.")
    }

    @Test func memoryOfAllFramesIsLimited() async throws {
        let data = ImageSamples.gif(100, 100, colours: [UInt8](repeating: 1, count: 50))
        let options = DecodedImage.Options(limits: .init(memory: 200_000))
        let error = await #expect(throws: ImageError.self) { try await DecodedImage(data, options: options) }
        #expect(error?.kind == .tooLarge && error?.hint?.contains("fewer frames") == true)
        let first = DecodedImage.Options(maximumFrames: 1, limits: .init(memory: 200_000))
        #expect(try await DecodedImage(data, options: first).frames.count == 1)
    }

    /// The size that the file states is far above what the machine can hold.
    @Test func hugeSizesAreRefused() async throws {
        var png = try await ImageSamples.png(4, 4)
        png.replaceSubrange(16..<24, with: [0x7F, 0xFF, 0xFF, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF])
        var bmp = ImageSamples.bmp(4, 4)
        bmp.replaceSubrange(18..<26, with: [0xFF, 0xFF, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF, 0x7F])
        var gif = ImageSamples.gif(4, 4, colours: [0])
        gif.replaceSubrange(6..<10, with: [0xFF, 0xFF, 0xFF, 0xFF])
        for data in [png, bmp, gif] {
            let error = await #expect(throws: ImageError.self) { try await DecodedImage(data) }
            #expect(error?.kind == .tooLarge || error?.kind == .malformed, "\(error?.message ?? "")")
        }
    }

    // MARK: Broken files

    @Test func truncatedFilesAreErrors() async throws {
        let files = [
            try await ImageSamples.png(60, 40), try await ImageSamples.jpeg(60, 40), ImageSamples.progressive,
            ImageSamples.bmp(60, 40), ImageSamples.gif(60, 40, colours: [0]), ImageSamples.icon(16),
        ]
        for data in files {
            let format = ImageFormat(signature: data)
            for length in Set([1, 2, 10, data.count / 4, data.count / 2, data.count - 20, data.count - 3]).sorted() {
                let error = await #expect(throws: ImageError.self, "\(String(describing: format)) \(length)") {
                    try await DecodedImage(data.prefix(length))
                }
                #expect([.truncated, .malformed, .unknownFormat].contains(error?.kind))
            }
        }
        let empty = await #expect(throws: ImageError.self) { try await DecodedImage(Data()) }
        #expect(empty?.kind == .truncated)
    }

    @Test func otherFilesAreUnknown() async {
        for text in ["<html><body>", "%PDF-1.7", String(repeating: "x", count: 5000)] {
            let error = await #expect(throws: ImageError.self) { try await DecodedImage(Data(text.utf8)) }
            #expect(error?.kind == .unknownFormat && error?.format == nil)
        }
    }

    @Test func formatsWithoutADecoderAreUnsupported() async throws {
        // A lossless WebP of 1 × 1 pixels.
        let webp = Data(base64Encoded: "UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==") ?? Data()
        if ImageFormat.webp.isDecodable {
            #expect(try await DecodedImage(webp).width == 1)
            return
        }
        let error = await #expect(throws: ImageError.self) { try await DecodedImage(webp) }
        #expect(error?.kind == .unsupportedFormat && error?.format == .webp)
        #expect(error?.hint == "Install it: on Debian, apt-get install webp-pixbuf-loader.")
    }

    // MARK: Icons

    @Test func largestImageOfAnIconIsDecodedAlsoFromPNG() async throws {
        let png = Array(try await ImageSamples.png(32, 32))
        let bitmap = Array(ImageSamples.icon(16).dropFirst(22))
        let image = try await DecodedImage(ImageSamples.icon([(16, bitmap), (32, png)]))
        #expect(image.width == 32 && image.hasHalves && image.header?.format == .ico)
        let small = try await DecodedImage(
            ImageSamples.icon([(16, bitmap), (32, png)]), options: .fitting(width: 8, height: 8))
        #expect(small.width == 8 && small.height == 8)
    }

    @Test func directoryOfAnIconIsRead() {
        #expect(IconDirectory([]).image == nil && !IconDirectory([]).isPNG)
        let png: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
        let whole = Array(ImageSamples.icon([(16, png)]))
        #expect(IconDirectory(whole).image == 22..<30 && IconDirectory(whole).isPNG)
        let cut = IconDirectory(Array(whole.prefix(24)))
        #expect(cut.image == 22..<30 && !cut.isPNG)
        #expect(IconDirectory(Array(whole.prefix(20))).image == nil, "the directory is cut")
        // 0 stands for 256; the first of equal entries counts.
        let large = Array(ImageSamples.icon([(64, [0] + png), (0, png), (0, [1] + png)]))
        #expect(IconDirectory(large).image == 63..<71 && IconDirectory(large).isPNG)
    }

    // MARK: Files

    @Test func filesAreDecoded() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "curlew-images-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appending(path: "photo.png").path
        try await ImageSamples.png(300, 200).write(to: URL(filePath: file))
        #expect(try await DecodedImage(file: file).hasHalves)
        #expect(try await DecodedImage(file: file, options: .fitting(width: 30, height: 30)).height == 20)
        for path in [folder.path, folder.appending(path: "missing").path, "a\0b", "/dev/null"] {
            let error = await #expect(throws: ImageError.self) { try await DecodedImage(file: path) }
            #expect(error?.kind == .unreadable, "\(path)")
        }
    }
}
