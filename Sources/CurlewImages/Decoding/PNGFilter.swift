// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew

/// Removes the texts and profiles of a PNG file, and finds its end.
///
/// A few compressed texts take gigabytes in libpng, whose limits are for each chunk. gdk-pixbuf accepts files that end
/// early.
struct PNGFilter {
    private enum Part {
        case signature
        /// The length and the type of a chunk, in big-endian order (PNG §5.3).
        case head
        /// The rest of a chunk with its checksum.
        case data(Int, passes: Bool, isLast: Bool)
        case ended
    }

    /// The chunks that the pixels do not depend on, and that may be large (PNG §11.3).
    private static let removed = ["tEXt", "zTXt", "iTXt", "iCCP", "sPLT"].map { Array($0.utf8) }

    private var part = Part.signature
    private var field: [UInt8] = []

    /// Whether the last chunk has arrived.
    var isComplete: Bool { if case .ended = part { true } else { false } }

    /// Reads the next bytes.
    ///
    /// - Returns: The bytes for the decoder.
    mutating func filtered(_ bytes: Span<UInt8>) -> [UInt8] {
        var output: [UInt8] = []
        output.reserveCapacity(bytes.count)
        var position = 0
        while position < bytes.count {
            switch part {
            case .ended: return output
            case .signature:
                guard field.complete(to: 8, from: bytes, &position) else { return output }
                output += field
                (part, field) = (.head, [])
            case .head:
                guard field.complete(to: 8, from: bytes, &position) else { return output }
                let type = Array(field[4...])
                let passes = !Self.removed.contains(type)
                if passes { output += field }
                part = .data(field.number(at: 0, bytes: 4) + 4, passes: passes, isLast: type.elementsEqual("IEND".utf8))
                field = []
            case .data(let count, let passes, let isLast):
                let taken = min(count, bytes.count - position)
                if passes { bytes.extracting(position..<(position + taken)).append(to: &output) }
                position += taken
                if taken < count {
                    part = .data(count - taken, passes: passes, isLast: isLast)
                } else {
                    part = isLast ? .ended : .head
                }
            }
        }
        return output
    }
}
