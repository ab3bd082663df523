// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Reads a multipart body (RFC 2046 §5.1) in chunks, however they are cut, in time that grows with the bytes alone.
///
/// Lines of delimiters and fields may end with LF alone, as some cameras and gateways send them. What precedes the first
/// delimiter and follows the last is dropped.
struct MultipartParser: Sendable {
    private enum Place { case preamble, fields, content, epilogue }

    /// What stands at a place where a delimiter may begin.
    private enum Line {
        case other
        /// It may be a delimiter; the bytes to come will tell.
        case unknown
        /// A delimiter, where what follows it begins, and whether it is the last one.
        case delimiter(end: Int, isLast: Bool)
    }

    /// Blanks behind a delimiter; with more it is no delimiter.
    private static let mostPadding = 256

    /// Bytes before the first delimiter; where there are more, it is another one that parts the body.
    private static let longestPreamble = 64 << 10

    private let limits: MultipartLimits
    private var preamble = 0
    /// "--" and the boundary.
    private let delimiter: [UInt8]
    /// The same at the start of a line.
    private let wanted: [UInt8]
    private var place = Place.preamble
    /// Whether the next byte begins a line.
    private var isAtLineStart = true
    /// What may be the start of a delimiter, or of the line break before it; a few hundred bytes at most.
    private var pending: [UInt8] = []
    /// The fields of the part so far, and where the line begins that is not whole.
    private var block: [UInt8] = []
    private var lineStart = 0
    /// How many parts have begun.
    private var count = 0

    init(boundary: String, limits: MultipartLimits) {
        self.limits = limits
        delimiter = Array("--\(boundary)".utf8)
        wanted = [0x0A] + delimiter
    }

    /// Gives what a chunk completes.
    /// - Throws: `NetworkError` of kind `decodingFailed`.
    mutating func read(_ chunk: ByteChunk, _ take: (MultipartElement) throws(NetworkError) -> Void) throws(NetworkError)
    {
        if place == .epilogue { return }
        let bytes = pending.isEmpty ? chunk : ByteChunk(pending + chunk)
        pending = []
        var position = 0
        while position < bytes.count {
            switch place {
            case .preamble, .content:
                guard let next = try readContent(bytes, position, take) else { return }
                position = next
            case .fields: position = try readFields(bytes, position, take)
            case .epilogue: return
            }
        }
    }

    /// Ends the body.
    /// - Throws: `NetworkError` of kind `decodingFailed` when the last delimiter has not come.
    mutating func finish(_ take: (MultipartElement) throws(NetworkError) -> Void) throws(NetworkError) {
        // Without a line break behind it, the last delimiter is still undecided.
        if place == .content || place == .preamble, let dash = pending.firstIndex(of: 0x2D),
            case .delimiter(_, true) = line(at: dash, of: ByteChunk(pending), isWhole: true)
        {
            if place == .content { try take(.end) }
            place = .epilogue
        }
        switch place {
        case .epilogue: return
        case .preamble:
            throw .malformedParts(
                "the body has no part", hint: "The boundary of its Content-Type does not stand in it.")
        case .fields, .content:
            throw .malformedParts(
                "the body ends inside part \(count)",
                hint: "The last boundary is missing (RFC 2046 §5.1.1); the body may have been cut.")
        }
    }

    // MARK: Content

    /// Reads to the next delimiter; nil when the bytes are used up.
    private mutating func readContent(
        _ bytes: ByteChunk, _ start: Int, _ take: (MultipartElement) throws(NetworkError) -> Void
    ) throws(NetworkError) -> Int? {
        if isAtLineStart {
            switch line(at: start, of: bytes, isWhole: false) {
            case .unknown:
                pending = Array(bytes.slice(start..<bytes.count))
                return nil
            case .delimiter(let end, let isLast): return try begin(at: end, isLast, take)
            case .other: isAtLineStart = false
            }
        }
        var search = start
        while let feed = bytes.position(of: wanted, from: search) {
            search = feed + 1
            switch line(at: search, of: bytes, isWhole: false) {
            case .other: continue
            case .unknown: return try keep(bytes, start, from: feed, take)
            case .delimiter(let end, let isLast):
                try give(bytes, start..<breakStart(bytes, feed, after: start), take)
                return try begin(at: end, isLast, take)
            }
        }
        // The rest is content but for what may be the start of a delimiter, which no line feed but the last can be.
        let tail = max(search, bytes.count - wanted.count + 1)
        if let feed = bytes.lastPosition(of: 0x0A, from: tail),
            wanted.starts(with: bytes.slice(feed..<bytes.count))
        {
            return try keep(bytes, start, from: feed, take)
        }
        let endsWithReturn = bytes[bytes.count - 1] == 0x0D
        return try keep(bytes, start, from: endsWithReturn ? bytes.count - 1 : bytes.count, take)
    }

    /// Where the line break of which `feed` is the end begins.
    private func breakStart(_ bytes: ByteChunk, _ feed: Int, after start: Int) -> Int {
        feed > start && bytes[feed - 1] == 0x0D ? feed - 1 : feed
    }

    /// Gives the content before a place and keeps what comes from there on.
    private mutating func keep(
        _ bytes: ByteChunk, _ start: Int, from place: Int, _ take: (MultipartElement) throws(NetworkError) -> Void
    ) throws(NetworkError) -> Int? {
        let end = place < bytes.count && bytes[place] == 0x0A ? breakStart(bytes, place, after: start) : place
        try give(bytes, start..<end, take)
        pending = Array(bytes.slice(end..<bytes.count))
        return nil
    }

    private mutating func give(
        _ bytes: ByteChunk, _ range: Range<Int>, _ take: (MultipartElement) throws(NetworkError) -> Void
    ) throws(NetworkError) {
        if place == .content, !range.isEmpty { try take(.bytes(bytes.slice(range))) }
        guard place == .preamble else { return }
        preamble += range.count
        if preamble > Self.longestPreamble {
            throw .malformedParts(
                "no part begins in its first 64 KiB",
                hint: "The boundary of its Content-Type does not stand in it; look at its first bytes.")
        }
    }

    private mutating func begin(
        at end: Int, _ isLast: Bool, _ take: (MultipartElement) throws(NetworkError) -> Void
    ) throws(NetworkError) -> Int {
        if place == .content { try take(.end) }
        place = isLast ? .epilogue : .fields
        if isLast { return end }
        if let most = limits.parts, count >= most {
            throw .malformedParts("the body has more than \(most) parts", hint: "Raise the limit of parts.")
        }
        count += 1
        block = []
        lineStart = 0
        return end
    }

    /// What stands at a position where a line begins.
    ///
    /// - Parameter isWhole: Whether no more bytes will come.
    private func line(at start: Int, of bytes: ByteChunk, isWhole: Bool) -> Line {
        let available = bytes.count - start
        guard bytes.slice(start..<start + min(available, delimiter.count)).elementsEqual(delimiter.prefix(available))
        else { return .other }
        guard available >= delimiter.count else { return isWhole ? .other : .unknown }
        var index = start + delimiter.count
        var isLast = false
        if index < bytes.count, bytes[index] == 0x2D {
            guard index + 1 < bytes.count else { return isWhole ? .other : .unknown }
            guard bytes[index + 1] == 0x2D else { return .other }
            isLast = true
            index += 2
        }
        let padding = index
        while index < bytes.count, bytes[index].isLinearSpace { index += 1 }
        guard index - padding <= Self.mostPadding else { return .other }
        if index < bytes.count, bytes[index] == 0x0D { index += 1 }
        guard index < bytes.count else { return isWhole ? .delimiter(end: index, isLast: isLast) : .unknown }
        return bytes[index] == 0x0A ? .delimiter(end: index + 1, isLast: isLast) : .other
    }

    // MARK: Fields

    private mutating func readFields(
        _ bytes: ByteChunk, _ start: Int, _ take: (MultipartElement) throws(NetworkError) -> Void
    ) throws(NetworkError) -> Int {
        let feed = bytes.position(of: [0x0A], from: start)
        let end = feed.map { $0 + 1 } ?? bytes.count
        guard Int64(block.count + end - start) <= limits.fields.bytes else {
            throw .malformedParts(
                "the fields of part \(count) have more than \(limits.fields)", hint: "Raise the limit of fields.")
        }
        block += bytes.slice(start..<end)
        guard feed != nil else { return end }
        let line = block[lineStart...]
        if case .delimiter = self.line(at: 0, of: ByteChunk(line), isWhole: true) {
            throw .malformedParts(
                "part \(count) ends inside its fields", hint: "An empty line must end them (RFC 2046 §5.1).")
        }
        lineStart = block.count
        if line.elementsEqual([0x0A]) || line.elementsEqual([0x0D, 0x0A]) {
            try take(.part(HeaderFields(parsing: block)))
            place = .content
            // A part without content may end with the line break that ended its fields.
            isAtLineStart = true
        }
        return end
    }
}

extension NetworkError {
    /// A multipart body that cannot be read.
    static func malformedParts(_ why: String, hint: String) -> NetworkError {
        NetworkError(
            .decodingFailed, phase: .decoding, "The multipart response is malformed: \(why).", hint: hint)
    }
}
