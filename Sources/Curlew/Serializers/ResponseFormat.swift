// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// Decodes the bodies of responses as values of any `Decodable` type: JSON, property lists, or a custom format.
///
/// ```swift
/// struct MessagePack: ResponseFormat {
///     let accepts: [MediaType] = ["application/vnd.msgpack"]
///
///     func decode<T: Decodable>(_ type: T.Type, from body: Data, of head: ResponseHead) throws -> T {
///         try unpack(type, body)
///     }
/// }
/// ```
public protocol ResponseFormat: Sendable {
    /// The media types that the format can read, for `Accept` and for checking the response's `Content-Type`.
    var accepts: [MediaType] { get }

    /// Decodes a body as a value.
    ///
    /// Called in the task that awaits the value, with a body that is not empty.
    /// - Parameters:
    ///   - type: The type of the value; never an `Optional` of it.
    ///   - body: The whole body, decoded from its content codings.
    ///   - head: The status and the fields.
    /// - Throws: Any error; it becomes the cause of a `NetworkError` of kind `decodingFailed`.
    func decode<T: Decodable>(_ type: T.Type, from body: Data, of head: ResponseHead) throws -> T
}
