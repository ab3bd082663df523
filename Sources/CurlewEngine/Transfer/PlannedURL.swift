// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A URL of one or more plans; the creator of the plans keeps it, so that it is parsed once for all its requests.
///
/// A URL belongs to the loop that first runs a plan with it.
package final class PlannedURL: @unchecked Sendable {
    // Safe because the constants never change, and `parsed` is touched by the loop alone.

    /// The absolute http or https URL, in ASCII.
    package let text: String
    package let host: String
    package let port: UInt16
    package let isSecure: Bool
    /// The route of the requests; nil for the direct one.
    package let route: Route?
    /// An object that the creator of the URL keeps with it, for the metrics of its transfers.
    package let remark: (any AnyObject & Sendable)?
    /// The URL as parsed by libcurl; nil before its first use.
    var parsed: ParsedURL?

    package init(
        _ text: String, host: String, port: UInt16, isSecure: Bool, route: Route? = nil,
        remark: (any AnyObject & Sendable)? = nil
    ) {
        self.text = text
        self.host = host
        self.port = port
        self.isSecure = isSecure
        self.route = route
        self.remark = remark
    }
}
