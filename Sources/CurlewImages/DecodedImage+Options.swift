// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import Curlew

extension DecodedImage {
    /// How an image is decoded: its size, its frames and the limits.
    ///
    /// ```swift
    /// let thumbnail: DecodedImage.Options = .fitting(width: 160, height: 160)
    /// ```
    public struct Options: Sendable, Hashable {
        /// The size to decode to; the size of the file unless given.
        public var size: Size
        /// The maximum number of frames to decode of an animation, at least 1; all frames unless given.
        public var maximumFrames: Int
        /// Whether the image is turned as its file says; true unless given.
        public var appliesOrientation: Bool
        /// Whether SVG images are decoded, if the machine has a decoder; false unless given.
        ///
        /// An SVG image of a few bytes may contain images and filters that take any amount of memory and time, which no
        /// limit bounds.
        public var allowsSVG: Bool
        /// The limits.
        public var limits: Limits

        /// Creates options.
        ///
        /// - Parameters:
        ///   - size: The size to decode to.
        ///   - maximumFrames: The maximum number of frames of an animation; at least 1.
        ///   - appliesOrientation: Whether the image is turned as its file says.
        ///   - allowsSVG: Whether SVG images are decoded; only for trusted images.
        ///   - limits: The limits.
        public init(
            size: Size = .full, maximumFrames: Int = .max, appliesOrientation: Bool = true,
            allowsSVG: Bool = false, limits: Limits = Limits()
        ) {
            self.size = size
            self.maximumFrames = max(maximumFrames, 1)
            self.appliesOrientation = appliesOrientation
            self.allowsSVG = allowsSVG
            self.limits = limits
        }

        /// Returns options for a thumbnail: one frame of a size that fits a box.
        ///
        /// - Parameters:
        ///   - width: The width of the box in pixels, 1 or more.
        ///   - height: The height of the box in pixels, 1 or more.
        public static func fitting(width: Int, height: Int) -> Options {
            Options(size: .fitting(width: width, height: height), maximumFrames: 1)
        }
    }
}

extension DecodedImage.Options {
    /// A size to decode to, in pixels of the upright image.
    ///
    /// JPEG is decoded at a reduced size, which takes less time and memory. Other formats are decoded and then scaled.
    public enum Size: Sendable, Hashable {
        /// The size of the file.
        case full
        /// The largest size of the same proportions that fits a box; never larger than the file.
        case fitting(width: Int, height: Int)
        /// The size of the file multiplied by a factor between 0 and 1.
        case scaled(by: Double)

        /// Returns the size for an image, at least 1 × 1.
        func applied(to size: PixbufLoader.Size) -> PixbufLoader.Size {
            let factor: Double
            switch self {
            case .full: return size
            case .fitting(let width, let height):
                factor = min(
                    Double(max(width, 1)) / Double(size.width), Double(max(height, 1)) / Double(size.height), 1)
            case .scaled(let wanted): factor = wanted.isNaN ? 1 : min(max(wanted, 0), 1)
            }
            if factor == 1 { return size }
            func side(_ length: Int) -> Int { max(Int((Double(length) * factor).rounded()), 1) }
            return PixbufLoader.Size(width: side(size.width), height: side(size.height))
        }
    }

    /// The limits for one image, which are checked before memory is taken.
    public struct Limits: Sendable, Hashable {
        /// The maximum number of pixels of the image in the file, for each frame; 50 million unless given.
        public var pixels: Int
        /// The maximum memory for decoding: the pixels of all frames, and the working memory of the decoder; 512 MiB
        /// unless given.
        public var memory: ByteCount
        /// The maximum size of the file; 64 MiB unless given.
        public var file: ByteCount

        /// Creates limits.
        ///
        /// - Parameters:
        ///   - pixels: The maximum number of pixels of the image in the file.
        ///   - memory: The maximum memory for decoding.
        ///   - file: The maximum size of the file.
        public init(
            pixels: Int = 50_000_000, memory: ByteCount = .mebibytes(512), file: ByteCount = .defaultBodyLimit
        ) {
            (self.pixels, self.memory, self.file) = (pixels, memory, file)
        }
    }

    /// Returns the size to decode to for a size in the file.
    ///
    /// - Parameters:
    ///   - stored: The size in the file.
    ///   - format: The format of the file.
    ///   - isTurned: Whether the orientation swaps width and height.
    /// - Throws: `.tooLarge` if a limit is exceeded.
    func target(
        for stored: PixbufLoader.Size, _ format: ImageFormat, isTurned: Bool
    ) throws(ImageError) -> PixbufLoader.Size {
        let (area, isHuge) = stored.width.multipliedReportingOverflow(by: stored.height)
        guard !isHuge, area <= limits.pixels else {
            throw ImageError(
                .tooLarge, format: format,
                "The image has \(stored.width) × \(stored.height) pixels, more than the limit of \(limits.pixels).",
                hint: "Raise limits.pixels if the image is trusted.")
        }
        let upright =
            isTurned ? PixbufLoader.Size(width: stored.height, height: stored.width) : stored
        let size = self.size.applied(to: upright)
        let target = isTurned ? PixbufLoader.Size(width: size.height, height: size.width) : size
        let needed = Self.memory(format, stored: area, target: target.width * target.height)
        guard needed <= limits.memory.bytes else { throw memoryError(needed, format) }
        return target
    }

    /// Returns an upper bound of the memory for one frame.
    ///
    /// For a progressive image, libjpeg keeps two bytes for each sample, with up to four samples per pixel, at every
    /// output size. Other decoders make pixels of the size in the file first.
    private static func memory(_ format: ImageFormat, stored: Int, target: Int) -> Int64 {
        // A size beyond this bound exceeds every limit.
        let (stored, target) = (Int64(min(stored, 1 << 56)), Int64(min(target, 1 << 56)))
        return switch format {
        case .jpeg: stored * 8 + target * 4
        // The pixels are made in Swift first.
        case .xbm: stored * 8 + target * 4
        case _ where stored == target: stored * 4
        default: (stored + target) * 4
        }
    }

    func memoryError(_ bytes: Int64, _ format: ImageFormat) -> ImageError {
        ImageError(
            .tooLarge, format: format,
            "Decoding takes \(ByteCount.bytes(bytes)) of memory, more than the limit of \(limits.memory).",
            hint: "Decode a smaller size or fewer frames, or raise limits.memory if the image is trusted.")
    }

    func fileError(_ format: ImageFormat?) -> ImageError {
        ImageError(
            .tooLarge, format: format, "The file is longer than the limit of \(limits.file).",
            hint: "Raise limits.file if the image is trusted.")
    }
}
