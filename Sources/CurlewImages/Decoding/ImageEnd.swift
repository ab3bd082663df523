// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew

/// Finds the end of a JPEG, WebP or BMP file while its bytes arrive, because gdk-pixbuf accepts files that end early.
///
/// It also counts the scans of a JPEG file: a small file with thousands of scans would take minutes. `PNGFilter` finds
/// the end of PNG files; gdk-pixbuf reports files of other formats that end early.
struct ImageEnd {
    private enum Part {
        /// The next bytes have no meaning here.
        case skipping(Int, then: Next)
        /// A JPEG marker: FF, perhaps more FF, and a code (ITU-T T.81 §B.1.1.2).
        case marker
        /// The length of a JPEG segment, which counts itself.
        case segmentLength(isScan: Bool)
        /// Compressed data of a JPEG scan.
        case scan
        /// The heads of a bitmap file and of its information, with the sizes of the image.
        case bitmapHead
        /// The head of a RIFF file: its name, and its length without these 8 bytes in little-endian order.
        case riffHead
        /// The end was found, or the format needs no search.
        case found
    }

    private enum Next { case marker, scan, found }

    /// The maximum number of scans; encoders make about ten.
    static let maximumScans = 200

    private var part: Part
    private var scans = 0
    /// The bytes of a field that have arrived.
    private var field: [UInt8] = []

    /// Creates a search.
    ///
    /// - Parameter format: The format of the file.
    init(_ format: ImageFormat) {
        switch format {
        case .jpeg: part = .skipping(2, then: .marker)
        case .bmp: part = .bitmapHead
        case .webp: part = .riffHead
        default: part = .found
        }
    }

    /// Whether the end has arrived.
    var isFound: Bool { if case .found = part { true } else { false } }

    /// Whether the file has more scans than a decoder should read.
    var hasTooManyScans: Bool { scans > Self.maximumScans }

    /// Reads the next bytes of the file.
    mutating func append(_ bytes: Span<UInt8>) {
        var position = 0
        while position < bytes.count {
            switch part {
            case .found: return
            case .skipping(let count, let next):
                let skipped = min(count, bytes.count - position)
                position += skipped
                skip(count - skipped, then: next)
            case .bitmapHead:
                guard field.complete(to: 34, from: bytes, &position) else { return }
                skip(Self.lengthOfBitmap(field) - 34, then: .found)
                field = []
            case .riffHead:
                guard field.complete(to: 8, from: bytes, &position) else { return }
                skip(field[4...].reversed().reduce(0) { $0 << 8 | Int($1) }, then: .found)
                field = []
            case .marker: readMarker(bytes[position], &position)
            case .segmentLength(let isScan):
                guard field.complete(to: 2, from: bytes, &position) else { return }
                let length = Int(field[0]) << 8 | Int(field[1])
                field = []
                skip(max(length - 2, 0), then: isScan ? .scan : .marker)
            case .scan:
                guard let marker = bytes.firstIndex(of: 0xFF, from: position) else { return }
                position = marker + 1
                part = .marker
                field = [0xFF]
            }
        }
    }

    /// Returns the length of a bitmap file, in little-endian order; 0 if it is compressed, because gdk-pixbuf reports
    /// compressed ones that end early.
    ///
    /// - Parameter head: The first 34 bytes.
    private static func lengthOfBitmap(_ head: [UInt8]) -> Int {
        // The oldest form has 12 bytes of information with sides of 16 bits.
        let isCore = head.number(at: 14, bytes: 4, .little) == 12
        let compression = isCore ? 0 : head.number(at: 30, bytes: 4, .little)
        // 0 is no compression; 3 and 6 state the bits of the colours.
        guard [0, 3, 6].contains(compression) else { return 0 }
        let width =
            isCore
            ? head.number(at: 18, bytes: 2, .little)
            : Int(Int32(truncatingIfNeeded: head.number(at: 18, bytes: 4, .little)))
        let height =
            isCore
            ? head.number(at: 20, bytes: 2, .little)
            : Int(Int32(truncatingIfNeeded: head.number(at: 22, bytes: 4, .little)))
        let depth = isCore ? head.number(at: 24, bytes: 2, .little) : head.number(at: 28, bytes: 2, .little)
        let row = (abs(width) * depth + 31) / 32 * 4
        let (rows, isHuge) = row.multipliedReportingOverflow(by: abs(height))
        return head.number(at: 10, bytes: 4, .little) + (isHuge ? .max / 2 : min(rows, .max / 2))
    }

    private mutating func readMarker(_ byte: UInt8, _ position: inout Int) {
        position += 1
        guard field == [0xFF] else {
            if byte == 0xFF { field = [0xFF] }
            return
        }
        if byte == 0xFF { return }
        field = []
        switch byte {
        // In a scan, FF 00 is the byte FF; restart markers and TEM have no length.
        case 0x00, 0xD0...0xD7: part = .scan
        case 0x01, 0xD8: break
        case 0xD9: part = .found
        default:
            if byte == 0xDA { scans += 1 }
            part = .segmentLength(isScan: byte == 0xDA)
        }
    }

    private mutating func skip(_ count: Int, then next: Next) {
        if count > 0 {
            part = .skipping(count, then: next)
            return
        }
        switch next {
        case .marker: part = .marker
        case .scan: part = .scan
        case .found: part = .found
        }
    }
}
