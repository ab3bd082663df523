// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Reads the logical screen of a GIF file and counts its images (GIF89a, §17 to §27).
struct GIFHeaderReader: HeaderReader {
    private enum Step: Sendable {
        case screen, block, label, control
        /// The flags of a graphic control extension, and the length of their sub-block.
        case flags(Int)
        case image, subBlock
    }

    let format = ImageFormat.gif
    var header: ImageHeader?
    private(set) var need: HeaderNeed? = HeaderNeed(6, 7)
    private let maximumFrames: Int
    private var step = Step.screen
    private var frames = 0

    init(maximumFrames: Int) { self.maximumFrames = maximumFrames }

    mutating func read(_ bytes: [UInt8]) throws(ImageError) {
        let end = (need?.offset ?? 0) + bytes.count
        switch step {
        case .screen:
            header = try ImageHeader(
                .gif, width: bytes.number(at: 0, bytes: 2, .little), height: bytes.number(at: 2, bytes: 2, .little))
            header?.frames = .atLeast(1)
            expect(.block, at: end + Self.tableSize(bytes[4]), 1)
        case .block:
            switch bytes[0] {
            case 0x21: expect(.label, at: end, 1)
            case 0x2C: expect(.image, at: end, 9)
            case 0x3B:
                header?.frames = .atLeast(max(1, frames))
                endCount()
                need = nil
            default: throw malformed("a block starts with \(bytes[0]).")
            }
        case .label:
            expect(bytes[0] == 0xF9 ? .control : .subBlock, at: end, 1)
        case .control:
            // A graphic control extension has one sub-block of four bytes (§23).
            if bytes[0] == 0 { expect(.block, at: end, 1) } else { expect(.flags(Int(bytes[0])), at: end, 1) }
        case .flags(let length):
            if bytes[0] & 1 == 1 { header?.hasAlpha = true }
            expect(.subBlock, at: end - 1 + length, 1)
        case .image:
            frames += 1
            header?.frames = .atLeast(frames)
            header?.isAnimated = frames > 1
            // The table of colours and one byte with the size of a code come before the sub-blocks (§21, §22).
            expect(.subBlock, at: end + Self.tableSize(bytes[8]) + 1, 1)
            if frames == maximumFrames { need = nil }
        case .subBlock:
            if bytes[0] == 0 { expect(.block, at: end, 1) } else { expect(.subBlock, at: end + Int(bytes[0]), 1) }
        }
    }

    private mutating func expect(_ step: Step, at offset: Int, _ count: Int) {
        (self.step, need) = (step, HeaderNeed(offset, count))
    }

    /// The bytes of a table of colours: three for each (§19).
    static func tableSize(_ flags: UInt8) -> Int { flags & 0x80 == 0 ? 0 : 3 << (Int(flags & 7) + 1) }
}
