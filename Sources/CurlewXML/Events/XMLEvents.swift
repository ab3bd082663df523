// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import Curlew
internal import FoundationEssentials

/// A serializer that turns an XML document into events in document order while it arrives.
///
/// Memory use is bounded for every document, because bytes are parsed only as events are requested. Of the declarations
/// in a document, only default attributes have an effect: nothing else is loaded or expanded. If a document is
/// malformed, the consumer first gets the events before the mistake and then the error.
///
/// ```swift
/// for try await event in api.stream("feed.xml", using: .xmlEvents) {
///     if case .startElement(let tag) = event, tag.name.local == "entry" { entries += 1 }
/// }
/// ```
public struct XMLEvents: StreamSerializer {
    private let limits: XMLLimits
    private let charset: String?

    /// Creates a serializer.
    ///
    /// - Parameters:
    ///   - charset: The encoding, which overrides the server's charset; only a byte order mark overrides it.
    ///   - limits: The limits for a document.
    public init(charset: String? = nil, limits: XMLLimits = XMLLimits()) {
        self.charset = charset
        self.limits = limits
    }

    /// `application/xml`, `text/xml` and all types with the suffix `+xml` (RFC 7303 §4.2).
    public var accepts: [MediaType] { .xml }

    /// Returns a parser for a response; only a byte order mark overrides the response's charset (RFC 7303 §3).
    /// - Throws: `XMLError` of kind `.outOfMemory`.
    public func begin(_ head: ResponseHead) throws -> XMLEventParser {
        try XMLEventParser(charset: charset ?? head.charset, limits: limits)
    }

    /// Returns the events that a chunk completes.
    ///
    /// - Parameters:
    ///   - chunk: The next bytes; nil at the end.
    ///   - state: The parser.
    /// - Throws: `NetworkError` of kind `.decodingFailed` whose cause is an ``XMLError``.
    public func decode(_ chunk: ByteChunk?, _ state: inout XMLEventParser) throws -> [XMLEvent] {
        var events: [XMLEvent] = []
        try decode(chunk, &state, into: &events)
        return events
    }

    /// Appends the events that a chunk completes, including the events before a mistake.
    ///
    /// - Parameters:
    ///   - chunk: The next bytes; nil at the end.
    ///   - state: The parser.
    ///   - events: The array to append to.
    /// - Throws: `NetworkError` of kind `.decodingFailed` whose cause is an ``XMLError``.
    public func decode(_ chunk: ByteChunk?, _ state: inout XMLEventParser, into events: inout [XMLEvent]) throws {
        let (more, failure) = state.parse(chunk)
        events += more
        if let failure { throw NetworkError(failure) }
    }

    /// Returns the events of a complete document.
    ///
    /// - Parameter bytes: The whole document.
    /// - Returns: All events; for long documents ``events(in:)`` needs less memory.
    /// - Throws: `XMLError` of any kind except `.invalidPath`.
    public func events(of bytes: some Sequence<UInt8>) throws(XMLError) -> [XMLEvent] {
        let parser = try XMLEventParser(charset: charset, limits: limits)
        let (events, failure) = parser.parse(bytes)
        if let failure { throw failure }
        let end = parser.parse([UInt8]?.none)
        if let failure = end.failure { throw failure }
        return events + end.events
    }

    /// Returns the events of a document that arrives in chunks from any sequence.
    ///
    /// ```swift
    /// for try await event in XMLEvents().events(in: response.bytes) { print(event) }
    /// ```
    ///
    /// - Parameter chunks: The bytes, in chunks of any size; the sequence reads them as events are requested.
    /// - Returns: The events, followed by an `XMLError` if the document is invalid, or by the error that `chunks`
    ///   throws.
    public func events<Chunks: AsyncSequence>(in chunks: Chunks) -> XMLEventSequence<Chunks>
    where Chunks.Element: Sequence<UInt8> {
        XMLEventSequence(chunks, charset, limits)
    }
}

extension StreamSerializer where Self == XMLEvents {
    /// A serializer that returns the events of an XML document while it arrives.
    public static var xmlEvents: XMLEvents { XMLEvents() }

    /// Returns a serializer for the events of an XML document while it arrives.
    ///
    /// - Parameters:
    ///   - charset: The encoding, which overrides the server's charset; only a byte order mark overrides it.
    ///   - limits: The limits for a document.
    public static func xmlEvents(charset: String? = nil, limits: XMLLimits = XMLLimits()) -> XMLEvents {
        XMLEvents(charset: charset, limits: limits)
    }
}

extension [MediaType] {
    /// The media types of XML (RFC 7303).
    static var xml: [MediaType] {
        [
            "application/xml", "text/xml", "application/atom+xml", "application/rss+xml", "application/soap+xml",
            "*/*+xml",
        ]
    }
}
