// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Images: the pixels or the error of a file do not depend on the chunks, the limits hold, and nothing crashes.
///
/// The first byte selects the size of the chunks, the second one the options; the rest is the file.
func examine(_ input: [UInt8]) {
    guard input.count > 2 else { return }
    let bytes = Array(input.dropFirst(2))
    var options = DecodedImage.Options(
        maximumFrames: input[1] & 1 == 0 ? .max : 2, appliesOrientation: input[1] & 2 == 0,
        limits: .init(pixels: 1 << 18, memory: .mebibytes(16)))
    if input[1] & 4 != 0 { options.size = .fitting(width: 16, height: 16) }
    let whole = decode(bytes, by: bytes.count, options)
    let parts = decode(bytes, by: Int(input[0] & 0x3F) + 1, options)
    switch (whole, parts) {
    case (.success(let first), .success(let second)):
        demand(first.frames.count == second.frames.count, "\(first.frames.count) and \(second.frames.count) frames")
        for (one, other) in zip(first.frames, second.frames) {
            demand(one.bytes == other.bytes, "the pixels depend on the chunks")
        }
        examine(first, options)
    case (.failure, .failure): break
    default: demand(false, "whole \(whole), in parts \(parts)")
    }
}

private func examine(_ image: DecodedImage, _ options: DecodedImage.Options) {
    demand(image.frames.count <= options.maximumFrames, "\(image.frames.count) frames")
    demand(image.width > 0 && image.height > 0, "\(image.width) × \(image.height) pixels")
    demand(image.width * image.height <= options.limits.pixels, "\(image.width) × \(image.height) pixels")
    demand(image.frames.allSatisfy { $0.bytes.count == image.width * image.height * image.channels }, "other sizes")
    if case .fitting(let width, let height) = options.size {
        demand(image.width <= width && image.height <= height, "\(image.width) × \(image.height) does not fit")
    }
}

private func decode(
    _ bytes: [UInt8], by size: Int, _ options: DecodedImage.Options
) -> Result<DecodedImage, ImageError> {
    Result { () throws(ImageError) in
        let decoding = ImageDecoding(options)
        var start = 0
        while start < bytes.count {
            let end = min(start + size, bytes.count)
            try decoding.append(Array(bytes[start..<end]).span)
            start = end
        }
        return try decoding.finish()
    }
}
