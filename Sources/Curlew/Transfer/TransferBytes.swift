// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

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

    private enum Source {
        case transfer(TransferToken)
        case response(IncomingBody, Request)
    }

    private let source: Source

    init(_ token: TransferToken) { source = .transfer(token) }

    init(_ body: IncomingBody, of request: Request) { source = .response(body, request) }

    /// Makes the one iterator that gets the bytes; a second one gets `.invalidRequest`.
    public func makeAsyncIterator() -> Iterator {
        switch source {
        case .transfer(let token): Iterator(TransferReader(token, withProgress: false))
        case .response(let body, let request): Iterator(ResponseReader(body, request))
        }
    }

    /// Reads the body; dropping it before the end cancels the transfer.
    public struct Iterator: AsyncIteratorProtocol {
        private let reader: any ElementReader

        init(_ reader: any ElementReader) { self.reader = reader }

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

/// Takes the body of a response on its way through interceptors at the first step.
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
