// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension ImageHeader {
    /// Reads the header of an image while its bytes arrive.
    ///
    /// A scanner is a value: a copy continues independently. The result does not depend on the pieces in which the
    /// bytes arrive. A scanner uses at most 256 KiB: for the first 64 KiB of a TIFF file, which may refer back to them,
    /// for one Exif block of at most 64 KiB, or for 4096 properties of an AVIF file. It skips pixels without a copy.
    ///
    /// Format, size and bits of the first header are final. The other values may change until `isComplete`, because
    /// some formats store them behind the pixels: the orientation in PNG and WebP, the transparency of a PNG or GIF
    /// file, and the number of frames. If the file contradicts its format after the size, the scanner ends with the
    /// facts found until then, and `frames` remains `.atLeast`. A decoder reports the damage.
    ///
    /// ```swift
    /// var scanner = ImageHeader.Scanner()
    /// while scanner.header == nil, let chunk = try await chunks.next() {
    ///     try scanner.append(chunk)
    /// }
    /// print(scanner.header?.width ?? 0)
    /// ```
    public struct Scanner: Sendable {
        private let maximumFrames: Int
        private var signature = ImageSignature()
        /// The reader of the format; nil while the signature is undecided.
        private var reader: (any HeaderReader)?
        private var failure: ImageError?
        private var hasEnded = false
        /// The offset of the next byte in the file.
        private var position = 0
        /// The first bytes of the file.
        private var kept: [UInt8] = []
        /// The part that has arrived of the bytes that the reader needs.
        private var pending: [UInt8] = []

        /// Creates a scanner.
        ///
        /// - Parameter maximumFrames: The number of frames at which counting stops, with `.atLeast`; 65,536 by default.
        ///   Smaller numbers than 1 count as 1.
        public init(maximumFrames: Int = 65_536) {
            self.maximumFrames = max(1, maximumFrames)
        }

        /// The header; nil until the size is known.
        public var header: ImageHeader? { reader?.header }

        /// Whether further bytes are ignored: the header is complete, the bytes are invalid, or the file has ended.
        public var isComplete: Bool { hasEnded || failure != nil }

        /// Reads the next bytes of the file.
        ///
        /// - Parameter bytes: The bytes that follow those of the last call; any number.
        /// - Throws: `ImageError` of any kind but `.truncated` and `.outOfMemory`, for a file whose size cannot be
        ///   found. Later calls throw the same error.
        public mutating func append(_ bytes: Span<UInt8>) throws(ImageError) {
            if let failure { throw failure }
            var next = 0
            while !hasEnded {
                guard let need = reader == nil ? HeaderNeed(position, 1) : reader?.need else {
                    hasEnded = true
                    break
                }
                let wanted = need.offset + pending.count
                let missing = need.count - pending.count
                if missing == 0 {
                    try deliver()
                } else if wanted < kept.count {
                    pending += kept[wanted..<min(kept.count, wanted + missing)]
                } else if wanted < position {
                    // These bytes have passed: end with the facts found so far.
                    hasEnded = true
                } else if next == bytes.count {
                    break
                } else {
                    let isSkip = wanted > position
                    let step = min(isSkip ? wanted - position : missing, bytes.count - next)
                    consume(bytes.extracting(next..<next + step), isSkip: isSkip)
                    next += step
                }
            }
            if isComplete { (kept, pending) = ([], []) }
        }

        /// Reads the next bytes of the file.
        ///
        /// - Parameter bytes: The bytes that follow those of the last call; any number. A collection that is no array
        ///   is copied, in pieces.
        /// - Throws: `ImageError` of any kind but `.truncated` and `.outOfMemory`, for a file whose size cannot be
        ///   found. Later calls throw the same error.
        public mutating func append(_ bytes: some Collection<UInt8>) throws(ImageError) {
            if let array = bytes as? [UInt8] { return try append(array.span) }
            var start = bytes.startIndex
            while start != bytes.endIndex {
                let end = bytes.index(start, offsetBy: 65_536, limitedBy: bytes.endIndex) ?? bytes.endIndex
                try append(Array(bytes[start..<end]).span)
                start = isComplete ? bytes.endIndex : end
            }
        }

        /// Marks the end of the file.
        ///
        /// Frames found until then are all: `.atLeast` becomes `.count`.
        ///
        /// - Throws: `ImageError`: `.truncated` if the file ends before its size, and the error of `append` again.
        public mutating func finish() throws(ImageError) {
            if let failure { throw failure }
            guard !hasEnded else { return }
            (kept, pending) = ([], [])
            guard header != nil else {
                let error = truncation
                failure = error
                throw error
            }
            hasEnded = true
            reader?.endCount()
        }

        /// The error of a file that ends before its size.
        var truncation: ImageError {
            let name = reader.map { "\($0.format) image" } ?? "image"
            return ImageError(
                .truncated, format: reader?.format, "The \(name) ends after \(position) bytes, before its size.",
                hint: "Load the file again.")
        }

        /// The bytes that the scanner keeps, for tests of the bound.
        var keptBytes: Int { kept.count + pending.count }

        private var keptLimit: Int { reader?.keptBytes ?? ImageSignature.maximumLength }

        private mutating func consume(_ bytes: Span<UInt8>, isSkip: Bool) {
            if kept.count == position, kept.count < keptLimit {
                let limit = keptLimit
                for index in 0..<min(bytes.count, limit - kept.count) { kept.append(bytes[index]) }
            }
            if !isSkip {
                for index in bytes.indices { pending.append(bytes[index]) }
            }
            position += bytes.count
        }

        /// Passes the bytes to the reader that it needs.
        private mutating func deliver() throws(ImageError) {
            do throws(ImageError) {
                if reader != nil {
                    try reader?.read(pending)
                } else {
                    reader = try signature.push(pending[0])?.reader(maximumFrames)
                }
                pending.removeAll(keepingCapacity: true)
            } catch {
                guard header == nil else {
                    hasEnded = true
                    return
                }
                failure = error
                (kept, pending) = ([], [])
                throw error
            }
        }
    }
}

extension ImageFormat {
    /// Creates the reader of the format, which starts at the first byte of the file.
    fileprivate func reader(_ maximumFrames: Int) -> any HeaderReader {
        switch self {
        case .png: PNGHeaderReader(maximumFrames: maximumFrames)
        case .jpeg: JPEGHeaderReader()
        case .gif: GIFHeaderReader(maximumFrames: maximumFrames)
        case .webp: WebPHeaderReader(maximumFrames: maximumFrames)
        case .bmp: BMPHeaderReader()
        case .ico: ICOHeaderReader()
        case .tiff: TIFFHeaderReader(maximumFrames: maximumFrames)
        case .avif: AVIFHeaderReader()
        case .svg: SVGHeaderReader()
        case .xbm: XBMHeaderReader()
        }
    }
}
