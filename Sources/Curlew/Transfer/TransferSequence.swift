// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The elements of a response or a transfer as they arrive, for one reader with back-pressure and typed errors.
///
/// The first step sends the request. Leaving the loop early cancels it; a cancelled task gets
/// `NetworkError(kind: .cancelled)`, never a silent end.
public struct TransferSequence<Element: Sendable>: AsyncSequence, Sendable {
    /// The type of errors.
    public typealias Failure = NetworkError

    private let makeReader: @Sendable () -> any StreamReader<Element>

    init(_ makeReader: @escaping @Sendable () -> any StreamReader<Element>) { self.makeReader = makeReader }

    /// Returns the iterator for the elements; a second iterator throws `.invalidRequest`.
    public func makeAsyncIterator() -> Iterator { Iterator(makeReader()) }

    /// The iterator over the elements; releasing it before the end cancels the call.
    public struct Iterator: AsyncIteratorProtocol {
        private var reader: any StreamReader<Element>
        /// The decoded elements that were not delivered yet, in reverse order.
        @usableFromInline var elements: [Element] = []

        fileprivate init(_ reader: any StreamReader<Element>) { self.reader = reader }

        /// Waits for the next element; nil at the end.
        ///
        /// - Throws: `NetworkError`: any error of a transfer, `.cancelled` when the task or the transfer was cancelled.
        ///   Sequences of decoded elements also throw `.unacceptableStatus` and `.unacceptableContentType`, with the
        ///   start of the body, and `.decodingFailed`.
        @inlinable
        public mutating func next() async throws(NetworkError) -> Element? {
            if let element = elements.popLast() { return element }
            return try await refilled(isolation: #isolation)
        }

        /// Waits for the next element in the caller's isolation; nil at the end.
        ///
        /// - Throws: The same errors as `next()`.
        @inlinable
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(NetworkError) -> Element? {
            // This line is inlined into the caller, and most steps need only this line.
            if let element = elements.popLast() { return element }
            return try await refilled(isolation: actor)
        }

        @usableFromInline
        mutating func refilled(isolation actor: isolated (any Actor)?) async throws(NetworkError) -> Element? {
            try await reader.fill(&elements)
            return elements.popLast()
        }
    }
}

/// A source of the elements of one stream for one reader.
protocol StreamReader<Element> {
    associatedtype Element: Sendable

    /// Fills the array with the next elements in reverse order, at least one; leaves it empty at the end.
    nonisolated(nonsending) mutating func fill(_ elements: inout [Element]) async throws(NetworkError)
}

/// A reader of a transfer's elements, the same ones as those of its stream.
struct TransferElementReader: StreamReader {
    private let reader: BodyReader

    init(_ lifetime: TransferLifetime) { reader = BodyReader(lifetime, withProgress: true) }

    nonisolated(nonsending) mutating func fill(_ elements: inout [TransferElement]) async throws(NetworkError) {
        if let element = try await reader.nextElement() { elements.append(element) }
    }
}
