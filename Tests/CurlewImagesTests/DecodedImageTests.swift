// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import Foundation
import Testing

@testable import CurlewImages

/// Images in memory: pixels, sizes and files.
@Suite(.timeLimit(.minutes(5)))
struct DecodedImageTests {
    private let pixels: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18]

    @Test func pixelsAreThoseThatWereGiven() throws {
        let image = try DecodedImage(pixels: pixels, width: 3, height: 2)
        #expect(image.width == 3 && image.height == 2 && image.channels == 3 && !image.hasAlpha)
        #expect(image.bytesPerRow >= 9 && image.header == nil && image.cost == 24)
        #expect(Array(image.frames[0].bytes) == pixels)
        #expect(image[1, 1] == (13, 14, 15, 255))
        image.withPixels { span in
            #expect(span.count == image.bytesPerRow + 9)
            #expect((0..<9).map { span[image.bytesPerRow + $0] } == Array(pixels[9...]))
        }
        let clear = try DecodedImage(pixels: pixels.prefix(16), width: 2, height: 2, hasAlpha: true)
        #expect(clear.hasAlpha && clear.channels == 4 && clear[1, 1] == (13, 14, 15, 16))
    }

    @Test(arguments: [(0, 2), (3, 0), (-3, -2), (3, 3), (6, 2), (.max, 2), (1 << 32, 1 << 32)])
    func sizesThatDoNotFitThePixelsAreErrors(_ width: Int, _ height: Int) {
        let error = #expect(throws: ImageError.self) { try DecodedImage(pixels: pixels, width: width, height: height) }
        #expect(error?.kind == .malformed && error?.hint != nil)
    }

    @Test func pngKeepsEveryPixel() async throws {
        let image = try DecodedImage(pixels: pixels.prefix(16), width: 2, height: 2, hasAlpha: true)
        let png = try await image.encoded(as: .png)
        #expect(ImageFormat(signature: png) == ImageFormat.png)
        let same = try await DecodedImage(png)
        #expect(same.frames[0].bytes == image.frames[0].bytes && same.hasAlpha)
    }

    @Test func jpegHasTheChosenQuality() async throws {
        let image = try DecodedImage(pixels: ImageSamples.halves(64, 64), width: 64, height: 64)
        let (best, worst) = (
            try await image.encoded(as: .jpeg(quality: 100)), try await image.encoded(as: .jpeg(quality: 1))
        )
        #expect(best.count > worst.count && ImageFormat(signature: best) == ImageFormat.jpeg)
        #expect(try await image.encoded(as: .jpeg(quality: 1000)) == best, "the quality is clamped")
        #expect(try await DecodedImage(best).hasHalves)
        let clear = try DecodedImage(
            pixels: [UInt8](repeating: 200, count: 64), width: 4, height: 4, hasAlpha: true)
        #expect(try await DecodedImage(clear.encoded(as: .jpeg())).hasAlpha == false)
    }

    @Test func imagesAreScaled() async throws {
        let image = try DecodedImage(pixels: ImageSamples.halves(64, 32), width: 64, height: 32)
        let small = try await image.scaled(toFit: 16, 16)
        #expect(small.width == 16 && small.height == 8 && small.hasHalves)
        #expect(try await image.scaled(toFit: 100, 100).width == 64)
        let animation = try await DecodedImage(ImageSamples.gif(20, 10, colours: [0, 1]))
        let scaled = try await animation.scaled(toFit: 10, 10)
        #expect(scaled.frames.count == 2 && scaled.height == 5 && scaled.frames[1].duration == .milliseconds(100))
        #expect(animation.cost == 1600 && scaled.cost == 400)
    }

    @Test func errorsSayWhatToTry() {
        let error = ImageError(.tooLarge, format: .png, "The image is too large.", hint: "Raise limits.pixels.")
        #expect(error.description == "The image is too large. Raise limits.pixels." && error.format == .png)
        #expect(ImageError(.malformed, "No.").description == "No.")
        #expect(ImageError.outOfMemory(.gif).kind == .outOfMemory)
    }

    @Test func formatsHaveTypesAndNames() {
        #expect(ImageFormat.webp.description == "WebP" && ImageFormat.jpeg.description == "JPEG")
        #expect(ImageFormat.allCases.allSatisfy { $0.mediaType.description.hasPrefix("image/") })
        #expect(ImageFormat.ico.mediaTypes == ["image/vnd.microsoft.icon", "image/x-icon", "image/ico"])
        let always: [ImageFormat] = [.png, .jpeg, .gif, .bmp, .ico, .tiff, .xbm]
        for format in always { #expect(format.isDecodable) }
    }
}
