// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew

/// One image that is decoded while its bytes arrive; one thread at a time may use it.
final class ImageDecoding {
    private let options: DecodedImage.Options
    private var scanner = ImageHeader.Scanner()
    /// The facts about the file, as soon as the size is known.
    private var header: ImageHeader?
    private var isScanning = true
    /// The bytes before the header is complete; the whole file for formats that are not decoded in parts.
    private var held: [UInt8] = []
    private var loader: PixbufLoader?
    private var end: ImageEnd?
    private var gif: GIFGuard?
    private var png: PNGFilter?
    private var count: Int64 = 0

    init(_ options: DecodedImage.Options) { self.options = options }

    /// Decodes the next bytes.
    func append(_ bytes: Span<UInt8>) throws(ImageError) {
        count += Int64(bytes.count)
        guard count <= options.limits.file.bytes else { throw options.fileError(header?.format) }
        try scan(bytes)
        if loader != nil { return try write(bytes) }
        guard let header, !header.format.isHeldWhole else {
            bytes.append(to: &held)
            return
        }
        // Refuse an image before its decoder starts.
        _ = try target(header)
        let first = held
        held = []
        try start(header, as: header.format)
        try write(first.span)
        try write(bytes)
    }

    /// Starts a decoder.
    private func start(_ header: ImageHeader, as format: ImageFormat) throws(ImageError) {
        guard format != .svg || options.allowsSVG else {
            throw ImageError(
                .unsupportedFormat, format: .svg, "SVG images are not decoded, because no limit bounds their memory.",
                hint: "Set allowsSVG if the image is trusted.")
        }
        guard PixbufLoader.readable.contains(format) else { throw .unsupported(format) }
        let options = options
        let isTurned = isTurned(header)
        loader = try PixbufLoader(format) { size in
            Result { () throws(ImageError) in try options.target(for: size, format, isTurned: isTurned) }
        }
        end = ImageEnd(format)
        gif = format == .gif ? GIFGuard() : nil
        png = format == .png ? PNGFilter() : nil
    }

    /// Checks the next bytes and passes them to the decoder.
    private func write(_ bytes: Span<UInt8>) throws(ImageError) {
        if let filtered = png?.filtered(bytes) {
            try loader?.write(filtered.span)
        } else if let count = try gif?.append(bytes) {
            try loader?.write(bytes.extracting(0..<count))
        } else {
            end?.append(bytes)
            if end?.hasTooManyScans == true {
                throw ImageError(
                    .tooLarge, format: .jpeg, "The JPEG image has more than \(ImageEnd.maximumScans) scans.")
            }
            try loader?.write(bytes)
        }
    }

    /// Whether a decoder has started and not finished.
    var isDecoding: Bool { loader != nil }

    /// Closes the decoder.
    func discard() { loader = nil }

    /// Whether the last byte of the image has arrived, as far as gdk-pixbuf does not check that.
    private var hasEnd: Bool { png?.isComplete ?? end?.isFound ?? true }

    private func scan(_ bytes: Span<UInt8>) throws(ImageError) {
        guard isScanning else { return }
        do {
            try scanner.append(bytes)
        } catch  where header != nil {
            // gdk-pixbuf judges the rest of the file.
            isScanning = false
        }
        header = scanner.header ?? header
        if scanner.isComplete { isScanning = false }
    }

    private func target(_ header: ImageHeader) throws(ImageError) -> PixbufLoader.Size {
        try options.target(
            for: PixbufLoader.Size(width: header.width, height: header.height), header.format,
            isTurned: isTurned(header))
    }

    private func isTurned(_ header: ImageHeader) -> Bool {
        options.appliesOrientation && header.orientation.swapsSides && header.format != .avif
    }

    /// Returns the pixels that are decoded so far; nil before the first ones.
    func preview() throws(ImageError) -> DecodedImage? {
        guard let header, let pixels = try loader?.preview() else { return nil }
        return DecodedImage(header, [try frame(pixels, nil, header)])
    }

    /// Ends the file and returns its image.
    func finish() throws(ImageError) -> DecodedImage {
        if isScanning {
            try scanner.finish()
            header = scanner.header ?? header
        }
        guard let header else { throw .withoutSize }
        if header.format == .xbm { return try decodeBitmap(header) }
        if header.format.isHeldWhole { try decodeHeld(header) }
        guard let loader else { throw .truncated(header.format) }
        defer { discard() }
        try loader.close()
        guard hasEnd else { throw .truncated(header.format) }
        let known: Int
        switch header.frames {
        case .count(let count), .atLeast(let count): known = max(count, 1)
        }
        let frames = try loader.frames(min(options.maximumFrames, known)) { bytes throws(ImageError) in
            let needed = Int64(bytes) * 2
            guard needed <= options.limits.memory.bytes else { throw options.memoryError(needed, header.format) }
        }
        var shown: [DecodedImage.Frame] = []
        for (pixels, milliseconds) in frames { shown.append(try frame(pixels, milliseconds, header)) }
        return DecodedImage(header, shown)
    }

    /// Decodes an icon or a TIFF file, which is complete in memory.
    private func decodeHeld(_ header: ImageHeader) throws(ImageError) {
        let size = try target(header)
        var bytes = held
        held = []
        var format = header.format
        if format == .ico {
            let directory = IconDirectory(bytes)
            guard let image = directory.image, image.upperBound <= bytes.count else { throw .truncated(.ico) }
            if directory.isPNG { (format, bytes) = (.png, Array(bytes[image])) }
        } else {
            let needed = TIFFStrip.memory(bytes)
            guard needed <= options.limits.memory.bytes - Int64(size.width * size.height * 4) else {
                throw options.memoryError(needed, format)
            }
        }
        try start(header, as: format)
        try write(bytes.span)
    }

    /// Decodes an X bitmap, which is complete in memory.
    private func decodeBitmap(_ header: ImageHeader) throws(ImageError) -> DecodedImage {
        _ = try target(header)
        let pixels = try XBMPixels.decode(held, width: header.width, height: header.height)
        held = []
        let decoded = try Pixbuf(pixels, width: header.width, height: header.height, hasAlpha: false)
        return DecodedImage(header, [try frame(decoded, nil, header)])
    }

    /// Returns the orientation of the decoded pixels that the image still has to be turned from.
    ///
    /// The decoder of AVIF turns pixels by itself. libtiff mirrors them: for the orientations 1 to 4 as they demand,
    /// and for 5 to 8 like 1 to 4.
    private func remainingOrientation(_ header: ImageHeader) -> ImageHeader.Orientation {
        if header.format == .avif {
            if options.appliesOrientation { return .up }
            return switch header.orientation {
            case .left: .right
            case .right: .left
            default: header.orientation
            }
        }
        guard header.format == .tiff else { return options.appliesOrientation ? header.orientation : .up }
        if options.appliesOrientation {
            return switch header.orientation {
            case .up, .upMirrored, .down, .downMirrored: .up
            case .leftMirrored, .rightMirrored: .leftMirrored
            case .right, .left: .rightMirrored
            }
        }
        return switch header.orientation {
        case .up, .leftMirrored: .up
        case .upMirrored, .right: .upMirrored
        case .down, .rightMirrored: .down
        case .downMirrored, .left: .downMirrored
        }
    }

    private func frame(
        _ decoded: Pixbuf, _ milliseconds: Int?, _ header: ImageHeader
    ) throws(ImageError) -> DecodedImage.Frame {
        // Some decoders ignore the size that was asked for.
        let target = if let chosen = loader?.target { chosen } else { try target(header) }
        let scaled = try decoded.scaled(width: target.width, height: target.height)
        let pixels = try scaled.upright(from: remainingOrientation(header))
        return DecodedImage.Frame(pixels: pixels, duration: milliseconds.map { .milliseconds($0) })
    }
}

extension ImageFormat {
    /// Whether the whole file is needed before its decoder starts.
    fileprivate var isHeldWhole: Bool { self == .ico || self == .tiff || self == .xbm }
}
