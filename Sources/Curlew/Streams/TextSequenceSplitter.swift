// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A splitter of bytes into the texts of a JSON text sequence (RFC 7464 §2), each after an RS.
///
/// A text ends with the first LF outside of its brackets and strings, or else with the next RS or the end of the
/// stream. The splitter does not validate brackets and strings beyond that.
struct TextSequenceSplitter: Sendable {
    /// The reason why a text is not a valid element of the sequence.
    enum Fault: Error, Equatable {
        /// The text has no RS before it.
        case unmarked
        /// The text continues after the LF that ends it.
        case continued
        /// The text may have been cut (§2.4).
        case cut

        /// The end of a sentence that begins with "Element 3".
        var reason: String {
            switch self {
            case .unmarked: "does not begin with RS, as each element of a JSON text sequence must (RFC 7464 §2.2)"
            case .continued: "continues after the LF that ends it"
            case .cut: "may have been cut: a number or a name must be followed by white space (RFC 7464 §2.4)"
            }
        }
    }

    typealias Handler = (_ text: Span<UInt8>, _ number: Int, _ fault: Fault?) throws -> Void

    private enum Phase {
        /// Before the first RS.
        case start
        /// Between an RS and the first byte of the text.
        case marked
        /// In the text, or in bytes that are a fault.
        case inside
        /// After the text.
        case afterText
    }

    private let limit: ByteCount
    private var phase = Phase.start
    private var fault: Fault?
    /// The part of the text from earlier chunks.
    private var rest: [UInt8] = []
    private var depth = 0
    private var isInString = false
    private var isEscaped = false
    private var count = 0

    /// - Parameter limit: The maximum size of a text in bytes.
    init(limit: ByteCount) { self.limit = limit }

    /// Passes the texts that the bytes complete to the closure.
    /// - Throws: `NetworkError` of kind `bodyTooLarge` for a text beyond the limit, or the error of the closure.
    mutating func split(_ bytes: Span<UInt8>, _ handler: Handler) throws {
        var (position, start) = (0, 0)
        while position < bytes.count {
            let byte = bytes[position]
            if byte == Self.separator {
                if phase == .inside { try emit(bytes.extracting(start..<position), isEnded: false, handler) }
                phase = .marked
            } else if phase == .inside {
                if scan(byte) {
                    try emit(bytes.extracting(start..<position), isEnded: true, handler)
                    phase = .afterText
                }
            } else if !byte.isBlank {
                start = position
                begin(byte)
            }
            position += 1
        }
        guard phase == .inside else { return }
        bytes.extracting(start..<bytes.count).append(to: &rest)
        if rest.count > limit.bytes { throw NetworkError.elementTooLarge("Element \(count + 1)", limit) }
    }

    /// Passes the unfinished text at the end of the stream to the closure.
    /// - Throws: The error of the closure.
    mutating func end(_ handler: Handler) throws {
        guard phase == .inside else { return }
        try emit([UInt8]().span, isEnded: false, handler)
        phase = .afterText
    }

    private mutating func begin(_ byte: UInt8) {
        fault = phase == .start ? .unmarked : phase == .afterText ? .continued : nil
        phase = .inside
        (depth, isInString, isEscaped) = (0, false, false)
        _ = scan(byte)
    }

    /// Scans a byte of the text, and returns whether it is the LF that ends the text.
    private mutating func scan(_ byte: UInt8) -> Bool {
        if isInString {
            if isEscaped {
                isEscaped = false
            } else if byte == Self.quote {
                isInString = false
            } else {
                isEscaped = byte == Self.backslash
            }
            return false
        }
        switch byte {
        case Self.quote: isInString = true
        case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
        case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
        case Self.lineFeed: return depth <= 0
        default: break
        }
        return false
    }

    private mutating func emit(_ piece: Span<UInt8>, isEnded: Bool, _ handler: Handler) throws {
        count += 1
        if rest.isEmpty { return try check(piece, isEnded, handler) }
        var text: [UInt8] = []
        swap(&text, &rest)
        piece.append(to: &text)
        try check(text.span, isEnded, handler)
        text.removeAll(keepingCapacity: true)
        swap(&text, &rest)
    }

    private func check(_ text: Span<UInt8>, _ isEnded: Bool, _ handler: Handler) throws {
        guard text.count <= limit.bytes else { throw NetworkError.elementTooLarge("Element \(count)", limit) }
        let isDelimited = isEnded || text[text.count - 1].isBlank || Self.opening.contains(text[0])
        try handler(text, count, fault ?? (isDelimited ? nil : .cut))
    }

    private static let separator: UInt8 = 0x1E
    private static let lineFeed = UInt8(ascii: "\n")
    private static let quote = UInt8(ascii: "\"")
    private static let backslash = UInt8(ascii: "\\")
    /// The first bytes of objects, arrays and strings, which mark their own end.
    private static let opening: [UInt8] = [UInt8(ascii: "{"), UInt8(ascii: "["), UInt8(ascii: "\"")]
}
