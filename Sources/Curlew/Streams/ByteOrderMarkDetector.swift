// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A detector of the byte order mark at the start of a stream; the boundaries of the chunks do not affect it.
///
/// The detector delays a byte only while that byte may be part of a mark.
struct ByteOrderMarkDetector: Sendable {
    private let known: [TextEncoding]
    /// The first bytes, while they may begin a mark.
    private var held: [UInt8] = []
    private var isDecided = false
    /// The encoding whose mark was found.
    private(set) var encoding: TextEncoding?

    /// - Parameter known: The encodings whose marks the detector recognizes.
    init(_ known: [TextEncoding] = [.utf8]) { self.known = known }

    /// Returns the earlier bytes to process first, and the index where the given bytes continue after a mark; nil while
    /// the mark is undecided.
    mutating func skip(in bytes: Span<UInt8>) -> (held: [UInt8], start: Int)? {
        if isDecided { return ([], 0) }
        let taken = min(bytes.count, 3 - held.count)
        bytes.extracting(0..<taken).append(to: &held)
        let mark = known.first { held.starts(with: $0.byteOrderMark) }
        if mark == nil, known.contains(where: { $0.byteOrderMark.starts(with: held) }) { return nil }
        isDecided = true
        encoding = mark
        return (Array(held.dropFirst(mark?.byteOrderMark.count ?? 0)), taken)
    }

    /// Returns the bytes that are still held back at the end of the stream.
    mutating func end() -> [UInt8] {
        defer { isDecided = true }
        return isDecided ? [] : held
    }
}
