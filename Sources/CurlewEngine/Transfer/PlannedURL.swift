// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A URL that plans name, kept by whoever makes plans, so that it is parsed once for all requests to it.
///
/// It belongs to one loop: to the one that first runs a plan with it.
package final class PlannedURL: @unchecked Sendable {
    // Safe because the constants never change, and `parsed` is touched by the loop alone.

    /// ASCII, absolute, http or https.
    package let text: String
    package let host: String
    package let port: UInt16
    package let isSecure: Bool
    /// What libcurl has made of it, once it was asked.
    var parsed: ParsedURL?

    package init(_ text: String, host: String, port: UInt16, isSecure: Bool) {
        self.text = text
        self.host = host
        self.port = port
        self.isSecure = isSecure
    }
}
