// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The elements that a decoder makes of the bytes of any asynchronous sequence: a transfer's, a file's, a test's.
///
/// ```swift
/// for try await line in transfer.bytes.decoded(by: .lines) { print(line) }
/// ```
public struct DecodedSequence<Base: AsyncSequence, Serializer: StreamSerializer>: AsyncSequence
where Base.Element: Sequence, Base.Element.Element == UInt8 {
    /// What it yields.
    public typealias Element = Serializer.Element
    /// What it throws.
    public typealias Failure = NetworkError

    fileprivate let base: Base
    fileprivate let serializer: Serializer
    fileprivate let head: ResponseHead

    /// Iterates the bytes, and decodes them in the task that asks.
    public func makeAsyncIterator() -> Iterator { Iterator(self) }

    /// Reads the elements; dropping it drops the iterator of the bytes, which cancels a transfer.
    public struct Iterator: AsyncIteratorProtocol {
        private let serializer: Serializer
        private let head: ResponseHead
        private var base: Base.AsyncIterator
        private var state: Serializer.State?
        /// What was decoded and not asked for yet; the last one comes next.
        @usableFromInline var elements: [Serializer.Element] = []
        private var end: Result<Void, NetworkError>?

        fileprivate init(_ sequence: DecodedSequence) {
            serializer = sequence.serializer
            head = sequence.head
            base = sequence.base.makeAsyncIterator()
        }

        /// The next element, nil at the end; the same error again after an error.
        ///
        /// - Throws: `NetworkError`: `.decodingFailed` and `.bodyTooLarge` by the decoder, `.cancelled`, what a transfer
        ///   ends with, or `.bodyFailed` with the error of the sequence as its cause.
        @inlinable
        public mutating func next() async throws(NetworkError) -> Serializer.Element? {
            try await next(isolation: #isolation)
        }

        /// The next element, nil at the end, in the caller's isolation.
        ///
        /// - Throws: As `next()` does.
        @inlinable
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(NetworkError) -> Serializer.Element? {
            // Seen by the caller's compiler: most steps are no more than this.
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

        /// A failure comes after the elements before it.
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
                // Changed in place where it is not shared.
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
    /// What a sequence of bytes that failed means to who decodes it.
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
    /// The elements that a decoder makes of these bytes, with a typed error.
    ///
    /// - Parameters:
    ///   - serializer: Makes the elements, in the task that asks for them.
    ///   - head: The response that the bytes belong to, whose charset may matter; one without fields unless given.
    public func decoded<Serializer: StreamSerializer>(
        by serializer: Serializer, of head: ResponseHead = ResponseHead(status: .ok)
    ) -> DecodedSequence<Self, Serializer> {
        DecodedSequence(base: self, serializer: serializer, head: head)
    }
}
