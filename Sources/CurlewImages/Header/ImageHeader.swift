// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The facts that the header of an image file states: format, size, orientation and frames, without any decoding.
///
/// The values are claims of the file. A decoder may still find the image damaged.
///
/// ```swift
/// let header = try ImageHeader(data)
/// print(header.format, header.uprightSize.width, header.uprightSize.height)
/// ```
public struct ImageHeader: Sendable, Hashable {
    /// The way in which the stored pixels are turned for display, with the values of the tag Orientation in Exif.
    ///
    /// The names say where the stored picture has its upper side: the pixels of `.right` are upright after a clockwise
    /// quarter turn.
    public enum Orientation: Int, Sendable, Hashable, CaseIterable {
        /// The first row is the top, the first column the left side. Nothing to do.
        case up = 1
        /// The picture is mirrored left to right.
        case upMirrored
        /// The picture is upside down: a half turn makes it upright.
        case down
        /// The picture is mirrored top to bottom.
        case downMirrored
        /// Rows and columns are exchanged.
        case leftMirrored
        /// A clockwise quarter turn makes the picture upright.
        case right
        /// Rows and columns are exchanged, and the picture is upside down.
        case rightMirrored
        /// A counterclockwise quarter turn makes the picture upright.
        case left

        /// Whether the upright picture is as wide as the stored one is high.
        public var swapsSides: Bool { rawValue >= Self.leftMirrored.rawValue }
    }

    /// The number of frames, pages or sizes.
    public enum Frames: Sendable, Hashable {
        /// The file has exactly this number of frames; 1 for a still image.
        case count(Int)
        /// This number of frames was found, or announced, and the rest of the file is unknown.
        case atLeast(Int)
    }

    /// The format of the file.
    public internal(set) var format: ImageFormat
    /// The width of the stored picture in pixels; for SVG that of the viewport in CSS pixels, rounded up.
    public internal(set) var width: Int
    /// The height of the stored picture in pixels; for SVG that of the viewport in CSS pixels, rounded up.
    public internal(set) var height: Int
    /// The orientation of the stored picture; `.up` if the file does not state another.
    ///
    /// It comes from Exif in JPEG, PNG and WebP, from tag 274 in TIFF, and from the properties `irot` and `imir` in
    /// AVIF.
    public internal(set) var orientation = Orientation.up
    /// The number of frames of an animation, of pages in a TIFF file, or of sizes in an icon.
    public internal(set) var frames = Frames.count(1)
    /// The bits of one colour channel, 1 to 16; 8 for formats with palettes, whose colours have 8 bits.
    public internal(set) var bitsPerChannel = 8
    /// Whether the file states that pixels may be transparent.
    public internal(set) var hasAlpha = false
    /// Whether the frames are shown one after the other, as opposed to pages of a TIFF file and sizes of an icon.
    public internal(set) var isAnimated = false

    /// The size in pixels after the orientation is applied.
    public var uprightSize: (width: Int, height: Int) {
        orientation.swapsSides ? (height, width) : (width, height)
    }

    /// Reads the header of a file, or of the first part of a file.
    ///
    /// The initializer reads as much as is needed, and skips the pixels. If `bytes` end before the file does, `frames`
    /// is `.atLeast`; facts that formats store behind the pixels are then missing. `Scanner` has the details.
    ///
    /// - Parameter bytes: The file from its first byte.
    /// - Throws: `ImageError`: `.unknownFormat`, `.unsupportedFormat` (BigTIFF, a JPEG file without its height),
    ///   `.malformed`, `.tooLarge` (a side above 2³¹ − 1), and `.truncated` if the bytes end before the size.
    public init(_ bytes: some Collection<UInt8>) throws(ImageError) {
        var scanner = Scanner()
        try scanner.append(bytes)
        if scanner.header == nil { try scanner.finish() }
        guard let header = scanner.header else { throw scanner.truncation }
        self = header
    }

    /// Creates a header after a check of its size.
    init(_ format: ImageFormat, width: Int, height: Int) throws(ImageError) {
        guard width > 0, height > 0 else {
            throw ImageError(
                .malformed, format: format, "The \(format) image has a side of \(min(width, height)) pixels.")
        }
        guard max(width, height) <= Int(Int32.max) else {
            throw ImageError(
                .tooLarge, format: format, "The \(format) image has a side of \(max(width, height)) pixels.")
        }
        (self.format, self.width, self.height) = (format, width, height)
    }
}
