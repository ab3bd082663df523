// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew

/// Checks a GIF file strictly before its bytes reach gdk-pixbuf, which crashes on some damaged files.
///
/// gdk-pixbuf 2.42 writes outside of a frame that leaves the screen, ends the process if the durations of all frames
/// exceed 2³¹ ms, and needs quadratic time for many frames.
struct GIFGuard {
    private enum Part {
        /// The signature and the logical screen (GIF89a §17, §18).
        case screen
        /// The first byte of a block.
        case block
        /// The label of an extension (§23 to §26).
        case label
        /// The sub-block of a graphic control extension (§23).
        case control
        /// The rest of an image descriptor (§20).
        case image
        /// The length of a sub-block (§15).
        case subBlock
        case skipping(Int, then: Next)
        case ended
    }

    private enum Next { case block, subBlock }

    /// The maximum number of frames.
    static let maximumFrames = 10_000

    private var part = Part.screen
    private var field: [UInt8] = []
    private var screen = (width: 0, height: 0)
    private var frames = 0
    /// The duration of the next frame, and an upper bound of that of all frames, in milliseconds.
    private var delay = 100
    private var duration: Int64 = 0

    /// Reads the next bytes.
    ///
    /// - Returns: The number of bytes up to the end of the image.
    mutating func append(_ bytes: Span<UInt8>) throws(ImageError) -> Int {
        var position = 0
        while position < bytes.count {
            switch part {
            case .ended: return position
            case .skipping(let count, let next):
                let skipped = min(count, bytes.count - position)
                position += skipped
                if skipped < count {
                    part = .skipping(count - skipped, then: next)
                } else {
                    part = next == .block ? .block : .subBlock
                }
            case .screen:
                guard field.complete(to: 13, from: bytes, &position) else { return position }
                screen = (field.number(at: 6, bytes: 2, .little), field.number(at: 8, bytes: 2, .little))
                skip(GIFHeaderReader.tableSize(field[10]), then: .block)
            case .block:
                switch bytes[position] {
                case 0x21: part = .label
                case 0x2C: part = .image
                case 0x3B: part = .ended
                default: throw malformed("a block starts with \(bytes[position]).")
                }
                position += 1
            case .label:
                part = bytes[position] == 0xF9 ? .control : .subBlock
                position += 1
            case .control:
                guard field.complete(to: 5, from: bytes, &position) else { return position }
                guard field[0] == 4 else { throw malformed("a graphic control extension has another length.") }
                // gdk-pixbuf shows a frame without a duration for 100 ms.
                delay = max(field.number(at: 2, bytes: 2, .little) * 10, 100)
                skip(0, then: .subBlock)
            case .image:
                guard field.complete(to: 9, from: bytes, &position) else { return position }
                try checkFrame()
                skip(GIFHeaderReader.tableSize(field[8]) + 1, then: .subBlock)
            case .subBlock:
                let length = Int(bytes[position])
                position += 1
                skip(length, then: length == 0 ? .block : .subBlock)
            }
        }
        return position
    }

    private mutating func checkFrame() throws(ImageError) {
        let (left, top) = (field.number(at: 0, bytes: 2, .little), field.number(at: 2, bytes: 2, .little))
        let (width, height) = (field.number(at: 4, bytes: 2, .little), field.number(at: 6, bytes: 2, .little))
        guard width > 0, height > 0, left + width <= screen.width, top + height <= screen.height else {
            throw malformed("a frame lies outside of the screen.")
        }
        frames += 1
        duration += Int64(delay)
        delay = 100
        guard frames <= Self.maximumFrames, duration <= Int64(Int32.max) else {
            throw ImageError(
                .tooLarge, format: .gif, "The animation has more than \(Self.maximumFrames) frames, or lasts for weeks."
            )
        }
    }

    private func malformed(_ message: String) -> ImageError {
        ImageError(.malformed, format: .gif, "The GIF file is damaged: \(message)")
    }

    private mutating func skip(_ count: Int, then next: Next) {
        field = []
        if count > 0 {
            part = .skipping(count, then: next)
        } else {
            part = next == .block ? .block : .subBlock
        }
    }
}
