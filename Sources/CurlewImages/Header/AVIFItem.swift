// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The properties of the primary item of an AVIF file (ISO/IEC 23008-12, §6.5 and §9.3).
struct AVIFItem: Sendable {
    /// The maximum number of properties, and of associations of items with them.
    static let maximumCount = 4096

    private enum Property: Sendable {
        case size(UInt32, UInt32), rotation(Int), mirror(Int), bits(Int), other
    }

    private struct Association: Sendable {
        var item: Int
        var property: Int
    }

    private(set) var primary: Int?
    private(set) var isAssociated = false
    private var properties: [Property] = []
    /// The associations of the primary item, or of all items until it is known.
    private var associations: [Association] = []
    private var hasAlpha = false

    mutating func select(_ item: Int) { primary = primary ?? item }

    /// Adds the next property, also one of a type without a meaning for the header.
    mutating func add(_ type: String, _ bytes: [UInt8]) throws(ImageError) {
        let property: Property =
            switch type {
            case "ispe":
                .size(
                    UInt32(truncatingIfNeeded: bytes.number(at: 4, bytes: 4)),
                    UInt32(truncatingIfNeeded: bytes.number(at: 8, bytes: 4)))
            case "irot": .rotation(Int(bytes[0] & 3))
            case "imir": .mirror(Int(bytes[0] & 1))
            case "pixi" where bytes[4] > 0: .bits(Int(bytes[5]))
            // The bits high_bitdepth and twelve_bit of the AV1 codec configuration.
            case "av1C": .bits(bytes[2] & 0x40 == 0 ? 8 : bytes[2] & 0x20 == 0 ? 10 : 12)
            default: .other
            }
        if type == "auxC" {
            let kind = bytes[4...].prefix { $0 != 0 }
            // The second name is that of HEVC, which some encoders use.
            let names: [StaticString] = ["urn:mpeg:mpegB:cicp:systems:auxiliary:alpha", "urn:mpeg:hevc:2015:auxid:1"]
            hasAlpha = hasAlpha || names.contains { kind.elementsEqual("\($0)".utf8) }
        }
        try check(properties.count)
        properties.append(property)
    }

    /// Associates an item with properties, by their numbers from 1 in the order of their effects.
    mutating func associate(_ item: Int, _ numbers: [Int]) throws(ImageError) {
        isAssociated = true
        guard primary == nil || item == primary else { return }
        for number in numbers {
            try check(associations.count)
            associations.append(Association(item: item, property: number))
        }
    }

    private func check(_ count: Int) throws(ImageError) {
        if count < Self.maximumCount { return }
        throw ImageError(.tooLarge, format: .avif, "The AVIF file has more than \(count) properties.")
    }

    /// Returns the header; nil if the item has no size.
    func header() throws(ImageError) -> ImageHeader? {
        let own = associations.filter { $0.item == primary && 1..<properties.count + 1 ~= $0.property }
            .map { properties[$0.property - 1] }
        var header: ImageHeader?
        var (quarters, isMirrored) = (0, false)
        var bits: Int?
        for property in own {
            switch property {
            case .size(let width, let height) where header == nil:
                header = try ImageHeader(.avif, width: Int(width), height: Int(height))
            case .rotation(let angle): quarters -= angle
            case .mirror(let axis):
                // Axis 1 exchanges left and right, axis 0 top and bottom, which is the same and a half turn.
                (quarters, isMirrored) = ((axis == 1 ? 0 : 2) - quarters, !isMirrored)
            case .bits(let number): bits = bits ?? number
            default: break
            }
        }
        header?.orientation = .init(clockwiseQuarters: quarters, isMirrored: isMirrored)
        header?.bitsPerChannel = min(16, max(1, bits ?? 8))
        header?.hasAlpha = hasAlpha
        return header
    }
}

extension ImageHeader.Orientation {
    /// Creates the orientation of pixels that are upright after a mirroring left to right and some clockwise quarter
    /// turns, in this order.
    init(clockwiseQuarters: Int, isMirrored: Bool) {
        let quarters = clockwiseQuarters & 3
        let mirrored: [Self] = [.upMirrored, .rightMirrored, .downMirrored, .leftMirrored]
        self = isMirrored ? mirrored[quarters] : [.up, .right, .down, .left][quarters]
    }
}

/// The facts about a track of an AVIF sequence, or about all of them (ISO/IEC 14496-12, §8).
struct AVIFTrack: Sendable {
    private(set) var width = 0
    private(set) var height = 0
    private(set) var frames = 0
    private(set) var hasAlpha = false
    private var handler = ""

    mutating func read(_ type: String, _ bytes: [UInt8]) {
        switch type {
        case "tkhd":
            // Numbers with 16 bits behind the point; version 1 has times of 64 bits.
            let offset = bytes[0] == 1 && bytes.count >= 96 ? 88 : 76
            (width, height) = (bytes.number(at: offset, bytes: 2), bytes.number(at: offset + 4, bytes: 2))
        case "hdlr": handler = String(decoding: bytes[8..<12], as: UTF8.self)
        default: frames = bytes.number(at: 8, bytes: 4)
        }
    }

    /// Adds the facts about another track: the first one with pictures is shown, auxiliary ones are its alpha channel.
    mutating func merge(_ other: AVIFTrack) {
        if other.handler == "auxv" { hasAlpha = true }
        if other.handler == "pict", frames == 0 { (width, height, frames) = (other.width, other.height, other.frames) }
    }
}
