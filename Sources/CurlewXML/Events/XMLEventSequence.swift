// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The events of a document that arrives in pieces; see ``XMLEvents/events(in:)``.
///
/// ```swift
/// let events = XMLEvents().events(in: chunks)
/// ```
public struct XMLEventSequence<Chunks: AsyncSequence>: AsyncSequence where Chunks.Element: Sequence<UInt8> {
    /// What it yields.
    public typealias Element = XMLEvent
    /// What it throws: `XMLError`, or what the sequence below throws.
    public typealias Failure = any Error

    private let chunks: Chunks
    private let charset: String?
    private let limits: XMLLimits

    init(_ chunks: Chunks, _ charset: String?, _ limits: XMLLimits) {
        self.chunks = chunks
        self.charset = charset
        self.limits = limits
    }

    /// Makes an iterator, with an iterator of the sequence below.
    public func makeAsyncIterator() -> Iterator {
        Iterator(
            chunks.makeAsyncIterator(),
            Result { () throws(XMLError) in
                try XMLEventParser(charset: charset, limits: limits)
            })
    }

    /// Reads the document.
    public struct Iterator: AsyncIteratorProtocol {
        private var chunks: Chunks.AsyncIterator
        private let parser: Result<XMLEventParser, XMLError>
        /// What is at hand of the last chunk, and how far it is parsed.
        private var bytes: [UInt8] = []
        private var offset = 0
        /// The last one comes next.
        private var events: [XMLEvent] = []
        private var end: Result<Void, any Error>?

        init(_ chunks: Chunks.AsyncIterator, _ parser: Result<XMLEventParser, XMLError>) {
            self.chunks = chunks
            self.parser = parser
        }

        /// The next event; nil at the end.
        ///
        /// - Throws: As `next(isolation:)` does.
        public mutating func next() async throws -> XMLEvent? { try await next(isolation: #isolation) }

        /// The next event, nil at the end, in the caller's isolation.
        ///
        /// - Throws: `XMLError` when the document has a mistake, or what the sequence below throws; the same again when
        ///   asked again.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws -> XMLEvent? {
            while events.isEmpty {
                if let end {
                    try end.get()
                    return nil
                }
                if offset < bytes.count { parseStep() } else { try await read(isolation: actor) }
            }
            return events.removeLast()
        }

        private mutating func read(isolation actor: isolated (any Actor)?) async throws {
            do {
                guard let chunk = try await chunks.next(isolation: actor) else { return parse([UInt8]?.none) }
                bytes = Array(chunk)
                offset = 0
            } catch {
                end = .failure(error)
                throw error
            }
        }

        /// Parses some of a chunk, so that a large one does not become all its events at once.
        private mutating func parseStep() {
            let stop = Swift.min(bytes.count, offset + parsingStep)
            parse(bytes[offset..<stop])
            offset = stop
        }

        private mutating func parse(_ bytes: (some Sequence<UInt8>)?) {
            do {
                let (events, failure) = try parser.get().parse(bytes)
                self.events = events.reversed()
                if let failure { end = .failure(failure) } else if bytes == nil { end = .success(()) }
            } catch {
                end = .failure(error)
            }
        }
    }
}

extension XMLEventSequence: Sendable where Chunks: Sendable {}

/// How many bytes are parsed at once.
let parsingStep = 64 << 10
