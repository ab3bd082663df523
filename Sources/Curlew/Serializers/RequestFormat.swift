// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
// Serializers turn values into bodies and responses into values. A *format* does it for every `Codable` type, a
// *serializer* for one kind of result. They run in the task of whoever calls, never on the session's loop.

public import FoundationEssentials

/// Turns values of any `Encodable` type into the bodies of requests: JSON, forms, property lists, or your own.
///
/// ```swift
/// struct MessagePack: RequestFormat {
///     let contentType: MediaType = "application/vnd.msgpack"
///     func encode(_ value: some Encodable) throws -> Data { try pack(value) }
/// }
/// ```
public protocol RequestFormat: Sendable {
    /// What the bytes are, for `Content-Type`.
    var contentType: MediaType { get }

    /// Turns a value into bytes.
    ///
    /// Called in the task of whoever makes the request, before anything is sent.
    /// - Throws: Any error; it becomes the cause of a `NetworkError` of kind `encodingFailed`.
    func encode(_ value: some Encodable) throws -> Data
}

/// A format for both ways.
public typealias WireFormat = RequestFormat & ResponseFormat
