// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A complete response: its head, the value made of its body, and how the transfer went.
///
/// ```swift
/// let response: Response<Data> = try await transfer.response()
/// print(response.value.count, response.head.status, response.metrics)
/// ```
public struct Response<Value: Sendable>: Sendable {
    /// Status, version and fields.
    public var head: ResponseHead
    /// What was made of the body.
    public var value: Value
    /// Durations, sizes and addresses of the transfer that brought the response.
    public var metrics: TransferMetrics
    /// The fields that came after the body (RFC 9110 §6.5), such as a digest or `Server-Timing`; empty as a rule.
    ///
    /// They are never merged into the head. Those that frame, route or authenticate the message, or say how to read its
    /// body (`Content-Length`, `Host`, `Set-Cookie`, `Content-Type` and their like), have no meaning there and are left
    /// out (RFC 9110 §6.5.1).
    public var trailers: HeaderFields

    /// A response of its parts, without trailers unless given.
    public init(
        head: ResponseHead, value: Value, metrics: TransferMetrics = TransferMetrics(), trailers: HeaderFields = [:]
    ) {
        self.head = head
        self.value = value
        self.metrics = metrics
        self.trailers = trailers
    }

    /// The status, as `head.status`.
    public var status: Status { head.status }

    /// The same response around another value.
    /// - Throws: What the closure throws.
    public func map<Other: Sendable>(_ transform: (Value) throws -> Other) rethrows -> Response<Other> {
        Response<Other>(head: head, value: try transform(value), metrics: metrics, trailers: trailers)
    }
}

extension Response: Equatable where Value: Equatable {}
extension Response: Hashable where Value: Hashable {}
