// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Walks the marker segments of a JPEG file up to the first scan (ITU-T T.81, Annex B).
///
/// Like decoders, the reader skips bytes between segments that are no marker.
struct JPEGHeaderReader: HeaderReader {
    private enum Step: Sendable {
        case marker, fill, length(UInt8), frame, exif
    }

    /// SOF0 to SOF15, without DHT, JPG and DAC (Table B.1).
    private static let frameMarkers = Set<UInt8>(0xC0...0xCF).subtracting([0xC4, 0xC8, 0xCC])
    /// Markers without a segment: a stuffed zero, TEM, RST0 to RST7, and SOI (B.1.1.3).
    private static let loneMarkers = Set<UInt8>(0xD0...0xD8).union([0x00, 0x01])

    let format = ImageFormat.jpeg
    var header: ImageHeader?
    private(set) var need: HeaderNeed? = HeaderNeed(2, 1)
    private var step = Step.marker
    /// The offset of the next segment.
    private var next = 2
    private var orientation: ImageHeader.Orientation?

    mutating func read(_ bytes: [UInt8]) throws(ImageError) {
        switch step {
        case .marker: awaitMarker(isFill: bytes[0] == 0xFF)
        case .fill where bytes[0] == 0xFF: awaitMarker(isFill: true)
        case .fill: try readMarker(bytes[0])
        case .length(let marker): try readLength(bytes.number(at: 0, bytes: 2), of: marker)
        case .frame:
            try readFrame(bytes)
            awaitSegment()
        case .exif:
            if bytes.has(ExifBlock.identifier), let found = ExifBlock.orientation(in: bytes) {
                orientation = found
                header?.orientation = found
            }
            awaitSegment()
        }
    }

    /// Reads the byte behind the last one.
    private mutating func awaitMarker(isFill: Bool) {
        next += 1
        (step, need) = (isFill ? .fill : .marker, HeaderNeed(next, 1))
    }

    private mutating func awaitSegment() { (step, need) = (.marker, HeaderNeed(next, 1)) }

    private mutating func readMarker(_ marker: UInt8) throws(ImageError) {
        switch marker {
        case 0xD9, 0xDA:
            guard header != nil else { throw malformed("the image data start before the size.") }
            need = nil
        case _ where Self.loneMarkers.contains(marker): awaitMarker(isFill: false)
        default:
            next += 1
            (step, need) = (.length(marker), HeaderNeed(next, 2))
        }
    }

    private mutating func readLength(_ length: Int, of marker: UInt8) throws(ImageError) {
        guard length >= 2 else { throw malformed("a segment has a length of \(length).") }
        let start = next + 2
        next += length
        if Self.frameMarkers.contains(marker), header == nil {
            guard length >= 8 else { throw malformed("the frame header has \(length) bytes.") }
            (step, need) = (.frame, HeaderNeed(start, 6))
        } else if marker == 0xE1, orientation == nil, length > 16 {
            (step, need) = (.exif, HeaderNeed(start, length - 2))
        } else {
            awaitSegment()
        }
    }

    /// Reads the start of a frame header (B.2.2).
    private mutating func readFrame(_ bytes: [UInt8]) throws(ImageError) {
        guard 2...16 ~= bytes[0] else { throw malformed("a sample has \(bytes[0]) bits.") }
        let height = bytes.number(at: 1, bytes: 2)
        guard height > 0 else {
            throw ImageError(
                .unsupportedFormat, format: .jpeg, "The JPEG file states its height after the image data (DNL).",
                hint: "Save the image again in another program.")
        }
        header = try ImageHeader(.jpeg, width: bytes.number(at: 3, bytes: 2), height: height)
        header?.bitsPerChannel = Int(bytes[0])
        header?.orientation = orientation ?? .up
    }
}
