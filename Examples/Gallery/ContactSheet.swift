// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewImages

/// Thumbnails in rows on a grey ground.
struct ContactSheet {
    private static let side = 128
    private static let gap = 8
    private static let columns = 6
    private static let ground: UInt8 = 0xEE

    /// How the images are decoded.
    static let thumbnail = DecodedImage.Options.fitting(width: side, height: side)

    private var thumbnails: [DecodedImage] = []

    mutating func add(_ thumbnail: DecodedImage) { thumbnails.append(thumbnail) }

    /// Returns the sheet; it has one empty cell if there is no thumbnail.
    func image() throws(ImageError) -> DecodedImage {
        let cell = Self.side + Self.gap
        let columns = max(min(thumbnails.count, Self.columns), 1)
        let rows = max((thumbnails.count + columns - 1) / columns, 1)
        let (width, height) = (columns * cell + Self.gap, rows * cell + Self.gap)
        var pixels = [UInt8](repeating: Self.ground, count: width * height * 3)
        for (index, thumbnail) in thumbnails.enumerated() {
            let left = Self.gap + index % columns * cell + (Self.side - thumbnail.width) / 2
            let top = Self.gap + index / columns * cell + (Self.side - thumbnail.height) / 2
            draw(thumbnail, at: (top * width + left) * 3, rowBytes: width * 3, in: &pixels)
        }
        return try DecodedImage(pixels: pixels, width: width, height: height)
    }

    private func draw(_ image: DecodedImage, at start: Int, rowBytes: Int, in pixels: inout [UInt8]) {
        image.withPixels { span in
            for row in 0..<image.height {
                for column in 0..<image.width {
                    let source = row * image.bytesPerRow + column * image.channels
                    let alpha = image.hasAlpha ? Int(span[source + 3]) : 255
                    for channel in 0..<3 {
                        let mixed = Int(span[source + channel]) * alpha + Int(Self.ground) * (255 - alpha)
                        pixels[start + row * rowBytes + column * 3 + channel] = UInt8(mixed / 255)
                    }
                }
            }
        }
    }
}
