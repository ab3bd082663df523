// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew

/// A request in the canonical form of an AWS signature, version 4.
///
/// The form has one line each for method, path, query, fields, their names, and the payload's hash ("Create a canonical
/// request" in the IAM user guide of AWS).
struct CanonicalRequest {
    /// The way in which a service reads paths.
    enum PathRule {
        /// The path is unchanged, with each byte escaped once: for S3, whose keys can contain "//" and "..".
        case verbatim
        /// The path has no dot segments and no empty segments, and is escaped once more than it was sent: for all other
        /// services.
        case normalised
    }

    /// The whole text.
    let text: String
    /// The names of the fields that are signed, sorted and joined by ";".
    let signedNames: String

    /// - Parameters:
    ///   - method: The method as it is sent.
    ///   - target: The URL in normal form.
    ///   - query: The query in place of the target's query; nil for the target's query.
    ///   - rule: The way in which the service reads paths.
    ///   - fields: The request's own fields; the initializer leaves out fields that are not signed.
    ///   - payload: The hash of the body, or a constant in its place.
    init(
        method: String, target: RequestTarget, query: String? = nil, rule: PathRule, fields: HeaderFields,
        payload: String
    ) {
        let signed = Self.signed(fields, host: target.authority)
        signedNames = signed.map(\.name).joined(separator: ";")
        text =
            [
                method, Self.path(target.path, rule), Self.query(query ?? target.query ?? ""),
                signed.map { "\($0.name):\($0.value)\n" }.joined(), signedNames, payload,
            ].joined(separator: "\n")
    }

    /// Returns the names of the signed fields among the given ones, sorted and joined by ";".
    static func signedNames(of fields: HeaderFields) -> String {
        signed(fields, host: "").map(\.name).joined(separator: ";")
    }

    // MARK: Parts

    private static let pathBytes = ByteSet.unreserved.union(ByteSet("/"))

    private static func path(_ path: String, _ rule: PathRule) -> String {
        switch rule {
        case .verbatim: path.percentNormalised(keeping: pathBytes)
        case .normalised: withoutDots(path).percentEncoded(keeping: pathBytes)
        }
    }

    /// Returns a path without dot segments (RFC 3986 §5.2.4) and, as AWS requires, without empty segments.
    private static func withoutDots(_ path: String) -> String {
        var kept: [Substring] = []
        for segment in path.split(separator: "/") where segment != "." {
            if segment == ".." { _ = kept.popLast() } else { kept.append(segment) }
        }
        return "/" + kept.joined(separator: "/") + (path.hasSuffix("/") && !kept.isEmpty ? "/" : "")
    }

    /// Returns names and values escaped, sorted by name and then by value; a name without a value gets an empty value.
    ///
    /// A "+" is a space, because services read queries like forms.
    static func query(_ query: String) -> String {
        let none = ByteSet("")
        let pairs = query.split(separator: "&").map { item in
            let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            return (
                name: String(parts[0]).percentNormalised(keeping: none, plus: "%20"),
                value: parts.count > 1 ? String(parts[1]).percentNormalised(keeping: none, plus: "%20") : ""
            )
        }
        return pairs.sorted { ($0.name, $0.value) < ($1.name, $1.value) }
            .map { "\($0.name)=\($0.value)" }.joined(separator: "&")
    }

    /// The fields that intermediaries may change or remove: those of one connection (RFC 9110 §7.6.1), and those that
    /// tools rewrite.
    private static let unsigned: Set<HeaderName> = [
        "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "TE", "Trailer",
        "Transfer-Encoding", "Upgrade", "Via", "Max-Forwards", "Forwarded", "X-Forwarded-For", "Expect", "User-Agent",
        "Authorization", "X-Amzn-Trace-Id", "Traceparent", "Tracestate",
    ]

    private static func signed(_ fields: HeaderFields, host: String) -> [(name: String, value: String)] {
        var values: [String: [String]] = ["host": [host]]
        for field in fields where !unsigned.contains(field.name) {
            values[field.name.canonical, default: []].append(folded(field.value))
        }
        return values.map { (name: $0.key, value: $0.value.joined(separator: ",")) }.sorted { $0.name < $1.name }
    }

    /// Returns a value without white space at its ends, and with single spaces inside.
    private static func folded(_ value: String) -> String {
        value.utf8.split(whereSeparator: \.isLinearSpace).map { String(Substring($0)) }.joined(separator: " ")
    }
}

extension RequestTarget {
    /// The value of `Host` (RFC 9112 §3.2): the host, and the port if it is not the scheme's default.
    var authority: String {
        let name = isIPv6 ? "[\(host)]" : host
        return port == scheme.defaultPort ? name : "\(name):\(port)"
    }
}
