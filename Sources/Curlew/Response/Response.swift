// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// A complete response: the head, the value made from the body, and the metrics of the transfer.
///
/// ```swift
/// let response: Response<Data> = try await transfer.response()
/// print(response.value.count, response.head.status, response.metrics)
/// ```
public struct Response<Value: Sendable>: Sendable {
    /// Status, version and fields.
    public var head: ResponseHead
    /// The value made from the body.
    public var value: Value
    /// The durations, sizes and addresses of the transfer.
    public var metrics: TransferMetrics {
        get {
            var metrics = measurements.metrics
            metrics.cache = metrics.cache ?? head.cache
            return metrics
        }
        set { measurements = .made(newValue) }
    }
    /// The trailer fields after the body (RFC 9110 §6.5), such as a digest or `Server-Timing`; usually empty.
    ///
    /// Trailers are never merged into the head. Fields that frame, route or authenticate the message, or say how to
    /// read its body (`Content-Length`, `Host`, `Set-Cookie`, `Content-Type` and similar fields), have no meaning in
    /// trailers and are dropped (RFC 9110 §6.5.1).
    public var trailers: HeaderFields
    private var measurements: Measurements

    /// Creates a response from its parts; it has no trailers by default.
    public init(
        head: ResponseHead, value: Value, metrics: TransferMetrics = TransferMetrics(), trailers: HeaderFields = [:]
    ) {
        self.init(head: head, value: value, measurements: .made(metrics), trailers: trailers)
    }

    init(head: ResponseHead, value: Value, measurements: Measurements, trailers: HeaderFields) {
        self.head = head
        self.value = value
        self.measurements = measurements
        self.trailers = trailers
    }

    /// The status, equal to `head.status`.
    public var status: Status { head.status }

    /// Returns this response with a transformed value.
    /// - Throws: Any error of the closure.
    public func map<Other: Sendable>(_ transform: (Value) throws -> Other) rethrows -> Response<Other> {
        with(try transform(value))
    }

    /// Returns this response with another value.
    func with<Other: Sendable>(_ value: Other) -> Response<Other> {
        Response<Other>(head: head, value: value, measurements: measurements, trailers: trailers)
    }
}

/// The metrics of a response; they are made when they are read, because most callers do not read them.
enum Measurements: Sendable {
    indirect case made(TransferMetrics)
    case measured(EngineTransfer.Outcome.Facts?)

    var metrics: TransferMetrics {
        switch self {
        case .made(let metrics): metrics
        case .measured(let facts): facts.map { TransferMetrics($0.metrics) } ?? TransferMetrics()
        }
    }
}

extension Measurements: Hashable {
    static func == (first: Measurements, second: Measurements) -> Bool { first.metrics == second.metrics }

    func hash(into hasher: inout Hasher) { hasher.combine(metrics) }
}

extension Response: Equatable where Value: Equatable {}
extension Response: Hashable where Value: Hashable {}
