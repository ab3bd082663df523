// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import Curlew
internal import CurlewSupport

extension MediaCache {
    /// A handle for one file: its facts, and sequences of its bytes.
    ///
    /// ```swift
    /// let film = try await cache.media(for: "https://example.com/film.mp4")
    /// print(film.length ?? 0, film.contentType ?? "", film.storedRanges)
    /// for try await chunk in film.bytes(from: 500_000) { play(chunk) }
    /// ```
    ///
    /// The facts are those of the current version of the file, so they change when the server has another one. The
    /// file is not removed from the cache while a copy of the handle, a sequence or an iterator exists.
    public struct Media: Sendable {
        let use: MediaUse

        init(_ use: MediaUse) { self.use = use }

        var facts: MediaFacts? { use.source.state.withLock { $0.facts } }

        /// The length in bytes; nil while it is unknown.
        public var length: Int64? { facts?.length }

        /// The `Content-Type` field of the response.
        public var contentType: String? { facts?.contentType }

        /// The strong validator of the file, an entity tag with its quotes or a date; nil without one.
        public var validator: ResumeToken.Validator? { facts?.validator }

        /// Whether ranges of the file can be requested from the server.
        public var supportsRanges: Bool { use.source.state.withLock { $0.plan.mode == .ranged } }

        /// The stored ranges of bytes, in ascending order.
        public var storedRanges: [Range<Int64>] { use.source.state.withLock { $0.plan.cached.ranges } }

        /// Whether all bytes are stored.
        public var isComplete: Bool { use.source.state.withLock { $0.plan.isComplete } }

        /// Returns the bytes of a range; it ends earlier if the file does.
        ///
        /// - Parameter range: The positions of the bytes. A negative start counts as 0.
        public func bytes(_ range: Range<Int64>) -> Bytes {
            Bytes(use, from: max(range.lowerBound, 0), to: max(range.upperBound, 0))
        }

        /// Returns the bytes from a position to the end of the file.
        ///
        /// - Parameter start: The position of the first byte; 0 unless given.
        public func bytes(from start: Int64 = 0) -> Bytes { Bytes(use, from: max(start, 0), to: nil) }

        /// Stores all missing bytes, as fast as the server sends them.
        ///
        /// - Throws: The errors of the sequence of bytes.
        public func fill() async throws(NetworkError) {
            let source = use.source
            let id = source.addReader(from: 0, to: nil, isGreedy: true)
            defer { source.removeReader(id) }
            while try await source.next(id, atMost: .max) != nil {}
        }
    }

    /// Bytes of a file as they become available, for any number of readers.
    ///
    /// Each iterator is a reader with its own position and its own back-pressure. It starts or joins a transfer when
    /// its bytes are missing; releasing it stops the transfers that no other reader needs, and what arrived stays
    /// stored. A chunk has at most 256 KiB, and an iterator reads at most 1 MiB ahead from the disk.
    ///
    /// ```swift
    /// for try await chunk in film.bytes(0..<65_536) { header.append(contentsOf: chunk) }
    /// ```
    public struct Bytes: AsyncSequence, Sendable {
        /// The type of elements.
        public typealias Element = ByteChunk
        /// The type of errors.
        public typealias Failure = NetworkError

        private let use: MediaUse
        private let start: Int64
        private let end: Int64?

        init(_ use: MediaUse, from start: Int64, to end: Int64?) {
            (self.use, self.start, self.end) = (use, start, end)
        }

        /// Returns a reader of its own.
        public func makeAsyncIterator() -> Iterator { Iterator(MediaReader(use, from: start, to: end)) }

        /// A reader of the bytes.
        public struct Iterator: AsyncIteratorProtocol {
            private let reader: MediaReader

            init(_ reader: MediaReader) { self.reader = reader }

            /// Waits for the next bytes; nil at the end of the range or the file.
            ///
            /// After the error of a transfer, the next call tries again from the same position.
            /// - Throws: `NetworkError`: `.contentChanged` when bytes were delivered and the file on the server is
            ///   another one now, or a server without ranges or a strong validator broke off; `.cancelled` when the
            ///   task was cancelled; `.resourceExhausted` when the disk is full; `.cacheFailed` when it fails;
            ///   `.unacceptableStatus`; `.invalidResponse`; or the error of the transfer.
            public mutating func next() async throws(NetworkError) -> ByteChunk? { try await reader.next() }

            /// Waits for the next bytes in the caller's isolation; nil at the end of the range or the file.
            ///
            /// - Throws: The same errors as `next()`.
            public mutating func next(
                isolation actor: isolated (any Actor)?
            ) async throws(NetworkError) -> ByteChunk? {
                try await reader.next()
            }
        }
    }
}
