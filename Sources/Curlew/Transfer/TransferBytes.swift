// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

/// The decoded bytes of a response body as they arrive, for one reader with back-pressure and typed errors.
///
/// The first step starts the transfer. A slow reader makes the transfer pause, so that no more bytes are buffered than
/// the session's high-water mark, in addition to those that arrived before the first step. Leaving the loop early
/// cancels the transfer. A cancelled task gets `NetworkError(kind: .cancelled)`, never a silent end.
public struct TransferBytes: AsyncSequence, Sendable {
    /// The type of elements.
    public typealias Element = ByteChunk
    /// The type of errors.
    public typealias Failure = NetworkError

    private enum Source {
        case transfer(TransferToken)
        case response(IncomingBody, Request)
    }

    private let source: Source

    init(_ token: TransferToken) { source = .transfer(token) }

    init(_ body: IncomingBody, of request: Request) { source = .response(body, request) }

    /// Returns the iterator for the bytes; a second iterator throws `.invalidRequest`.
    public func makeAsyncIterator() -> Iterator {
        switch source {
        case .transfer(let token): Iterator(TransferReader(token, withProgress: false))
        case .response(let body, let request): Iterator(ResponseReader(body, request))
        }
    }

    /// The iterator over the body; releasing it before the end cancels the transfer.
    public struct Iterator: AsyncIteratorProtocol {
        private let reader: any ElementReader

        init(_ reader: any ElementReader) { self.reader = reader }

        /// Waits for the next bytes; nil at the end.
        ///
        /// - Throws: `NetworkError`: any error of a transfer; `.invalidRequest` when the body has another reader;
        ///   `.cancelled` when the task or the transfer was cancelled.
        public mutating func next() async throws(NetworkError) -> ByteChunk? {
            while let element = try await reader.next() {
                if case .bytes(let chunk) = element { return chunk }
            }
            return nil
        }

        /// Waits for the next bytes in the caller's isolation; nil at the end.
        ///
        /// - Throws: The same errors as `next()`.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(NetworkError) -> ByteChunk? {
            while let element = try await reader.next() {
                if case .bytes(let chunk) = element { return chunk }
            }
            return nil
        }
    }
}

/// A reader of a response's body in the chain of interceptors, which takes the body at the first step.
private final class ResponseReader: ElementReader {
    private let body: IncomingBody
    private let request: Request
    private let taken = Lock<BodyReader?>(nil)

    init(_ body: IncomingBody, _ request: Request) {
        self.body = body
        self.request = request
    }

    func next() async throws(NetworkError) -> TransferElement? {
        if let reader = taken.withLock({ $0 }) { return try await reader.next() }
        let reader = try body.take(for: request)
        taken.withLock { $0 = reader }
        return try await reader.next()
    }
}
