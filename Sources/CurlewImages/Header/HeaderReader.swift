// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The bytes of a file that a reader needs next.
struct HeaderNeed: Sendable, Hashable {
    /// No reader needs more bytes at once.
    static let maximumCount = 65_536

    var offset: Int
    var count: Int

    init(_ offset: Int, _ count: Int) { (self.offset, self.count) = (offset, count) }
}

/// A state machine that reads the header of one format.
///
/// It names the bytes that it needs and gets exactly those, so its result cannot depend on the pieces of a file.
protocol HeaderReader: Sendable {
    /// The number of first bytes of the file to which the reader may go back.
    var keptBytes: Int { get }

    var format: ImageFormat { get }
    /// The header, as soon as the size is known.
    var header: ImageHeader? { get set }
    /// The next bytes; nil after the last. The offset grows, except within the kept bytes.
    var need: HeaderNeed? { get }

    /// Reads the needed bytes.
    mutating func read(_ bytes: [UInt8]) throws(ImageError)
}

extension HeaderReader {
    var keptBytes: Int { 0 }

    /// Turns the frames counted so far into all frames.
    mutating func endCount() {
        guard case .atLeast(let count) = header?.frames else { return }
        header?.frames = .count(count)
        if count == 1 { header?.isAnimated = false }
    }

    func malformed(_ message: String) -> ImageError {
        ImageError(.malformed, format: format, "The \(format) file is damaged: \(message)")
    }
}

/// The order of the bytes of a number.
enum ByteOrder: Sendable, Hashable {
    case little, big
}

extension Array<UInt8> {
    /// The unsigned number in some bytes; at most 7 of them, and all of them exist.
    func number(at offset: Int, bytes count: Int, _ order: ByteOrder = .big) -> Int {
        let range = self[offset..<offset + count]
        return order == .big
            ? range.reduce(0) { $0 << 8 | Int($1) } : range.reversed().reduce(0) { $0 << 8 | Int($1) }
    }

    /// Whether the bytes at an offset are those of an ASCII text.
    func has(_ text: StaticString, at offset: Int = 0) -> Bool {
        self[Swift.min(offset, count)...].starts(with: "\(text)".utf8)
    }
}
