// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The events of a document that arrives in chunks; see ``XMLEvents/events(in:)``.
///
/// ```swift
/// let events = XMLEvents().events(in: chunks)
/// ```
public struct XMLEventSequence<Chunks: AsyncSequence>: AsyncSequence where Chunks.Element: Sequence<UInt8> {
    /// The type of the elements.
    public typealias Element = XMLEvent
    /// The type of the errors: an `XMLError`, or an error of the underlying sequence.
    public typealias Failure = any Error

    private let chunks: Chunks
    private let charset: String?
    private let limits: XMLLimits

    init(_ chunks: Chunks, _ charset: String?, _ limits: XMLLimits) {
        self.chunks = chunks
        self.charset = charset
        self.limits = limits
    }

    /// Makes an iterator, which makes an iterator of the underlying sequence.
    public func makeAsyncIterator() -> Iterator {
        Iterator(
            chunks.makeAsyncIterator(),
            Result { () throws(XMLError) in
                try XMLEventParser(charset: charset, limits: limits)
            })
    }

    /// An iterator that reads the document.
    public struct Iterator: AsyncIteratorProtocol {
        private var chunks: Chunks.AsyncIterator
        private let parser: Result<XMLEventParser, XMLError>
        /// The last chunk; the bytes before `offset` are parsed.
        private var bytes: [UInt8] = []
        private var offset = 0
        /// The parsed events in reverse order: the last element is the next event.
        private var events: [XMLEvent] = []
        private var end: Result<Void, any Error>?

        init(_ chunks: Chunks.AsyncIterator, _ parser: Result<XMLEventParser, XMLError>) {
            self.chunks = chunks
            self.parser = parser
        }

        /// Returns the next event; nil at the end.
        ///
        /// - Throws: The errors of `next(isolation:)`.
        public mutating func next() async throws -> XMLEvent? { try await next(isolation: #isolation) }

        /// Returns the next event, or nil at the end, and runs in the caller's isolation.
        ///
        /// - Throws: `XMLError` if the document is invalid, or the error of the underlying sequence; later calls throw
        ///   the same error again.
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

        /// Parses a part of the chunk, so that a large chunk does not turn into all its events at once.
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

/// The number of bytes to parse at once.
let parsingStep = 64 << 10
