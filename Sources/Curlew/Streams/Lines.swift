// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
// Streams read or write a body element by element: lines, JSON, frames, events. A decoder keeps at most the start of
// one element, and the boundaries of the chunks do not affect its elements. Decoders do no I/O; their callers supply
// the bytes.

internal import FoundationEssentials

extension Streams {
    /// A serializer that reads the lines of a text as they arrive.
    ///
    /// A line ends with LF or CRLF, which is not part of the line; a CR alone does not end a line. The last line needs
    /// no line end. A byte order mark selects the encoding, else the charset of `Content-Type`, else `assuming`.
    /// Invalid bytes become U+FFFD. An encoding without a table on this machine is `.unsupported`.
    ///
    /// ```swift
    /// for try await line in api.stream("log.txt", using: .lines) { print(line) }
    /// ```
    public struct Lines: StreamSerializer {
        private let omitsEmpty: Bool
        private let limit: ByteCount
        private let assumed: TextEncoding

        /// Creates a serializer of lines.
        ///
        /// - Parameters:
        ///   - omittingEmpty: Whether to omit empty lines; false by default.
        ///   - limit: The maximum size of a line, 1 MiB by default; a longer line is `.bodyTooLarge`.
        ///   - assuming: The encoding for a body without a byte order mark and without a charset; UTF-8 by default.
        public init(
            omittingEmpty: Bool = false, limit: ByteCount = .mebibytes(1), assuming: TextEncoding = .utf8
        ) {
            omitsEmpty = omittingEmpty
            self.limit = limit
            assumed = assuming
        }

        /// `text/*`, and with a lower preference every other type, because any body can be read as text.
        public var accepts: [MediaType] { ["text/*", "*/*;q=0.1"] }

        /// The state between chunks: the start of a line.
        public struct State: Sendable {
            fileprivate var mark = ByteOrderMarkDetector([.utf8, .utf16BigEndian, .utf16LittleEndian])
            fileprivate var splitter: LineSplitter
            fileprivate var encoding: TextEncoding
            /// The converter of UTF-16 text, whose lines are split after conversion to UTF-8; nil for other encodings.
            fileprivate var units: UTF16Reader?
            fileprivate var hasBegun = false
        }

        /// Creates the state, with the encoding that the head names.
        public func begin(_ head: ResponseHead) -> State {
            State(splitter: LineSplitter(limit: limit), encoding: head.charset.flatMap(TextEncoding.init) ?? assumed)
        }

        /// Returns the lines that a chunk completes.
        ///
        /// - Throws: `NetworkError`: `.bodyTooLarge` or `.unsupported`.
        public func decode(_ chunk: ByteChunk?, _ state: inout State) throws -> [String] {
            try elements(of: chunk, &state)
        }

        /// Appends the lines that a chunk completes.
        ///
        /// - Throws: `NetworkError`: `.bodyTooLarge` or `.unsupported`.
        public func decode(_ chunk: ByteChunk?, _ state: inout State, into lines: inout [String]) throws {
            func take(_ line: String) { if !omitsEmpty || !line.isEmpty { lines.append(line) } }
            guard let chunk else { return try state.end(take) }
            try chunk.withSpan { bytes in
                guard let (held, start) = state.mark.skip(in: bytes) else { return }
                if !held.isEmpty { try state.read(held.span, take) }
                try state.read(bytes.extracting(start..<bytes.count), take)
            }
        }
    }
}

extension StreamSerializer {
    /// Returns the elements that a chunk completes, for serializers that implement `decode(_:_:into:)`.
    func elements(of chunk: ByteChunk?, _ state: inout State) throws -> [Element] {
        var elements: [Element] = []
        try decode(chunk, &state, into: &elements)
        return elements
    }
}

extension Streams.Lines.State {
    fileprivate mutating func read(_ bytes: Span<UInt8>, _ take: (String) -> Void) throws {
        begin()
        guard let text = units?.text(of: bytes) else { return try split(bytes, take) }
        try split(text.span, take)
    }

    fileprivate mutating func end(_ take: (String) -> Void) throws {
        let held = mark.end()
        if !held.isEmpty { try read(held.span, take) }
        if let text = units?.end() { try split(text.span, take) }
        let encoding = encoding
        try splitter.end { line, _ in take(try encoding.text(ofLine: line)) }
    }

    /// Chooses the encoding at the first bytes after a possible byte order mark.
    private mutating func begin() {
        if hasBegun { return }
        hasBegun = true
        encoding = mark.encoding ?? encoding
        guard case .utf16(let isBigEndian) = encoding.scheme else { return }
        units = UTF16Reader(isBigEndian: isBigEndian)
        encoding = .utf8
    }

    private mutating func split(_ bytes: Span<UInt8>, _ take: (String) -> Void) throws {
        let encoding = encoding
        try splitter.split(bytes) { line, _ in take(try encoding.text(ofLine: line)) }
    }
}

extension TextEncoding {
    /// Returns the text of a line; invalid bytes become U+FFFD.
    fileprivate func text(ofLine line: Span<UInt8>) throws(NetworkError) -> String {
        if self == .utf8 { return line.text }
        return try text(of: line.data, lossy: true)
    }
}

/// A converter from UTF-16 to UTF-8 that reads chunks; invalid code units become U+FFFD.
struct UTF16Reader: Sendable {
    private let isBigEndian: Bool
    /// The bytes of an incomplete character: half a code unit, or half a surrogate pair, or both.
    private var held: [UInt8] = []

    init(isBigEndian: Bool) { self.isBigEndian = isBigEndian }

    /// Returns the characters that the bytes complete, in UTF-8.
    mutating func text(of bytes: Span<UInt8>) -> [UInt8] {
        bytes.append(to: &held)
        var units = stride(from: 0, to: held.count - 1, by: 2).map { index in
            let (first, second) = (UInt16(held[index]), UInt16(held[index + 1]))
            return isBigEndian ? first << 8 | second : second << 8 | first
        }
        if let last = units.last, UTF16.isLeadSurrogate(last) { units.removeLast() }
        held.removeFirst(2 * units.count)
        return Array(String(decoding: units, as: UTF16.self).utf8)
    }

    /// Returns U+FFFD if the text ends in an incomplete character, else nil.
    mutating func end() -> [UInt8]? {
        defer { held = [] }
        return held.isEmpty ? nil : Array("\u{FFFD}".utf8)
    }
}

extension StreamSerializer where Self == Streams.Lines {
    /// The lines of a text: at most 1 MiB each, and UTF-8 without another declared encoding.
    public static var lines: Streams.Lines { Streams.Lines() }

    /// The lines of a text, with options.
    ///
    /// - Parameters:
    ///   - omittingEmpty: Whether to omit empty lines; false by default.
    ///   - limit: The maximum size of a line; a longer line is `.bodyTooLarge`.
    ///   - assuming: The encoding for a body without a byte order mark and without a charset; UTF-8 by default.
    public static func lines(
        omittingEmpty: Bool = false, limit: ByteCount = .mebibytes(1), assuming: TextEncoding = .utf8
    ) -> Streams.Lines {
        Streams.Lines(omittingEmpty: omittingEmpty, limit: limit, assuming: assuming)
    }
}
