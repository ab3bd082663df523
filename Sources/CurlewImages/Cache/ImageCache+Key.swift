// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import Curlew
internal import FoundationEssentials

extension ImageCache {
    /// The identity of a cached image: its URL, a variant, and how it was decoded.
    ///
    /// ```swift
    /// let key = ImageCache.Key("https://example.com/photo.jpg", variant: "round")
    /// ```
    public struct Key: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
        /// The URL of the image.
        public let url: String
        /// The name of a variant, such as that of a filter; nil for the image itself.
        public let variant: String?
        /// How the image was decoded.
        public let options: DecodedImage.Options
        /// The parts of the request on which the response may depend.
        private let identity: Identity

        private enum Identity: Hashable {
            case request(CoalescingKey)
            /// An interceptor of the request cannot be compared, so no other request has the same response.
            case unique(UUID)
        }

        /// Creates a key.
        ///
        /// - Parameters:
        ///   - url: The URL of the image.
        ///   - variant: The name of a variant; nil, the default, for the image itself.
        ///   - options: How the image was decoded.
        public init(_ url: String, variant: String? = nil, options: DecodedImage.Options = DecodedImage.Options()) {
            self.init(Request(url), variant: variant, options: options)
        }

        /// Creates the key of a request.
        ///
        /// The key differs from that of a request with another method, URL or body, with other header fields, with
        /// another evaluator or with other interceptors, such as the authenticator of a client. The key of a request
        /// with an interceptor that cannot be compared differs from every other key. Options of the request and cookies
        /// do not count.
        /// - Parameters:
        ///   - request: The request.
        ///   - variant: The name of a variant; nil, the default, for the image itself.
        ///   - options: How the image was decoded.
        public init(
            _ request: Request, variant: String? = nil, options: DecodedImage.Options = DecodedImage.Options()
        ) {
            (url, self.variant, self.options) = (request.url, variant, options)
            var plain = request
            plain.options = Request.Options()
            identity = CoalescingKey(plain, interceptorsOf: nil).map { .request($0) } ?? .unique(UUID())
        }

        /// The URL, redacted, and the variant.
        public var description: String { redactedURL(url) + (variant.map { " (\($0))" } ?? "") }

        /// The description only, because fields and URLs may have secrets.
        public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
    }
}
