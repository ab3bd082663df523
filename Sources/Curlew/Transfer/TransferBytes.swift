// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The bytes of a response body as they arrive, decoded: one reader, back-pressure, typed errors.
///
/// The transfer starts with the first step. A slow reader makes the transfer pause, so no more than the session's
/// high-water mark is held, beside what came before the first reader asked. Leaving the loop early cancels the
/// transfer. A cancelled task gets `NetworkError(kind: .cancelled)`, never a silent end.
public struct TransferBytes: AsyncSequence, Sendable {
    /// What it yields.
    public typealias Element = ByteChunk
    /// What it throws.
    public typealias Failure = NetworkError

    private let token: TransferToken

    init(_ token: TransferToken) { self.token = token }

    /// Makes the one iterator that gets the bytes; a second one gets `.invalidRequest`.
    public func makeAsyncIterator() -> Iterator { Iterator(TransferReader(token, withProgress: false)) }

    /// Reads the body; dropping it before the end cancels the transfer.
    public struct Iterator: AsyncIteratorProtocol {
        private let reader: TransferReader

        init(_ reader: TransferReader) { self.reader = reader }

        /// The next bytes, nil at the end.
        ///
        /// - Throws: `NetworkError` of any kind a transfer can end with; `.invalidRequest` when the body has another
        ///   reader; `.cancelled` when the task or the transfer was cancelled.
        public mutating func next() async throws(NetworkError) -> ByteChunk? {
            while let element = try await reader.next() {
                if case .bytes(let chunk) = element { return chunk }
            }
            return nil
        }

        /// The next bytes, nil at the end, in the caller's isolation.
        ///
        /// - Throws: As `next()` does.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(NetworkError) -> ByteChunk? {
            while let element = try await reader.next() {
                if case .bytes(let chunk) = element { return chunk }
            }
            return nil
        }
    }
}
