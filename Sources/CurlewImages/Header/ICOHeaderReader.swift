// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Reads the directory of an icon or a cursor, and reports the largest image (Microsoft, "Icons", ICONDIR).
///
/// The directory has one byte for a side, in which 0 means 256. If the largest image is a PNG file, its own header
/// decides about a side of 0.
struct ICOHeaderReader: HeaderReader {
    private enum Step: Sendable {
        case start, entry, image
    }

    let format = ImageFormat.ico
    var header: ImageHeader?
    private(set) var need: HeaderNeed? = HeaderNeed(0, 6)
    private var step = Step.start
    private var count = 0
    private var entries = 0
    private var isCursor = false
    private var largest = (width: 0, height: 0, bits: 0, size: 0, offset: 0)

    mutating func read(_ bytes: [UInt8]) throws(ImageError) {
        switch step {
        case .start:
            isCursor = bytes[2] == 2
            count = bytes.number(at: 4, bytes: 2, .little)
            guard count > 0 else { throw malformed("it has no image.") }
            (step, need) = (.entry, HeaderNeed(6, 16))
        case .entry: try readEntry(bytes)
        case .image:
            if Array(bytes[..<8]) == [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A] {
                let (width, height) = (bytes.number(at: 16, bytes: 4), bytes.number(at: 20, bytes: 4))
                if width > 0, height > 0 { (largest.width, largest.height) = (width, height) }
            }
            try end()
        }
    }

    private mutating func readEntry(_ bytes: [UInt8]) throws(ImageError) {
        let (width, height) = (bytes[0] == 0 ? 256 : Int(bytes[0]), bytes[1] == 0 ? 256 : Int(bytes[1]))
        // A cursor has its hotspot in this field.
        let bits = isCursor ? 0 : bytes.number(at: 6, bytes: 2, .little)
        if (width * height, bits) > (largest.width * largest.height, largest.bits) {
            largest = (
                width, height, bits, bytes.number(at: 8, bytes: 4, .little), bytes.number(at: 12, bytes: 4, .little)
            )
        }
        entries += 1
        need = HeaderNeed(6 + 16 * entries, 16)
        guard entries == count else { return }
        guard largest.offset >= 6 + 16 * count else { throw malformed("an image overlaps the directory.") }
        if max(largest.width, largest.height) == 256, largest.size >= 24 {
            (step, need) = (.image, HeaderNeed(largest.offset, 24))
        } else {
            try end()
        }
    }

    private mutating func end() throws(ImageError) {
        header = try ImageHeader(.ico, width: largest.width, height: largest.height)
        header?.frames = .count(count)
        header?.hasAlpha = true
        need = nil
    }
}
