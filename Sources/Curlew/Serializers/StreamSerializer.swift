// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Decodes the body of a response into elements while it arrives.
///
/// ```swift
/// struct Bytes: StreamSerializer {
///     func begin(_ head: ResponseHead) throws {}
///     func decode(_ chunk: ByteChunk?, _ state: inout Void) throws -> [UInt8] { chunk.map(Array.init) ?? [] }
/// }
/// ```
///
/// A custom framing keeps the start of a frame, and limits its length:
///
/// ```swift
/// struct Records: StreamSerializer {      // NUL ends each, as with `find -print0`
///     func begin(_ head: ResponseHead) -> [UInt8] { [] }
///
///     func decode(_ chunk: ByteChunk?, _ rest: inout [UInt8]) throws -> [String] {
///         guard let chunk else { return [] }
///         var records = (rest + chunk).split(separator: 0, omittingEmptySubsequences: false)
///         rest = Array(records.removeLast())
///         guard rest.count <= 65_536 else { throw TooLong() }
///         return records.map { String(decoding: $0, as: UTF8.self) }
///     }
/// }
/// ```
public protocol StreamSerializer<Element>: Sendable {
    /// The type of the stream's elements.
    associatedtype Element: Sendable
    /// The data that is kept between chunks, such as the start of a line; its size must be limited.
    associatedtype State: Sendable

    /// The media types that the serializer can read, for `Accept` and for checking the response's `Content-Type`; any
    /// type by default.
    var accepts: [MediaType] { get }

    /// Starts with an acceptable response.
    ///
    /// Called in the task that iterates the stream, like `decode`.
    /// - Throws: Any error; it ends the stream as the cause of a `NetworkError` of kind `decodingFailed`.
    func begin(_ head: ResponseHead) throws -> State

    /// Returns the elements that a chunk completes.
    ///
    /// - Parameters:
    ///   - chunk: The next bytes, decoded from their content codings; nil once, at the end of the body.
    ///   - state: The data that is kept between chunks.
    /// - Throws: Any error; it ends the stream as the cause of a `NetworkError` of kind `decodingFailed`.
    func decode(_ chunk: ByteChunk?, _ state: inout State) throws -> [Element]

    /// Adds the elements that a chunk completes; by default, those that ``decode(_:_:)`` returns.
    ///
    /// Readers call this method. Implement it for a serializer that may fail in the middle of a chunk: elements that it
    /// added before the error are delivered first, so that the result does not depend on how the network splits the
    /// body.
    /// - Parameters:
    ///   - chunk: The next bytes, decoded from their content codings; nil once, at the end of the body.
    ///   - state: The data that is kept between chunks.
    ///   - elements: The array to add the elements to.
    /// - Throws: Any error; it ends the stream as the cause of a `NetworkError` of kind `decodingFailed`.
    func decode(_ chunk: ByteChunk?, _ state: inout State, into elements: inout [Element]) throws

    /// Returns whether the stream ends before the rest of the body; false by default.
    ///
    /// Called after each chunk. When the result is true, the stream and the transfer end.
    /// - Parameter state: The data that is kept between chunks.
    func isOver(_ state: State) -> Bool
}

extension StreamSerializer {
    /// Any media type.
    public var accepts: [MediaType] { [.any] }

    /// Returns false: the stream ends with the body.
    public func isOver(_ state: State) -> Bool { false }

    /// Adds the elements that ``decode(_:_:)`` returns.
    ///
    /// - Throws: The error that ``decode(_:_:)`` throws.
    public func decode(_ chunk: ByteChunk?, _ state: inout State, into elements: inout [Element]) throws {
        elements += try decode(chunk, &state)
    }
}

extension Streams {
    /// The bytes of a body as they arrive.
    public struct Chunks: StreamSerializer {
        /// Creates a serializer for any media type.
        public init() {}

        /// Does nothing, because no state is needed.
        public func begin(_ head: ResponseHead) {}

        /// Returns the chunk itself.
        public func decode(_ chunk: ByteChunk?, _ state: inout Void) -> [ByteChunk] { chunk.map { [$0] } ?? [] }
    }
}

extension StreamSerializer where Self == Streams.Chunks {
    /// The bytes as they arrive.
    public static var chunks: Streams.Chunks { Streams.Chunks() }
}
