// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension ResponseHead {
    /// A redirect that was followed: the request that was sent, and the redirecting response.
    ///
    /// ```swift
    /// for hop in response.head.history { print(hop.head.status, hop.url) }
    /// ```
    public struct RedirectHop: Sendable, Hashable {
        /// The method of the request that was redirected.
        public let method: Method
        /// The URL of the request that was redirected, as given; for the first hop, the URL of the transfer's original
        /// request.
        public let url: String
        /// The head of the redirecting response; its own history is empty.
        public let head: ResponseHead
        /// The metrics of this attempt.
        public let metrics: TransferMetrics

        /// Creates a hop from its parts; discards the head's history.
        public init(method: Method, url: String, head: ResponseHead, metrics: TransferMetrics = TransferMetrics()) {
            var head = head
            head.history = []
            self.method = method
            self.url = url
            self.head = head
            self.metrics = metrics
        }
    }
}

extension ResponseHead.RedirectHop: CustomStringConvertible {
    /// One line such as "301 GET https://host/path?token=<redacted>".
    public var description: String {
        "\(head.status.code) \(method.rawValue.escapingControls) \(redactedURL(url))"
    }
}
