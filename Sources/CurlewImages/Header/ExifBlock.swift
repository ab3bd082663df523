// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Exif metadata: a small TIFF file inside of an image (Exif 3.0, §4.5).
enum ExifBlock {
    /// The identifier before the metadata in JPEG, and in some WebP files.
    static let identifier: StaticString = "Exif\0\0"

    /// The orientation in the first directory; nil if the metadata are damaged or lack it, which is no error.
    static func orientation(in bytes: [UInt8]) -> ImageHeader.Orientation? {
        let start = bytes.has(identifier) ? 6 : 0
        let order: ByteOrder
        if bytes.has("II*\0", at: start) {
            order = .little
        } else if bytes.has("MM\0*", at: start) {
            order = .big
        } else {
            return nil
        }
        guard bytes.count >= start + 8 else { return nil }
        let directory = start + bytes.number(at: start + 4, bytes: 4, order)
        guard bytes.count >= directory + 2 else { return nil }
        let count = bytes.number(at: directory, bytes: 2, order)
        for entry in 0..<count {
            let offset = directory + 2 + 12 * entry
            guard bytes.count >= offset + 12 else { return nil }
            if let found = TIFFEntry(Array(bytes[offset..<offset + 12]), order), found.tag == .orientation {
                return ImageHeader.Orientation(rawValue: found.value ?? 0)
            }
        }
        return nil
    }
}

/// An entry of a TIFF directory (TIFF 6.0, §2).
struct TIFFEntry: Sendable, Hashable {
    enum Tag: Int, Sendable {
        case width = 256
        case height = 257
        case bitsPerSample = 258
        case photometric = 262
        case orientation = 274
        case extraSamples = 338
    }

    let tag: Tag
    let count: Int
    /// The number of bytes of one value: 1 for BYTE, 2 for SHORT, 4 for LONG.
    let size: Int
    /// The first value; nil if the values do not fit into the entry.
    let value: Int?
    /// The offset of values that do not fit into the entry.
    let offset: Int

    /// Reads the 12 bytes of an entry; nil for a tag or a type that no header needs, and for an entry without a value.
    init?(_ bytes: [UInt8], _ order: ByteOrder) {
        let sizes = [1: 1, 3: 2, 4: 4]
        guard let tag = Tag(rawValue: bytes.number(at: 0, bytes: 2, order)),
            let size = sizes[bytes.number(at: 2, bytes: 2, order)]
        else { return nil }
        (self.tag, self.size) = (tag, size)
        count = bytes.number(at: 4, bytes: 4, order)
        offset = bytes.number(at: 8, bytes: 4, order)
        guard count > 0 else { return nil }
        value = count * size <= 4 ? bytes.number(at: 8, bytes: size, order) : nil
    }
}
