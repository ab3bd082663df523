// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
// Serializers encode values as bodies and decode responses as values. A *format* does so for every `Codable` type, a
// *serializer* for one kind of result. They run in the caller's task, never on the session's loop.

public import FoundationEssentials

/// Encodes values of any `Encodable` type as bodies of requests: JSON, forms, property lists, or a custom format.
///
/// ```swift
/// struct MessagePack: RequestFormat {
///     let contentType: MediaType = "application/vnd.msgpack"
///     func encode(_ value: some Encodable) throws -> Data { try pack(value) }
/// }
/// ```
public protocol RequestFormat: Sendable {
    /// The media type of the bytes, for `Content-Type`.
    var contentType: MediaType { get }

    /// Encodes a value.
    ///
    /// Called in the task that makes the request, before anything is sent.
    /// - Throws: Any error; it becomes the cause of a `NetworkError` of kind `encodingFailed`.
    func encode(_ value: some Encodable) throws -> Data
}

/// A format that encodes and decodes.
public typealias WireFormat = RequestFormat & ResponseFormat
