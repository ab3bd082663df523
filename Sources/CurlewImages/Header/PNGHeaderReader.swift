// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Reads the chunks of a PNG file (W3C PNG, third edition, §5.3 and §11).
///
/// The reader checks the CRC of IHDR, without which the size could be any number. It does not check the CRCs of
/// ancillary chunks.
struct PNGHeaderReader: HeaderReader {
    private enum Step: Sendable {
        case header, chunk, animation, exif
    }

    /// Channels and permitted bit depths of each colour type (§11.2.1).
    private static let depths: [UInt8: Set<UInt8>] = [
        0: [1, 2, 4, 8, 16], 2: [8, 16], 3: [1, 2, 4, 8], 4: [8, 16], 6: [8, 16],
    ]

    let format = ImageFormat.png
    var header: ImageHeader?
    private(set) var need: HeaderNeed? = HeaderNeed(8, 25)
    private let maximumFrames: Int
    private var step = Step.header
    /// The offset of the next chunk.
    private var next = 33
    private var hasData = false
    private var isAPNG = false
    private var hasOrientation = false
    private var frames = 0

    init(maximumFrames: Int) { self.maximumFrames = maximumFrames }

    mutating func read(_ bytes: [UInt8]) throws(ImageError) {
        switch step {
        case .header: try readHeader(bytes)
        case .chunk: return try readChunk(bytes)
        case .animation:
            // Without frames the file is a still image (§11.3.6).
            isAPNG = bytes.number(at: 0, bytes: 4) > 0
            header?.isAnimated = bytes.number(at: 0, bytes: 4) > 1
        case .exif:
            if let orientation = ExifBlock.orientation(in: bytes) {
                header?.orientation = orientation
                hasOrientation = true
            }
        }
        (step, need) = (.chunk, HeaderNeed(next, 8))
    }

    private mutating func readHeader(_ bytes: [UInt8]) throws(ImageError) {
        if bytes.has("CgBI", at: 4) {
            throw ImageError(
                .unsupportedFormat, format: .png, "The file is in Apple's variant of PNG for iOS.",
                hint: "Use the original file, from before the build of the app.")
        }
        guard bytes.number(at: 0, bytes: 4) == 13, bytes.has("IHDR", at: 4) else {
            throw malformed("it does not start with a header chunk.")
        }
        guard bytes.number(at: 21, bytes: 4) == Self.checksum(of: bytes[4..<21]) else {
            throw malformed("the checksum of the header chunk is wrong.")
        }
        let (depth, type) = (bytes[16], bytes[17])
        guard Self.depths[type]?.contains(depth) == true, bytes[18] == 0, bytes[19] == 0, bytes[20] <= 1 else {
            throw malformed("colour type \(type) with \(depth) bits, or the compression, is undefined.")
        }
        header = try ImageHeader(
            .png, width: bytes.number(at: 8, bytes: 4), height: bytes.number(at: 12, bytes: 4))
        header?.bitsPerChannel = type == 3 ? 8 : Int(depth)
        header?.hasAlpha = type >= 4
        header?.frames = .atLeast(1)
    }

    private mutating func readChunk(_ bytes: [UInt8]) throws(ImageError) {
        let length = bytes.number(at: 0, bytes: 4)
        let type = String(decoding: bytes[4...], as: UTF8.self)
        guard length <= Int32.max, bytes[4...].allSatisfy({ 0x41...0x5A ~= $0 & 0xDF }) else {
            throw malformed("a chunk has an invalid name or length.")
        }
        let start = next + 8
        next = start + length + 4
        need = HeaderNeed(next, 8)
        switch type {
        case "IEND":
            if isAPNG { header?.frames = .atLeast(max(1, frames)) }
            endCount()
            need = nil
        case "IDAT":
            hasData = true
            if !isAPNG { header?.frames = .count(1) }
        case "tRNS": header?.hasAlpha = true
        case "acTL" where length == 8 && !hasData: (step, need) = (.animation, HeaderNeed(start, 8))
        case "fcTL" where isAPNG:
            frames += 1
            header?.frames = .atLeast(frames)
            if frames == maximumFrames { need = nil }
        case "eXIf" where !hasOrientation && length > 0:
            (step, need) = (.exif, HeaderNeed(start, min(length, HeaderNeed.maximumCount)))
        default: break
        }
    }

    /// The CRC of some bytes (§5.5, ISO 3309).
    static func checksum(of bytes: ArraySlice<UInt8>) -> Int {
        var sum: UInt32 = 0xFFFF_FFFF
        for byte in bytes {
            sum ^= UInt32(byte)
            for _ in 0..<8 { sum = sum & 1 == 1 ? sum >> 1 ^ 0xEDB8_8320 : sum >> 1 }
        }
        return Int(~sum)
    }
}
