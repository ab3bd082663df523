// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Finds the byte order mark at the start of a stream, however its bytes are cut.
///
/// No byte waits longer than it may be part of a mark.
struct StartMark: Sendable {
    private let known: [TextEncoding]
    /// The first bytes, while they may be the start of a mark.
    private var held: [UInt8] = []
    private var isPast = false
    /// The encoding whose mark was found.
    private(set) var encoding: TextEncoding?

    /// - Parameter known: The encodings whose marks are looked for.
    init(_ known: [TextEncoding] = [.utf8]) { self.known = known }

    /// What is left of some bytes: what was held back before them, and where they begin; nil while that is not known.
    mutating func skip(in bytes: Span<UInt8>) -> (held: [UInt8], start: Int)? {
        if isPast { return ([], 0) }
        let taken = min(bytes.count, 3 - held.count)
        bytes.extracting(0..<taken).append(to: &held)
        let mark = known.first { held.starts(with: $0.byteOrderMark) }
        if mark == nil, known.contains(where: { $0.byteOrderMark.starts(with: held) }) { return nil }
        isPast = true
        encoding = mark
        return (Array(held.dropFirst(mark?.byteOrderMark.count ?? 0)), taken)
    }

    /// What was held back when the stream ended.
    mutating func end() -> [UInt8] {
        defer { isPast = true }
        return isPast ? [] : held
    }
}
