// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A parser of multipart bodies (RFC 2046 §5.1) that reads chunks in time linear in the number of bytes; the boundaries
/// of the chunks do not affect the result.
///
/// The lines of delimiters and fields may end with LF alone, as some cameras and gateways send them. Bytes before the
/// first delimiter and after the last delimiter are discarded.
struct MultipartParser: Sendable {
    private enum Phase { case preamble, fields, content, epilogue }

    /// The result of looking for a delimiter at the start of a line.
    private enum Line {
        case other
        /// The line may be a delimiter; later bytes decide.
        case unknown
        /// A delimiter; `end` is the index after it, and `isLast` is true for the last delimiter.
        case delimiter(end: Int, isLast: Bool)
    }

    /// The maximum number of blanks after a delimiter; a line with more blanks is not a delimiter.
    private static let maxPadding = 256

    /// The maximum number of bytes before the first delimiter; a longer preamble means that the body uses another
    /// boundary.
    private static let maxPreambleLength = 64 << 10

    private let limits: MultipartElements.Limits
    private var preamble = 0
    /// "--" and the boundary.
    private let delimiter: [UInt8]
    /// The delimiter after a LF, as it appears at the start of a line.
    private let lineDelimiter: [UInt8]
    private var phase = Phase.preamble
    /// Whether the next byte begins a line.
    private var isAtLineStart = true
    /// Bytes that may be the start of a delimiter, or of the line break before it; a few hundred bytes at most.
    private var pending: [UInt8] = []
    /// The received fields of the part, and the index where the incomplete line begins.
    private var fieldBytes: [UInt8] = []
    private var lineStart = 0
    /// The number of parts that have begun.
    private var count = 0

    init(boundary: String, limits: MultipartElements.Limits) {
        self.limits = limits
        delimiter = Array("--\(boundary)".utf8)
        lineDelimiter = [0x0A] + delimiter
    }

    /// Passes the elements that a chunk completes to the closure.
    /// - Throws: `NetworkError` of kind `decodingFailed`, or the error of the closure.
    mutating func read(_ chunk: ByteChunk, _ handler: (MultipartElements.Element) throws(NetworkError) -> Void)
        throws(NetworkError)
    {
        if phase == .epilogue { return }
        let bytes = pending.isEmpty ? chunk : ByteChunk(pending + chunk)
        pending = []
        var position = 0
        while position < bytes.count {
            switch phase {
            case .preamble, .content:
                guard let next = try readContent(bytes, position, handler) else { return }
                position = next
            case .fields: position = try readFields(bytes, position, handler)
            case .epilogue: return
            }
        }
    }

    /// Ends the body and passes the last elements to the closure.
    /// - Throws: `NetworkError` of kind `decodingFailed` if the last delimiter is missing, or the error of the closure.
    mutating func finish(_ handler: (MultipartElements.Element) throws(NetworkError) -> Void) throws(NetworkError) {
        // A last delimiter without a line break after it is still pending.
        if phase == .content || phase == .preamble, let dash = pending.firstIndex(of: 0x2D),
            case .delimiter(_, true) = line(at: dash, of: ByteChunk(pending), isWhole: true)
        {
            if phase == .content { try handler(.end) }
            phase = .epilogue
        }
        switch phase {
        case .epilogue: return
        case .preamble:
            throw .malformedMultipart(
                "the body has no part", hint: "The body does not contain the boundary of its Content-Type.")
        case .fields, .content:
            throw .malformedMultipart(
                "the body ends inside part \(count)",
                hint: "The last boundary is missing (RFC 2046 §5.1.1); the body may have been cut.")
        }
    }

    // MARK: Content

    /// Reads up to the next delimiter and returns the index after it; nil if all bytes are consumed.
    private mutating func readContent(
        _ bytes: ByteChunk, _ start: Int, _ handler: (MultipartElements.Element) throws(NetworkError) -> Void
    ) throws(NetworkError) -> Int? {
        if isAtLineStart {
            switch line(at: start, of: bytes, isWhole: false) {
            case .unknown:
                pending = Array(bytes.slice(start..<bytes.count))
                return nil
            case .delimiter(let end, let isLast): return try begin(at: end, isLast, handler)
            case .other: isAtLineStart = false
            }
        }
        var search = start
        while let feed = bytes.position(of: lineDelimiter, from: search) {
            search = feed + 1
            switch line(at: search, of: bytes, isWhole: false) {
            case .other: continue
            case .unknown: return try keep(bytes, start, from: feed, handler)
            case .delimiter(let end, let isLast):
                try emit(bytes, start..<breakStart(bytes, feed, after: start), handler)
                return try begin(at: end, isLast, handler)
            }
        }
        // The rest is content, except for a possible start of a delimiter; only the last LF can begin it.
        let tail = max(search, bytes.count - lineDelimiter.count + 1)
        if let feed = bytes.lastPosition(of: 0x0A, from: tail),
            lineDelimiter.starts(with: bytes.slice(feed..<bytes.count))
        {
            return try keep(bytes, start, from: feed, handler)
        }
        let endsWithReturn = bytes[bytes.count - 1] == 0x0D
        return try keep(bytes, start, from: endsWithReturn ? bytes.count - 1 : bytes.count, handler)
    }

    /// Returns the start of the line break that ends at `feed`.
    private func breakStart(_ bytes: ByteChunk, _ feed: Int, after start: Int) -> Int {
        feed > start && bytes[feed - 1] == 0x0D ? feed - 1 : feed
    }

    /// Passes the content before an index to the closure and keeps the bytes from there as pending.
    private mutating func keep(
        _ bytes: ByteChunk, _ start: Int, from index: Int,
        _ handler: (MultipartElements.Element) throws(NetworkError) -> Void
    ) throws(NetworkError) -> Int? {
        let end = index < bytes.count && bytes[index] == 0x0A ? breakStart(bytes, index, after: start) : index
        try emit(bytes, start..<end, handler)
        pending = Array(bytes.slice(end..<bytes.count))
        return nil
    }

    private mutating func emit(
        _ bytes: ByteChunk, _ range: Range<Int>, _ handler: (MultipartElements.Element) throws(NetworkError) -> Void
    ) throws(NetworkError) {
        if phase == .content, !range.isEmpty { try handler(.bytes(bytes.slice(range))) }
        guard phase == .preamble else { return }
        preamble += range.count
        if preamble > Self.maxPreambleLength {
            throw .malformedMultipart(
                "no part begins in its first 64 KiB",
                hint: "The body may use another boundary than its Content-Type; check its first bytes.")
        }
    }

    private mutating func begin(
        at end: Int, _ isLast: Bool, _ handler: (MultipartElements.Element) throws(NetworkError) -> Void
    ) throws(NetworkError) -> Int {
        if phase == .content { try handler(.end) }
        phase = isLast ? .epilogue : .fields
        if isLast { return end }
        if let maximum = limits.parts, count >= maximum {
            throw .malformedMultipart("the body has more than \(maximum) parts", hint: "Raise the limit of parts.")
        }
        count += 1
        fieldBytes = []
        lineStart = 0
        return end
    }

    /// Classifies the bytes at the start of a line.
    ///
    /// - Parameter isWhole: Whether the body has no more bytes.
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
        guard index - padding <= Self.maxPadding else { return .other }
        if index < bytes.count, bytes[index] == 0x0D { index += 1 }
        guard index < bytes.count else { return isWhole ? .delimiter(end: index, isLast: isLast) : .unknown }
        return bytes[index] == 0x0A ? .delimiter(end: index + 1, isLast: isLast) : .other
    }

    // MARK: Fields

    private mutating func readFields(
        _ bytes: ByteChunk, _ start: Int, _ handler: (MultipartElements.Element) throws(NetworkError) -> Void
    ) throws(NetworkError) -> Int {
        let feed = bytes.position(of: [0x0A], from: start)
        let end = feed.map { $0 + 1 } ?? bytes.count
        guard Int64(fieldBytes.count + end - start) <= limits.fields.bytes else {
            throw .malformedMultipart(
                "the fields of part \(count) have more than \(limits.fields)", hint: "Raise the limit of fields.")
        }
        fieldBytes += bytes.slice(start..<end)
        guard feed != nil else { return end }
        let line = fieldBytes[lineStart...]
        if case .delimiter = self.line(at: 0, of: ByteChunk(line), isWhole: true) {
            throw .malformedMultipart(
                "part \(count) ends inside its fields", hint: "An empty line must end them (RFC 2046 §5.1).")
        }
        lineStart = fieldBytes.count
        if line.elementsEqual([0x0A]) || line.elementsEqual([0x0D, 0x0A]) {
            try handler(.part(HeaderFields(parsing: fieldBytes)))
            phase = .content
            // The line break that ended the fields of an empty part may also precede its delimiter.
            isAtLineStart = true
        }
        return end
    }
}

extension NetworkError {
    /// Creates an error for a malformed multipart body.
    static func malformedMultipart(_ why: String, hint: String) -> NetworkError {
        NetworkError(
            .decodingFailed, phase: .decoding, "The multipart response is malformed: \(why).", hint: hint)
    }
}
