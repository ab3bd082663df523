// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// Turns the bodies of responses into values of any `Decodable` type: JSON, property lists, or your own.
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
    /// What it can read: becomes `Accept`, and the rule for the response's `Content-Type`.
    var accepts: [MediaType] { get }

    /// Turns a body into a value.
    ///
    /// Called in the task of whoever awaits the value, with a body that is not empty.
    /// - Parameters:
    ///   - type: What is wanted; never an `Optional` around it.
    ///   - body: The whole body, decoded from its content codings.
    ///   - head: Status and fields.
    /// - Throws: Any error; it becomes the cause of a `NetworkError` of kind `decodingFailed`.
    func decode<T: Decodable>(_ type: T.Type, from body: Data, of head: ResponseHead) throws -> T
}
