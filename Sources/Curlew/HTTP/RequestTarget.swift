// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// An absolute http or https URL, checked and normalised over its UTF-8 so that libcurl, the pool, the cookie rules and
/// the cache all read the same host, port and path from it.
///
/// In normal form, scheme and host are in lower case, international names are A-labels (RFC 5890), IPv6 addresses are
/// written as in RFC 5952, the default port and the fragment are removed, the path starts with "/", and bytes that a
/// URL must not contain are percent-encoded as UTF-8. Existing percent escapes and dot segments stay as they are.
package struct RequestTarget: Hashable, Sendable {
    /// The schemes that a request can have.
    package enum Scheme: String, Hashable, Sendable {
        case http
        case https

        package var defaultPort: UInt16 { self == .http ? 80 : 443 }
    }

    /// The whole URL in normal form, all ASCII; the original string without a copy if that was already normal.
    package let text: String
    package let scheme: Scheme
    /// The port of the URL, else the default port of the scheme.
    package let port: UInt16
    private let parts: Parts

    /// Checks and normalises `text`.
    ///
    /// Complexity: O(*n*); a text that is already normal is not copied.
    ///
    /// - Parameter names: The encoder of international names; nil behaves as if libidn2 were not installed.
    package init(_ text: String, names: InternationalNames? = .system) throws(InvalidURL) {
        do throws(InvalidURL.Reason) {
            let layout = try URLLayout(text.utf8.span)
            let host = try layout.normalHost(in: text, names: names)
            scheme = layout.scheme
            port = layout.port
            if layout.isNormal, host == nil {
                self.text = text
                parts = Parts(layout)
            } else {
                (self.text, parts) = layout.normalised(text, host: host)
            }
        } catch {
            let hasControl = text.utf8.contains(where: \.isControl)
            throw InvalidURL(text: text, reason: hasControl ? .controlCharacter : error)
        }
    }

    /// The host in lower case; IPv6 addresses without their brackets.
    package var host: String { slice(parts.host) }

    /// The user-info as written in ``text``, still percent-encoded; nil without user-info.
    package var userInfo: String? { parts.userInfo.map(slice) }

    /// The path, still percent-encoded; starts with "/".
    package var path: String { slice(parts.path) }

    /// The query without its "?", still percent-encoded; nil when there is no "?".
    package var query: String? { parts.query.map(slice) }

    /// Whether the host is an IPv6 address, which is in brackets in ``text``.
    package var isIPv6: Bool { host.utf8.contains(UInt8(ascii: ":")) }

    private func slice(_ range: Range<Int>) -> String {
        let start = text.utf8.index(text.utf8.startIndex, offsetBy: range.lowerBound)
        let end = text.utf8.index(start, offsetBy: range.count)
        return String(text[start..<end])
    }

    /// The positions of the components in the text, as UTF-8 offsets.
    package struct Parts: Hashable, Sendable {
        package var userInfo: Range<Int>?
        package var host: Range<Int>
        package var path: Range<Int>
        package var query: Range<Int>?

        init(_ layout: URLLayout) {
            (userInfo, host, path, query) = (layout.userInfo, layout.host, layout.path, layout.query)
        }
    }
}

extension RequestTarget {
    /// Whether others on the network can read the request: it is sent without TLS to another machine.
    package var isCleartext: Bool { scheme == .http && !Self.isLoopback(host) }

    /// Whether a host is this machine: 127.0.0.0/8, ::1, and the names of RFC 6761 §6.3, which are never looked up.
    package static func isLoopback(_ host: String) -> Bool {
        host == "localhost" || host.hasSuffix(".localhost") || host == "::1"
            || host.hasPrefix("127.") && host.utf8.allSatisfy { $0 == UInt8(ascii: ".") || (48...57).contains($0) }
    }
}

extension RequestTarget: CustomStringConvertible {
    /// The URL, redacted.
    package var description: String { redactedURL(text) }
}
