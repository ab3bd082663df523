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

    /// A response of its parts.
    public init(head: ResponseHead, value: Value, metrics: TransferMetrics = TransferMetrics()) {
        self.head = head
        self.value = value
        self.metrics = metrics
    }

    /// The status, as `head.status`.
    public var status: Status { head.status }

    /// The same response around another value.
    /// - Throws: What the closure throws.
    public func map<Other: Sendable>(_ transform: (Value) throws -> Other) rethrows -> Response<Other> {
        Response<Other>(head: head, value: try transform(value), metrics: metrics)
    }
}

extension Response: Equatable where Value: Equatable {}
extension Response: Hashable where Value: Hashable {}
