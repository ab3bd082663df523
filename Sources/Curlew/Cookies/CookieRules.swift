// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// The parts of a request URL that decide which cookies it gets, and which its response may set.
struct CookieTarget: Sendable, Hashable {
    /// The host in normal form.
    let host: String
    /// The path, without the query; it begins with "/".
    let path: String
    /// Whether the connection is safe from others on the network: https, or localhost.
    let isSecure: Bool

    init(_ target: RequestTarget) {
        host = target.host
        path = target.path
        isSecure = !target.isCleartext
    }

    /// Creates the target of a URL; nil for an invalid URL.
    init?(url: String) {
        guard let target = try? RequestTarget(url) else { return nil }
        self.init(target)
    }
}

/// The rules that turn a parsed `Set-Cookie` field into a cookie (RFC 6265bis §5.1 and §5.7), as pure functions.
enum CookieRules {
    /// The maximum length of a name and its value together, in bytes (§5.7, step 4).
    static let maximumCookieLength = 4096
    /// The maximum time from the receipt of a cookie to its expiry: 400 days, in seconds (§5.5).
    static let longestAge: Int64 = 34_560_000

    // MARK: Matching

    /// Whether a host belongs to a domain (§5.1.3).
    static func matches(host: String, domain: String) -> Bool {
        if host == domain { return true }
        let (host, domain) = (host.utf8, domain.utf8)
        guard host.count > domain.count, host.suffix(domain.count).elementsEqual(domain),
            host.dropLast(domain.count).last == UInt8(ascii: ".")
        else { return false }
        return !HostName.isAddress(String(Substring(host[...])))
    }

    /// Whether a path of a request belongs to the path of a cookie (§5.1.4).
    static func matches(path: String, cookiePath: String) -> Bool {
        let (path, prefix) = (path.utf8, cookiePath.utf8)
        guard path.starts(with: prefix) else { return false }
        return path.count == prefix.count || prefix.last == UInt8(ascii: "/")
            || path.dropFirst(prefix.count).first == UInt8(ascii: "/")
    }

    /// Returns the path of a cookie without the attribute `Path` (§5.1.4).
    static func defaultPath(of path: String) -> String {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")), slash != path.startIndex else { return "/" }
        return String(path[..<slash])
    }

    // MARK: Storing

    /// Returns the cookie of a `Set-Cookie` field, after the checks that need no other cookie.
    ///
    /// - Parameters:
    ///   - field: The parsed field.
    ///   - target: The URL of the request whose response has the field.
    ///   - suffixes: The public suffixes; nil when they are unknown, and then a cookie is for the target's host only.
    ///   - now: The time of the receipt.
    static func cookie(
        _ field: SetCookie, from target: CookieTarget, suffixes: PublicSuffixes?, now: Date
    ) throws(Cookie.Refusal.Reason) -> Cookie {
        let (domain, isHostOnly) = try domain(field.domain, for: target.host, suffixes)
        if field.isSecure, !target.isSecure { throw .insecureOrigin }
        let cookie = Cookie(
            name: field.name, value: field.value, domain: domain, isHostOnly: isHostOnly,
            path: field.path ?? defaultPath(of: target.path), isSecure: field.isSecure, isHTTPOnly: field.isHTTPOnly,
            sameSite: field.sameSite, expires: expiry(of: field, at: now), created: now)
        try check(cookie, hasPath: field.path != nil)
        return cookie
    }

    /// Returns the domain of a cookie, and whether the cookie is for that host only (§5.7, steps 8 to 10).
    private static func domain(
        _ attribute: String?, for host: String, _ suffixes: PublicSuffixes?
    ) throws(Cookie.Refusal.Reason) -> (String, isHostOnly: Bool) {
        guard let attribute else { return (host, true) }
        guard attribute.utf8.allSatisfy({ $0 < 0x80 }), let domain = domainKey(attribute) else { throw .invalidDomain }
        guard let suffixes else {
            // The domain may be a public suffix, so the cookie must not reach other hosts.
            if matches(host: host, domain: domain) { return (host, true) }
            throw .foreignDomain
        }
        if domain == host, HostName.isAddress(host) { return (host, true) }
        if suffixes.separatesOwners(domain) {
            if domain == host { return (host, true) }
            throw .publicSuffix
        }
        guard matches(host: host, domain: domain) else { throw .foreignDomain }
        return (domain, false)
    }

    /// Returns a domain in normal form; nil for an invalid one.
    static func domainKey(_ text: String) -> String? {
        // HostName.key would remove a dot at the end, which belongs to the name.
        if text.hasSuffix(".") { return (try? HostName.normal(text[...], names: nil)).map(String.init) }
        return HostName.key(text)
    }

    /// Returns the expiry by `Max-Age`, else by `Expires` (§5.7, step 6); nil for a session cookie.
    private static func expiry(of field: SetCookie, at now: Date) -> Date? {
        if let age = field.maxAge { return age > 0 ? now.addingTimeInterval(Double(age)) : .distantPast }
        guard let seconds = field.expires else { return nil }
        return min(Date(timeIntervalSince1970: Double(seconds)), now.addingTimeInterval(Double(longestAge)))
    }

    // MARK: Checks

    /// Checks the rules about names, values and prefixes.
    ///
    /// - Parameter hasPath: Whether the path was given, and not derived from a URL.
    static func check(_ cookie: Cookie, hasPath: Bool) throws(Cookie.Refusal.Reason) {
        let length = cookie.name.utf8.count + cookie.value.utf8.count
        if length == 0 { throw .empty }
        if length > maximumCookieLength { throw .tooLong }
        if cookie.sameSite == .unrestricted, !cookie.isSecure { throw .insecureSameSiteNone }
        guard Prefix.isSatisfied(by: cookie, hasPath: hasPath) else { throw .brokenPrefix }
    }

    /// Checks a cookie of a program or a file, which the parser of fields has not seen.
    static func checkMade(_ cookie: Cookie, _ suffixes: PublicSuffixes?) throws(Cookie.Refusal.Reason) {
        for text in [cookie.name, cookie.value, cookie.path] {
            if text.utf8.contains(where: { $0.isControl && $0 != 0x09 }) { throw .controlCharacter }
            if text.utf8.contains(UInt8(ascii: ";")) { throw .separator }
        }
        if cookie.name.utf8.contains(UInt8(ascii: "=")) { throw .separator }
        if [cookie.name, cookie.value].contains(where: { $0.first?.isSpace == true || $0.last?.isSpace == true }) {
            throw .separator
        }
        guard domainKey(cookie.domain) == cookie.domain else { throw .invalidDomain }
        guard cookie.path.utf8.first == UInt8(ascii: "/") else { throw .invalidPath }
        if !cookie.isHostOnly, HostName.isAddress(cookie.domain) { throw .invalidDomain }
        // Without the list, only top-level domains are known to be public suffixes.
        let isSuffix = suffixes?.separatesOwners(cookie.domain) ?? !cookie.domain.utf8.contains(UInt8(ascii: "."))
        if !cookie.isHostOnly, isSuffix { throw .publicSuffix }
        try check(cookie, hasPath: true)
    }

    /// A prefix of a name, which requires attributes (§4.1.3).
    private enum Prefix: String, CaseIterable {
        // The longer prefix is before the one with which it begins.
        case hostHTTP = "__host-http-"
        case host = "__host-"
        case http = "__http-"
        case secure = "__secure-"

        private init?(of text: String) {
            let start = String(decoding: text.utf8.prefix(12).map(\.asciiLowercased), as: UTF8.self)
            guard let prefix = Prefix.allCases.first(where: { start.hasPrefix($0.rawValue) }) else { return nil }
            self = prefix
        }

        /// Whether a cookie has the attributes that its prefix requires.
        static func isSatisfied(by cookie: Cookie, hasPath: Bool) -> Bool {
            // A server reads a value without a name as a name.
            if cookie.name.isEmpty { return Prefix(of: cookie.value) == nil }
            let isForHost = cookie.isHostOnly && cookie.path == "/" && hasPath
            return switch Prefix(of: cookie.name) {
            case nil: true
            case .secure: cookie.isSecure
            case .http: cookie.isSecure && cookie.isHTTPOnly
            case .host: cookie.isSecure && isForHost
            case .hostHTTP: cookie.isSecure && cookie.isHTTPOnly && isForHost
            }
        }
    }
}

extension Character {
    fileprivate var isSpace: Bool { self == " " || self == "\t" }
}
