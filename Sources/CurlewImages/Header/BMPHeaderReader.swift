// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Reads the header of a bitmap: BITMAPCOREHEADER, those of OS/2 with 16 to 64 bytes, and BITMAPINFOHEADER up to
/// version 5 (Microsoft, "Bitmap Header Types").
struct BMPHeaderReader: HeaderReader {
    private enum Step: Sendable {
        case start, core, information, masks
    }

    /// The compressions BI_BITFIELDS and BI_ALPHABITFIELDS.
    private static let fields: Set<Int> = [3, 6]

    let format = ImageFormat.bmp
    var header: ImageHeader?
    private(set) var need: HeaderNeed? = HeaderNeed(14, 4)
    private var step = Step.start
    /// The header, until the masks are known.
    private var unfinished: ImageHeader?

    mutating func read(_ bytes: [UInt8]) throws(ImageError) {
        switch step {
        case .start: try readSize(bytes.number(at: 0, bytes: 4, .little))
        case .core:
            let bits = bytes.number(at: 6, bytes: 2, .little)
            header = try sized(
                bytes.number(at: 0, bytes: 2, .little), bytes.number(at: 2, bytes: 2, .little), bits: bits)
            need = nil
        case .information: try readInformation(bytes)
        case .masks: readMasks(bytes)
        }
    }

    private mutating func readSize(_ size: Int) throws(ImageError) {
        switch size {
        case 12: (step, need) = (.core, HeaderNeed(18, 8))
        case 16...124: (step, need) = (.information, HeaderNeed(18, size - 4))
        default: throw malformed("its header has \(size) bytes.")
        }
    }

    private mutating func readInformation(_ bytes: [UInt8]) throws(ImageError) {
        // A negative height means that the first row is the top.
        let (width, height) = (Self.signed(bytes, at: 0), abs(Self.signed(bytes, at: 4)))
        let bits = bytes.number(at: 10, bytes: 2, .little)
        let image = try sized(width, height, bits: bits)
        let size = bytes.count + 4
        // The number 3 means a compression with OS/2's header of 64 bytes, and there is no version with 16 bytes.
        guard size >= 40, size != 64, [16, 32].contains(bits),
            Self.fields.contains(bytes.number(at: 12, bytes: 4, .little))
        else {
            header = image
            need = nil
            return
        }
        unfinished = image
        if size >= 52 {
            readMasks(Array(bytes[36...]))
        } else {
            let hasAlpha = bytes.number(at: 12, bytes: 4, .little) == 6
            (step, need) = (.masks, HeaderNeed(14 + size, hasAlpha ? 16 : 12))
        }
    }

    /// Reads the bits of red, green, blue and, if it is there, alpha.
    private mutating func readMasks(_ bytes: [UInt8]) {
        let offsets = stride(from: 0, to: min(bytes.count, 16) / 4 * 4, by: 4)
        let masks = offsets.map { bytes.number(at: $0, bytes: 4, .little) }
        header = unfinished
        header?.bitsPerChannel = min(16, max(1, masks.prefix(3).map(\.nonzeroBitCount).max() ?? 8))
        header?.hasAlpha = masks.count == 4 && masks[3] != 0
        need = nil
    }

    private func sized(_ width: Int, _ height: Int, bits: Int) throws(ImageError) -> ImageHeader {
        // 0 bits stand for a JPEG or PNG file inside.
        guard [0, 1, 2, 4, 8, 16, 24, 32].contains(bits) else { throw malformed("a pixel has \(bits) bits.") }
        var header = try ImageHeader(.bmp, width: width, height: height)
        header.bitsPerChannel = bits == 16 ? 5 : 8
        return header
    }

    private static func signed(_ bytes: [UInt8], at offset: Int) -> Int {
        Int(Int32(truncatingIfNeeded: bytes.number(at: offset, bytes: 4, .little)))
    }
}
