// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The elements of a response or a transfer as they arrive: one reader, back-pressure, typed errors.
///
/// The request is sent with the first step. Leaving the loop early cancels it; a cancelled task gets
/// `NetworkError(kind: .cancelled)`, never a silent end.
public struct TransferSequence<Element: Sendable>: AsyncSequence, Sendable {
    /// What it throws.
    public typealias Failure = NetworkError

    private let makeReader: @Sendable () -> any StreamReader<Element>

    init(_ makeReader: @escaping @Sendable () -> any StreamReader<Element>) { self.makeReader = makeReader }

    /// Makes the one iterator that gets the elements; a second one gets `.invalidRequest`.
    public func makeAsyncIterator() -> Iterator { Iterator(makeReader()) }

    /// Reads the elements; dropping it before the end cancels the call.
    public struct Iterator: AsyncIteratorProtocol {
        private var reader: any StreamReader<Element>
        /// What was decoded and not asked for yet; the last one comes next.
        @usableFromInline var elements: [Element] = []

        fileprivate init(_ reader: any StreamReader<Element>) { self.reader = reader }

        /// The next element, nil at the end.
        ///
        /// - Throws: `NetworkError`: whatever a transfer can end with, `.cancelled` when the task or the transfer was
        ///   cancelled. Elements that are decoded add `.unacceptableStatus` and `.unacceptableContentType`, with the start
        ///   of the body, and `.decodingFailed`.
        @inlinable
        public mutating func next() async throws(NetworkError) -> Element? {
            if let element = elements.popLast() { return element }
            return try await refilled(isolation: #isolation)
        }

        /// The next element, nil at the end, in the caller's isolation.
        ///
        /// - Throws: As `next()` does.
        @inlinable
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(NetworkError) -> Element? {
            // Seen by the caller's compiler: most steps are no more than this.
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

/// What gives the elements of one stream to one reader.
protocol StreamReader<Element> {
    associatedtype Element: Sendable

    /// Gets the next elements, at least one, the last one first; an empty list at the end.
    nonisolated(nonsending) mutating func fill(_ elements: inout [Element]) async throws(NetworkError)
}

/// Reads the elements of a transfer as its stream has them.
struct StepReader: StreamReader {
    private let reader: TransferReader

    init(_ token: TransferToken) { reader = TransferReader(token, withProgress: true) }

    nonisolated(nonsending) mutating func fill(_ elements: inout [TransferElement]) async throws(NetworkError) {
        if let element = try await reader.next() { elements.append(element) }
    }
}
