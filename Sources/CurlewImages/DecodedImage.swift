// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import Curlew
internal import CurlewEngine
public import FoundationEssentials

/// An image in memory: pixels of 8 bits for each channel, upright, with one frame or the frames of an animation.
///
/// Values share their pixels, which never change. Images of more than 8 bits, with CMYK or with a palette become RGB,
/// or RGBA if they may be transparent. Colour profiles are not applied.
///
/// ```swift
/// let photo = try await DecodedImage(file: "photo.jpg", options: .fitting(width: 320, height: 320))
/// try await photo.encoded(as: .png).write(to: URL(filePath: "thumbnail.png"))
/// ```
public struct DecodedImage: Sendable {
    /// A frame of an image; all frames have the size of the image.
    public struct Frame: Sendable {
        let pixels: Pixbuf
        /// How long an animation shows the frame; nil for a still image, and for a last frame that stays.
        ///
        /// gdk-pixbuf lengthens very short durations.
        public let duration: Duration?
    }

    /// The facts about the file; nil for an image that was made from pixels.
    public let header: ImageHeader?
    /// The frames, at least one; a still image has exactly one.
    public let frames: [Frame]

    init(_ header: ImageHeader?, _ frames: [Frame]) { (self.header, self.frames) = (header, frames) }

    private var pixels: Pixbuf { frames[0].pixels }

    // MARK: Making images

    /// Decodes an image file in memory, on a thread of the decoder.
    ///
    /// - Parameters:
    ///   - data: The whole file.
    ///   - options: The size, the frames and the limits.
    /// - Throws: `ImageError` of any kind.
    public init(_ data: Data, options: Options = Options()) async throws(ImageError) {
        self = try await ImageDecoder(options).decode(data)
    }

    /// Decodes an image file, such as a downloaded one, on a thread of the decoder.
    ///
    /// - Parameters:
    ///   - file: The path of the file, which is read in parts.
    ///   - options: The size, the frames and the limits.
    /// - Throws: `ImageError` of any kind; `.unreadable` if the file cannot be read.
    public init(file: String, options: Options = Options()) async throws(ImageError) {
        self = try await ImageDecoder(options).decode(file: file)
    }

    /// Makes an image from pixels.
    ///
    /// - Parameters:
    ///   - bytes: The rows from the top, without padding: red, green, blue and, with `hasAlpha`, alpha for each pixel.
    ///   - width: The width in pixels, 1 or more.
    ///   - height: The height in pixels, 1 or more.
    ///   - hasAlpha: Whether each pixel has a fourth byte, its opacity.
    /// - Throws: `ImageError` of kind `.malformed` if the number of bytes does not fit the size, or `.outOfMemory`.
    public init(
        pixels bytes: some Collection<UInt8>, width: Int, height: Int, hasAlpha: Bool = false
    ) throws(ImageError) {
        let (area, isHuge) = width.multipliedReportingOverflow(by: height)
        let (count, isTooLong) = area.multipliedReportingOverflow(by: hasAlpha ? 4 : 3)
        guard width > 0, height > 0, !isHuge, !isTooLong, count == bytes.count else {
            throw ImageError(
                .malformed, "\(bytes.count) bytes are not the pixels of an image of \(width) × \(height).",
                hint: "Pass width × height × \(hasAlpha ? 4 : 3) bytes, without padding between rows.")
        }
        self.init(
            nil,
            [Frame(pixels: try Pixbuf(bytes, width: width, height: height, hasAlpha: hasAlpha), duration: nil)])
    }

    // MARK: Facts

    /// The width in pixels.
    public var width: Int { pixels.width }
    /// The height in pixels.
    public var height: Int { pixels.height }
    /// Whether the pixels have a fourth channel, their opacity.
    public var hasAlpha: Bool { pixels.hasAlpha }
    /// The number of bytes of a pixel: 3 for RGB, 4 for RGBA.
    public var channels: Int { pixels.channels }
    /// The distance in bytes between the starts of two rows of pixels.
    public var bytesPerRow: Int { pixels.bytesPerRow }
    /// Whether there is more than one frame.
    public var isAnimated: Bool { frames.count > 1 }

    /// The cost of the image in a cache: 4 bytes for each pixel of each frame, as in AFNetworking.
    public var cost: ByteCount { .bytes(Int64(width) * Int64(height) * 4 * Int64(frames.count)) }

    // MARK: Pixels

    /// Calls a closure with the pixels of the first frame; see ``Frame/withPixels(_:)``.
    ///
    /// - Parameter body: Receives all rows, each ``bytesPerRow`` after the one before it.
    /// - Returns: The result of the closure.
    /// - Throws: The error of the closure.
    public func withPixels<Result, Failure: Error>(
        _ body: (Span<UInt8>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try frames[0].withPixels(body)
    }

    /// Returns a pixel of the first frame.
    ///
    /// - Parameters:
    ///   - x: The column, from 0 at the left.
    ///   - y: The row, from 0 at the top.
    /// - Returns: The channels; the opacity is 255 in an image without alpha.
    public subscript(x: Int, y: Int) -> (red: UInt8, green: UInt8, blue: UInt8, alpha: UInt8) {
        precondition(x >= 0 && x < width && y >= 0 && y < height, "the pixel is outside of the image")
        let start = y * bytesPerRow + x * channels
        return withPixels { ($0[start], $0[start + 1], $0[start + 2], hasAlpha ? $0[start + 3] : 255) }
    }

    // MARK: Changes

    /// Returns the image with a size that fits a box, with the same proportions; never larger than it is.
    ///
    /// Scales on a thread of the decoder.
    /// - Parameters:
    ///   - width: The width of the box in pixels, 1 or more.
    ///   - height: The height of the box in pixels, 1 or more.
    /// - Throws: `ImageError` of kind `.outOfMemory`.
    public func scaled(toFit width: Int, _ height: Int) async throws(ImageError) -> DecodedImage {
        let size = Options.Size.fitting(width: width, height: height)
            .applied(to: PixbufLoader.Size(width: self.width, height: self.height))
        return try await onDecoderThread { () throws(ImageError) in
            var scaled: [Frame] = []
            for frame in frames {
                let pixels = try frame.pixels.scaled(width: size.width, height: size.height)
                scaled.append(Frame(pixels: pixels, duration: frame.duration))
            }
            return DecodedImage(header, scaled)
        }
    }

    /// A format that images are written in.
    public enum Encoding: Sendable, Hashable {
        /// PNG, without loss.
        case png
        /// JPEG with a quality of 0 to 100, without the opacity of the pixels.
        case jpeg(quality: Int = 85)
    }

    /// Returns an image file with the first frame.
    ///
    /// Encodes on a thread of the decoder.
    /// - Parameter encoding: The format of the file.
    /// - Throws: `ImageError` of kind `.outOfMemory`, or `.unsupportedFormat` if the machine has no encoder.
    public func encoded(as encoding: Encoding) async throws(ImageError) -> Data {
        let pixels = pixels
        return try await onDecoderThread { () throws(ImageError) in
            switch encoding {
            case .png: Data(try pixels.encoded(as: .png, [:]))
            case .jpeg(let quality):
                Data(try pixels.encoded(as: .jpeg, ["quality": "\(min(max(quality, 0), 100))"]))
            }
        }
    }
}

extension DecodedImage.Frame {
    /// Calls a closure with the pixels, without copying them.
    ///
    /// - Parameter body: Receives all rows from the top, each ``DecodedImage/bytesPerRow`` after the one before it. The
    ///   bytes between the end of a row and the next row have no meaning. The last row ends with its last pixel.
    /// - Returns: The result of the closure.
    /// - Throws: The error of the closure.
    public func withPixels<Result, Failure: Error>(
        _ body: (Span<UInt8>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try pixels.withBytes(body)
    }

    /// The pixels as bytes, in rows from the top without padding.
    public var bytes: Data {
        let rowBytes = pixels.width * pixels.channels
        let stride = pixels.bytesPerRow
        return pixels.withBytes { span in
            var bytes = Data(capacity: rowBytes * pixels.height)
            for row in 0..<pixels.height {
                bytes.append(span.extracting(row * stride..<(row * stride + rowBytes)).data)
            }
            return bytes
        }
    }
}
