// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A request in the one spelling that both sides of an AWS signature, version 4, agree on.
///
/// Method, path, query, fields, their names, and the payload's hash, a line each ("Create a canonical request" in the
/// IAM user guide of AWS).
struct CanonicalRequest {
    /// How a service reads paths.
    enum PathRule {
        /// As it stands, each byte escaped once: S3, to whose keys "//" and ".." belong.
        case verbatim
        /// Without dot segments and empty segments, and escaped once more than it was sent: all others.
        case normalised
    }

    /// The whole text.
    let text: String
    /// The names of the fields that are signed, sorted and joined by ";".
    let signedNames: String

    /// - Parameters:
    ///   - method: As it is sent.
    ///   - target: The URL in normal form.
    ///   - query: Takes the place of the target's query; nil leaves it.
    ///   - rule: How the service reads paths.
    ///   - fields: The request's own; those that are not signed are left out here.
    ///   - payload: The hash of the body, or what stands for it.
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

    /// The names that are signed of fields, sorted and joined by ";".
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

    /// A path without dot segments (RFC 3986 §5.2.4) and, as AWS has it, without empty ones.
    private static func withoutDots(_ path: String) -> String {
        var kept: [Substring] = []
        for segment in path.split(separator: "/") where segment != "." {
            if segment == ".." { _ = kept.popLast() } else { kept.append(segment) }
        }
        return "/" + kept.joined(separator: "/") + (path.hasSuffix("/") && !kept.isEmpty ? "/" : "")
    }

    /// Names and values escaped, sorted by name and then by value; a name without a value has an empty one.
    ///
    /// A "+" is a space, since services read queries as forms are read.
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

    /// Fields that somebody on the way may change or take away: those of one connection (RFC 9110 §7.6.1), and what
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

    /// A value without white space at its ends, and with single spaces in its inside.
    private static func folded(_ value: String) -> String {
        value.utf8.split(whereSeparator: \.isLinearSpace).map { String(Substring($0)) }.joined(separator: " ")
    }
}

extension RequestTarget {
    /// What `Host` says (RFC 9112 §3.2): the host, and the port where it is not the scheme's.
    var authority: String {
        let name = isIPv6 ? "[\(host)]" : host
        return port == scheme.defaultPort ? name : "\(name):\(port)"
    }
}
