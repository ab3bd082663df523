// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A sequence of the elements that a serializer decodes from any asynchronous sequence of bytes, such as a transfer or
/// a file.
///
/// ```swift
/// for try await line in transfer.bytes.decoded(by: .lines) { print(line) }
/// ```
public struct DecodedSequence<Base: AsyncSequence, Serializer: StreamSerializer>: AsyncSequence
where Base.Element: Sequence, Base.Element.Element == UInt8 {
    /// The element type.
    public typealias Element = Serializer.Element
    /// The error type.
    public typealias Failure = NetworkError

    fileprivate let base: Base
    fileprivate let serializer: Serializer
    fileprivate let head: ResponseHead

    /// Creates an iterator that decodes the bytes in the task that iterates.
    public func makeAsyncIterator() -> Iterator { Iterator(self) }

    /// An iterator over the elements; its release also releases the iterator of the bytes, which cancels a transfer.
    public struct Iterator: AsyncIteratorProtocol {
        private let serializer: Serializer
        private let head: ResponseHead
        private var base: Base.AsyncIterator
        private var state: Serializer.State?
        /// The decoded elements that were not yet returned, in reverse order: the last one is returned next.
        @usableFromInline var elements: [Serializer.Element] = []
        private var end: Result<Void, NetworkError>?

        fileprivate init(_ sequence: DecodedSequence) {
            serializer = sequence.serializer
            head = sequence.head
            base = sequence.base.makeAsyncIterator()
        }

        /// Returns the next element, or nil at the end; after an error, throws the same error again.
        ///
        /// - Throws: `NetworkError`: `.decodingFailed` and `.bodyTooLarge` from the serializer, `.cancelled`, the error
        ///   that ends a transfer, or `.bodyFailed` with the error of the sequence as its cause.
        @inlinable
        public mutating func next() async throws(NetworkError) -> Serializer.Element? {
            try await next(isolation: #isolation)
        }

        /// Returns the next element in the caller's isolation, or nil at the end.
        ///
        /// - Throws: The same errors as `next()`.
        @inlinable
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(NetworkError) -> Serializer.Element? {
            // This fast path is inlinable: most steps only take a decoded element.
            if let element = elements.popLast() { return element }
            return try await refilled(isolation: actor)
        }

        @usableFromInline
        mutating func refilled(
            isolation actor: isolated (any Actor)?
        ) async throws(NetworkError) -> Serializer.Element? {
            while elements.isEmpty {
                if let end {
                    try end.get()
                    return nil
                }
                await read(isolation: actor)
            }
            return elements.popLast()
        }

        /// Reads and decodes one chunk; a failure is reported after the elements before it.
        private mutating func read(isolation actor: isolated (any Actor)?) async {
            let chunk: ByteChunk?
            do {
                chunk = try await base.next(isolation: actor).map { $0 as? ByteChunk ?? ByteChunk($0) }
                // In a cancelled task some sequences, such as AsyncThrowingStream, end without an error.
                if chunk == nil, Base.Failure.self != NetworkError.self { try Task.checkCancellation() }
            } catch {
                return end = .failure(.bytesFailed(error))
            }
            do {
                var state = try self.state ?? serializer.begin(head)
                // Clearing the member makes the state uniquely referenced, so the serializer changes it without a copy.
                self.state = nil
                defer { self.state = state }
                try serializer.decode(chunk, &state, into: &elements)
                if chunk == nil || serializer.isOver(state) { end = .success(()) }
            } catch {
                end = .failure(.decoding(error, as: Serializer.Element.self))
            }
            elements.reverse()
        }
    }
}

extension NetworkError {
    /// Returns the error to report for an error of the byte sequence.
    fileprivate static func bytesFailed(_ error: any Error) -> NetworkError {
        switch error {
        case let error as NetworkError: error
        case is CancellationError: NetworkError(.cancelled, phase: .receiving, "The task was cancelled.")
        default:
            NetworkError(
                .bodyFailed, phase: .receiving, "The sequence of bytes failed: \(type(of: error)).", cause: error)
        }
    }
}

extension DecodedSequence: Sendable where Base: Sendable {}

extension AsyncSequence where Element: Sequence, Element.Element == UInt8 {
    /// Returns the elements that a serializer decodes from these bytes, with a typed error.
    ///
    /// - Parameters:
    ///   - serializer: Decodes the elements, in the task that iterates.
    ///   - head: The response of the bytes, whose charset may matter; a 200 response without fields by default.
    public func decoded<Serializer: StreamSerializer>(
        by serializer: Serializer, of head: ResponseHead = ResponseHead(status: .ok)
    ) -> DecodedSequence<Self, Serializer> {
        DecodedSequence(base: self, serializer: serializer, head: head)
    }
}
