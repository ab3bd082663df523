// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

/// The decoded bytes of a response body as they arrive, for one reader with back-pressure and typed errors.
///
/// The first step starts the transfer. A slow reader makes the transfer pause, so that no more bytes are buffered than
/// the session's high-water mark, in addition to those that arrived before the first step. Leaving the loop early
/// cancels the transfer, or the attempt for ``IncomingResponse/bytes``. A cancelled task gets
/// `NetworkError(kind: .cancelled)`, never a silent end.
public struct TransferBytes: AsyncSequence, Sendable {
    /// The type of elements.
    public typealias Element = ByteChunk
    /// The type of errors.
    public typealias Failure = NetworkError

    private let makeReader: @Sendable () -> BodyReader

    init(_ makeReader: @escaping @Sendable () -> BodyReader) { self.makeReader = makeReader }

    /// Returns the iterator for the bytes; a second iterator throws `.invalidRequest`.
    public func makeAsyncIterator() -> Iterator { Iterator(makeReader()) }

    /// The iterator over the body; releasing it before the end cancels the transfer or the attempt.
    public struct Iterator: AsyncIteratorProtocol {
        private let reader: BodyReader

        init(_ reader: BodyReader) { self.reader = reader }

        /// Waits for the next bytes; nil at the end.
        ///
        /// - Throws: `NetworkError`: any error of a transfer; `.invalidRequest` when the body has another reader;
        ///   `.cancelled` when the task or the transfer was cancelled.
        public mutating func next() async throws(NetworkError) -> ByteChunk? {
            try await reader.next()
        }

        /// Waits for the next bytes in the caller's isolation; nil at the end.
        ///
        /// - Throws: The same errors as `next()`.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(NetworkError) -> ByteChunk? {
            try await reader.next()
        }
    }
}
