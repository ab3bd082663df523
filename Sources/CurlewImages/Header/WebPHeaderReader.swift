// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Reads the chunks of a WebP file (RFC 9649, §2; §2.5 to §2.7).
///
/// A file with a chunk VP8X may have its Exif metadata behind the pixels.
struct WebPHeaderReader: HeaderReader {
    private enum Step: Sendable {
        case file, chunk, lossy, lossless, canvas, exif
    }

    let format = ImageFormat.webp
    var header: ImageHeader?
    private(set) var need: HeaderNeed? = HeaderNeed(0, 12)
    private let maximumFrames: Int
    private var step = Step.file
    /// The offset of the next chunk.
    private var next = 12
    /// The end of the file that its header states.
    private var end = 0
    private var frames = 0
    private var isAnimation = false

    init(maximumFrames: Int) { self.maximumFrames = maximumFrames }

    mutating func read(_ bytes: [UInt8]) throws(ImageError) {
        switch step {
        case .file:
            end = bytes.number(at: 4, bytes: 4, .little) + 8
            awaitChunk()
        case .chunk: try readChunk(bytes)
        case .lossy: try readLossy(bytes)
        case .lossless: try readLossless(bytes)
        case .canvas: try readCanvas(bytes)
        case .exif:
            if let orientation = ExifBlock.orientation(in: bytes) { header?.orientation = orientation }
            if isAnimation { awaitChunk() } else { need = nil }
        }
    }

    /// Awaits the next chunk, or ends with the file.
    private mutating func awaitChunk() {
        (step, need) = (.chunk, HeaderNeed(next, 8))
        if header != nil, next + 8 > end {
            endCount()
            need = nil
        }
    }

    private mutating func readChunk(_ bytes: [UInt8]) throws(ImageError) {
        let length = bytes.number(at: 4, bytes: 4, .little)
        let start = next + 8
        guard start + length <= end else { throw malformed("a chunk is larger than the file.") }
        // Chunks have an even number of bytes (§2.3).
        next = start + length + length & 1
        guard header != nil else {
            let (step, count): (Step, Int)
            switch String(decoding: bytes[..<4], as: UTF8.self) {
            case "VP8 ": (step, count) = (.lossy, 10)
            case "VP8L": (step, count) = (.lossless, 5)
            case "VP8X": (step, count) = (.canvas, 10)
            default: throw malformed("it does not start with an image chunk.")
            }
            guard length >= count else { throw malformed("its first chunk has \(length) bytes.") }
            (self.step, need) = (step, HeaderNeed(start, count))
            return
        }
        if bytes.has("ANMF"), isAnimation {
            frames += 1
            header?.frames = .atLeast(frames)
            if frames == maximumFrames {
                need = nil
                return
            }
        } else if bytes.has("EXIF"), length > 0 {
            (step, need) = (.exif, HeaderNeed(start, min(length, HeaderNeed.maximumCount)))
            return
        }
        awaitChunk()
    }

    /// Reads a frame header of VP8 (RFC 6386, §9.1).
    private mutating func readLossy(_ bytes: [UInt8]) throws(ImageError) {
        guard bytes[0] & 1 == 0, Array(bytes[3..<6]) == [0x9D, 0x01, 0x2A] else {
            throw malformed("it does not start with a key frame.")
        }
        header = try ImageHeader(
            .webp, width: bytes.number(at: 6, bytes: 2, .little) & 0x3FFF,
            height: bytes.number(at: 8, bytes: 2, .little) & 0x3FFF)
        need = nil
    }

    /// Reads the header of a lossless image (RFC 9649, §3.4).
    private mutating func readLossless(_ bytes: [UInt8]) throws(ImageError) {
        let fields = bytes.number(at: 1, bytes: 4, .little)
        guard bytes[0] == 0x2F, fields >> 29 == 0 else { throw malformed("its lossless image has no signature.") }
        header = try ImageHeader(.webp, width: fields & 0x3FFF + 1, height: fields >> 14 & 0x3FFF + 1)
        header?.hasAlpha = fields >> 28 & 1 == 1
        need = nil
    }

    /// Reads the flags and the canvas of an extended file (§2.7).
    private mutating func readCanvas(_ bytes: [UInt8]) throws(ImageError) {
        let (width, height) = (bytes.number(at: 4, bytes: 3, .little) + 1, bytes.number(at: 7, bytes: 3, .little) + 1)
        guard width * height <= UInt32.max else {
            throw ImageError(.tooLarge, format: .webp, "The WebP image has \(width) × \(height) pixels.")
        }
        header = try ImageHeader(.webp, width: width, height: height)
        header?.hasAlpha = bytes[0] & 0x10 != 0
        isAnimation = bytes[0] & 0x02 != 0
        header?.isAnimated = isAnimation
        header?.frames = isAnimation ? .atLeast(1) : .count(1)
        if isAnimation || bytes[0] & 0x08 != 0 { awaitChunk() } else { need = nil }
    }
}
