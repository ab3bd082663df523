// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import Curlew
internal import FoundationEssentials

/// Gives what stands in an XML document while it arrives, as events in its order.
///
/// Memory is bounded whatever the document: what is not asked for is not parsed. Nothing is loaded or expanded that a
/// document declares, but for attributes by default. A reader gets the events before a mistake first, and then the error.
///
/// ```swift
/// for try await event in api.stream("feed.xml", using: .xmlEvents) {
///     if case .startElement(let tag) = event, tag.name.local == "entry" { entries += 1 }
/// }
/// ```
public struct XMLEvents: StreamSerializer {
    private let limits: XMLLimits
    private let charset: String?

    /// Reads documents.
    ///
    /// - Parameters:
    ///   - charset: The encoding, instead of what the server says; only a byte order mark says more.
    ///   - limits: What a document may ask for.
    public init(charset: String? = nil, limits: XMLLimits = XMLLimits()) {
        self.charset = charset
        self.limits = limits
    }

    /// `application/xml`, `text/xml`, and what is named as XML (`+xml`, RFC 7303 §4.2).
    public var accepts: [MediaType] { .xml }

    /// Begins with a response: its charset is that of the document unless it has a byte order mark (RFC 7303 §3).
    /// - Throws: `XMLError` of kind `.outOfMemory`.
    public func begin(_ head: ResponseHead) throws -> XMLEventParser {
        try XMLEventParser(charset: charset ?? head.charset, limits: limits)
    }

    /// Gives the events that a chunk completes.
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

    /// Adds the events that a chunk completes, those before a mistake too.
    ///
    /// - Parameters:
    ///   - chunk: The next bytes; nil at the end.
    ///   - state: The parser.
    ///   - events: What is added to.
    /// - Throws: `NetworkError` of kind `.decodingFailed` whose cause is an ``XMLError``.
    public func decode(_ chunk: ByteChunk?, _ state: inout XMLEventParser, into events: inout [XMLEvent]) throws {
        let (more, failure) = state.parse(chunk)
        events += more
        if let failure { throw NetworkError(failure) }
    }

    /// The events of a document that is at hand.
    ///
    /// - Parameter bytes: The whole document.
    /// - Returns: All events; for long documents ``events(in:)`` takes less memory.
    /// - Throws: `XMLError` of any kind but `.invalidPath`.
    public func events(of bytes: some Sequence<UInt8>) throws(XMLError) -> [XMLEvent] {
        let parser = try XMLEventParser(charset: charset, limits: limits)
        let (events, failure) = parser.parse(bytes)
        if let failure { throw failure }
        let end = parser.parse([UInt8]?.none)
        if let failure = end.failure { throw failure }
        return events + end.events
    }

    /// The events of a document that arrives in pieces, wherever they come from.
    ///
    /// ```swift
    /// for try await event in XMLEvents().events(in: response.bytes) { print(event) }
    /// ```
    ///
    /// - Parameter chunks: The bytes, in pieces of any size; read as events are asked for.
    /// - Returns: The events, and after them an `XMLError` when the document has a mistake, or what `chunks` throws.
    public func events<Chunks: AsyncSequence>(in chunks: Chunks) -> XMLEventSequence<Chunks>
    where Chunks.Element: Sequence<UInt8> {
        XMLEventSequence(chunks, charset, limits)
    }
}

extension StreamSerializer where Self == XMLEvents {
    /// What stands in an XML document, while it arrives.
    public static var xmlEvents: XMLEvents { XMLEvents() }

    /// What stands in an XML document, while it arrives.
    ///
    /// - Parameters:
    ///   - charset: The encoding, instead of what the server says; only a byte order mark says more.
    ///   - limits: What a document may ask for.
    public static func xmlEvents(charset: String? = nil, limits: XMLLimits = XMLLimits()) -> XMLEvents {
        XMLEvents(charset: charset, limits: limits)
    }
}

extension [MediaType] {
    /// What XML is served as (RFC 7303).
    static var xml: [MediaType] {
        [
            "application/xml", "text/xml", "application/atom+xml", "application/rss+xml", "application/soap+xml",
            "*/*+xml",
        ]
    }
}
