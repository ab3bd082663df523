// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Turns the body of a response into elements while it arrives.
///
/// ```swift
/// struct Bytes: StreamSerializer {
///     func begin(_ head: ResponseHead) throws {}
///     func decode(_ chunk: ByteChunk?, _ state: inout Void) throws -> [UInt8] { chunk.map(Array.init) ?? [] }
/// }
/// ```
///
/// A framing of your own keeps the start of a frame, and bounds it:
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
    /// What the stream consists of.
    associatedtype Element: Sendable
    /// What is kept from chunk to chunk, such as the start of a line; it has to be bounded.
    associatedtype State: Sendable

    /// What it can read: becomes `Accept`, and the rule for the response's `Content-Type`; anything unless said
    /// otherwise.
    var accepts: [MediaType] { get }

    /// Begins with an acceptable response.
    ///
    /// Called in the task that iterates the stream, as `decode` is.
    /// - Throws: Any error; it ends the stream as the cause of a `NetworkError` of kind `decodingFailed`.
    func begin(_ head: ResponseHead) throws -> State

    /// Gives the elements that a chunk completes.
    ///
    /// - Parameters:
    ///   - chunk: The next bytes, decoded from their content codings; nil once, at the end of the body.
    ///   - state: What is kept.
    /// - Throws: Any error; it ends the stream as the cause of a `NetworkError` of kind `decodingFailed`.
    func decode(_ chunk: ByteChunk?, _ state: inout State) throws -> [Element]

    /// Adds the elements that a chunk completes, which is what readers call; by ``decode(_:_:)`` unless said otherwise.
    ///
    /// To be implemented by those that may fail in the middle of a chunk: what was added before the error comes first,
    /// so that where the network cuts a body does not matter.
    /// - Parameters:
    ///   - chunk: The next bytes, decoded from their content codings; nil once, at the end of the body.
    ///   - state: What is kept.
    ///   - elements: What they are added to.
    /// - Throws: Any error; it ends the stream as the cause of a `NetworkError` of kind `decodingFailed`.
    func decode(_ chunk: ByteChunk?, _ state: inout State, into elements: inout [Element]) throws

    /// Whether no more elements come, whatever the rest of the body is: the stream ends then, and the transfer with it;
    /// false unless said otherwise.
    ///
    /// Asked after each chunk.
    /// - Parameter state: What is kept.
    func isOver(_ state: State) -> Bool
}

extension StreamSerializer {
    /// Anything.
    public var accepts: [MediaType] { [.any] }

    /// False: the body's end is the stream's.
    public func isOver(_ state: State) -> Bool { false }

    /// Adds what ``decode(_:_:)`` gives.
    ///
    /// - Throws: What it throws.
    public func decode(_ chunk: ByteChunk?, _ state: inout State, into elements: inout [Element]) throws {
        elements += try decode(chunk, &state)
    }
}

/// The bytes of a body as they arrive.
public struct Chunks: StreamSerializer {
    /// Takes any media type.
    public init() {}

    /// Nothing has to be kept.
    public func begin(_ head: ResponseHead) {}

    /// The chunk itself.
    public func decode(_ chunk: ByteChunk?, _ state: inout Void) -> [ByteChunk] { chunk.map { [$0] } ?? [] }
}

extension StreamSerializer where Self == Chunks {
    /// The bytes as they arrive.
    public static var chunks: Chunks { Chunks() }
}
