// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A redirect that was followed: the request that was sent, and the response that led on.
///
/// ```swift
/// for hop in response.head.history { print(hop.head.status, hop.url) }
/// ```
public struct RedirectHop: Sendable, Hashable {
    /// The method of the request that was redirected.
    public let method: Method
    /// The URL of the request that was redirected, as it was given; the first hop has the one the transfer began with.
    public let url: String
    /// The head of the response that redirected it; its own history is empty.
    public let head: ResponseHead
    /// How this part of the transfer went.
    public let metrics: TransferMetrics

    /// A hop of its parts; the head's history is dropped.
    public init(method: Method, url: String, head: ResponseHead, metrics: TransferMetrics = TransferMetrics()) {
        var head = head
        head.history = []
        self.method = method
        self.url = url
        self.head = head
        self.metrics = metrics
    }
}

extension RedirectHop: CustomStringConvertible {
    /// One line such as "301 GET https://host/path?token=<redacted>".
    public var description: String {
        "\(head.status.code) \(method.rawValue.escapingControls) \(redactedURL(url))"
    }
}
