// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
// Streams are what bodies consist of that come, or are sent, element by element: lines, JSON, frames, events. Decoders
// keep the start of one element at most, and give the same elements however the bytes are cut. Pure; who reads, runs them.

internal import FoundationEssentials

/// The lines of a text as they arrive.
///
/// A line ends with LF or CRLF, which is no part of it; a CR alone ends nothing. The last line needs no end. The encoding
/// is the one a byte order mark says, then the charset of `Content-Type`, then `assuming`; what is no character becomes
/// U+FFFD. An encoding whose table this machine lacks is `.unsupported`.
///
/// ```swift
/// for try await line in api.stream("log.txt", using: .lines) { print(line) }
/// ```
public struct Lines: StreamSerializer {
    private let omitsEmpty: Bool
    private let limit: ByteCount
    private let assumed: TextEncoding

    /// Reads lines.
    ///
    /// - Parameters:
    ///   - omittingEmpty: Whether lines without a character are left out; they are not unless asked for.
    ///   - limit: How many bytes a line may have, 1 MiB unless given; a longer one is `.bodyTooLarge`.
    ///   - assuming: The encoding when nobody names one.
    public init(
        omittingEmpty: Bool = false, limit: ByteCount = .mebibytes(1), assuming: TextEncoding = .utf8
    ) {
        omitsEmpty = omittingEmpty
        self.limit = limit
        assumed = assuming
    }

    /// Text, and anything else, since every body can be read as text.
    public var accepts: [MediaType] { ["text/*", "*/*;q=0.1"] }

    /// What is kept between chunks: the start of a line.
    public struct State: Sendable {
        fileprivate var mark = StartMark([.utf8, .utf16BigEndian, .utf16LittleEndian])
        fileprivate var splitter: LineSplitter
        fileprivate var encoding: TextEncoding
        /// For text that has to become UTF-8 before its lines can be told apart.
        fileprivate var units: UTF16Reader?
        fileprivate var hasBegun = false
    }

    /// Begins with the encoding that the head names.
    public func begin(_ head: ResponseHead) -> State {
        State(splitter: LineSplitter(limit: limit), encoding: head.charset.flatMap(TextEncoding.init) ?? assumed)
    }

    /// The lines that a chunk completes.
    ///
    /// - Throws: `NetworkError`: `.bodyTooLarge` or `.unsupported`.
    public func decode(_ chunk: ByteChunk?, _ state: inout State) throws -> [String] {
        try elements(of: chunk, &state)
    }

    /// Adds the lines that a chunk completes.
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

extension StreamSerializer {
    /// The elements of a chunk, for those that add them to others.
    func elements(of chunk: ByteChunk?, _ state: inout State) throws -> [Element] {
        var elements: [Element] = []
        try decode(chunk, &state, into: &elements)
        return elements
    }
}

extension Lines.State {
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

    /// Settles the encoding with the first bytes that are no mark.
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
    /// The text of a line, with U+FFFD for what is no character.
    fileprivate func text(ofLine line: Span<UInt8>) throws(NetworkError) -> String {
        if self == .utf8 { return line.text }
        return try text(of: line.data, lossy: true)
    }
}

/// Reads UTF-16 piece by piece, with U+FFFD for what is no character.
struct UTF16Reader: Sendable {
    private let isBigEndian: Bool
    /// What does not make a character yet: half a unit, or half of a pair, or both.
    private var held: [UInt8] = []

    init(isBigEndian: Bool) { self.isBigEndian = isBigEndian }

    /// The characters that the bytes complete, in UTF-8.
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

    /// What became of the bytes that made no character.
    mutating func end() -> [UInt8]? {
        defer { held = [] }
        return held.isEmpty ? nil : Array("\u{FFFD}".utf8)
    }
}

extension StreamSerializer where Self == Lines {
    /// The lines of a text: at most 1 MiB each, UTF-8 when nobody says otherwise.
    public static var lines: Lines { Lines() }

    /// The lines of a text.
    ///
    /// - Parameters:
    ///   - omittingEmpty: Whether lines without a character are left out; they are not unless asked for.
    ///   - limit: How many bytes a line may have; a longer one is `.bodyTooLarge`.
    ///   - assuming: The encoding when nobody names one.
    public static func lines(
        omittingEmpty: Bool = false, limit: ByteCount = .mebibytes(1), assuming: TextEncoding = .utf8
    ) -> Lines {
        Lines(omittingEmpty: omittingEmpty, limit: limit, assuming: assuming)
    }
}
