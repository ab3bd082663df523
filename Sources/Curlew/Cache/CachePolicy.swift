// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension Request {
    /// How a request uses the cache of its session; without a cache, it has no effect.
    ///
    /// | Policy | A stored response is used | The response of the server is stored |
    /// |---|---|---|
    /// | `.standard` | while it is fresh; after a validation otherwise | yes |
    /// | `.reload` | never | yes |
    /// | `.reloadFromOrigin` | never, and caches on the way must ask the origin | yes |
    /// | `.preferCache` | at any age | yes |
    /// | `.onlyIfCached` | at any age; without one the response is a 504, and nothing is sent | – |
    /// | `.revalidate` | after a validation, unless it is immutable and fresh | yes |
    ///
    /// Under any policy, a response with `no-cache` is never used without a validation, and one with `must-revalidate`
    /// is not used without a validation when it is stale (RFC 9111 §5.2.2). `no-cache`, `no-store` and `only-if-cached`
    /// of the request apply under each policy, its `max-age` and `min-fresh` not with `.preferCache` and
    /// `.onlyIfCached`.
    public enum CachePolicy: String, Sendable, Hashable, Codable, CaseIterable {
        /// The rules of HTTP (RFC 9111), with the request's `Cache-Control`.
        case standard
        /// Ignores stored responses, and stores the new one.
        case reload
        /// Ignores stored responses, and sends `Cache-Control: no-cache` so that other caches ignore theirs, too.
        case reloadFromOrigin
        /// Uses a stored response of any age, and the network without one.
        case preferCache
        /// Uses a stored response of any age, and never the network.
        ///
        /// Without a stored response, the response has the status 504; clients report it as
        /// `NetworkError.Kind.cacheMiss`.
        case onlyIfCached
        /// Validates a stored response before each use, unless it is fresh and `immutable`.
        case revalidate
    }
}
