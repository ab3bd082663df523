// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
// Cookies (RFC 6265bis) in separate steps: parse a Set-Cookie field, store a cookie, retrieve cookies for a request.
// These steps are pure. The jar puts a lock around them, and the interceptor connects the jar with requests.

public import FoundationEssentials

/// A cookie: a name and a value, and the requests that it is sent with.
///
/// A ``CookieJar`` makes cookies from `Set-Cookie` fields. Create one yourself to add it to a jar:
///
/// ```swift
/// try jar.set(Cookie("theme", "dark", host: "example.com"))
/// for cookie in jar.cookies { print(cookie.name, cookie.expires.map { "\($0)" } ?? "until the end of the session") }
/// ```
public struct Cookie: Sendable, Hashable {
    /// A value of the `SameSite` attribute (RFC 6265bis §5.6.7).
    ///
    /// A jar and a JSON file keep it, a Netscape file does not. It restricts no request, because a program has no site
    /// of its own.
    public enum SameSite: String, Sendable, Hashable, Codable, CaseIterable {
        /// Only for requests within the site.
        case strict
        /// Also for navigation from other sites.
        case lax
        /// For all requests; a jar refuses such a cookie without `isSecure`.
        case unrestricted = "none"
    }

    /// The name; empty for a cookie without a name.
    public let name: String
    /// The value, which is often a secret; descriptions do not show it.
    public let value: String
    /// The host that gets the cookie, in lower case and as A-labels; without a dot at its start.
    public let domain: String
    /// Whether only `domain` itself gets the cookie; otherwise its subdomains get it, too.
    public let isHostOnly: Bool
    /// The start of the paths that get the cookie, such as "/" or "/account".
    public let path: String
    /// Whether the cookie is sent only over https; http to localhost counts as https.
    public let isSecure: Bool
    /// Whether the server asks to hide the cookie from scripts; it does not restrict requests.
    public let isHTTPOnly: Bool
    /// The `SameSite` attribute; nil without one.
    public let sameSite: SameSite?
    /// The expiry, in whole seconds; nil for a session cookie.
    public let expires: Date?
    /// The time of the receipt, or of the call of the initializer.
    ///
    /// A cookie that replaces a stored one keeps its creation time. Cookies with longer paths are sent first; among
    /// equally long ones, the older. A Netscape file has no creation times: its cookies get the time of reading.
    public let created: Date

    /// Creates a cookie for one host, without its subdomains.
    ///
    /// The initializer checks nothing; ``CookieJar/set(_:)`` refuses an invalid cookie.
    /// - Parameters:
    ///   - name: The name.
    ///   - value: The value.
    ///   - host: The host that gets the cookie.
    ///   - path: The start of the paths that get the cookie; all paths unless given.
    ///   - isSecure: Whether the cookie is sent only over https, or to localhost; true unless given.
    ///   - isHTTPOnly: Whether it is hidden from scripts; true unless given.
    ///   - sameSite: The `SameSite` attribute; nil unless given.
    ///   - expires: The time of its expiry; nil, a session cookie, unless given.
    public init(
        _ name: String, _ value: String, host: String, path: String = "/", isSecure: Bool = true,
        isHTTPOnly: Bool = true, sameSite: SameSite? = nil, expires: Date? = nil
    ) {
        self.init(
            name: name, value: value, domain: HostName.key(host) ?? host, isHostOnly: true, path: path,
            isSecure: isSecure, isHTTPOnly: isHTTPOnly, sameSite: sameSite, expires: expires)
    }

    /// Creates a cookie for a domain and all its subdomains.
    ///
    /// The initializer checks nothing; ``CookieJar/set(_:)`` refuses an invalid cookie.
    /// - Parameters:
    ///   - name: The name.
    ///   - value: The value.
    ///   - domain: The domain; a dot at its start is ignored.
    ///   - path: The start of the paths that get the cookie; all paths unless given.
    ///   - isSecure: Whether the cookie is sent only over https, or to localhost; true unless given.
    ///   - isHTTPOnly: Whether it is hidden from scripts; true unless given.
    ///   - sameSite: The `SameSite` attribute; nil unless given.
    ///   - expires: The time of its expiry; nil, a session cookie, unless given.
    public init(
        _ name: String, _ value: String, domain: String, path: String = "/", isSecure: Bool = true,
        isHTTPOnly: Bool = true, sameSite: SameSite? = nil, expires: Date? = nil
    ) {
        let domain = domain.hasPrefix(".") ? String(domain.dropFirst()) : domain
        self.init(
            name: name, value: value, domain: HostName.key(domain) ?? domain, isHostOnly: false, path: path,
            isSecure: isSecure, isHTTPOnly: isHTTPOnly, sameSite: sameSite, expires: expires)
    }

    init(
        name: String, value: String, domain: String, isHostOnly: Bool, path: String, isSecure: Bool, isHTTPOnly: Bool,
        sameSite: SameSite?, expires: Date?, created: Date = Date()
    ) {
        self.name = name
        self.value = value
        self.domain = domain
        self.isHostOnly = isHostOnly
        self.path = path
        self.isSecure = isSecure
        self.isHTTPOnly = isHTTPOnly
        self.sameSite = sameSite
        self.expires = expires.map(\.inWholeSeconds)
        self.created = Date(microseconds: created.microseconds)
    }
}

extension Cookie {
    /// Whether the cookie has no expiry, so that it belongs to the session in which it was set.
    public var isSession: Bool { expires == nil }

    /// The identity of a cookie: a jar has at most one cookie with this name, domain, host-only flag and path
    /// (RFC 6265bis §5.7, step 23).
    struct Key: Hashable, Sendable {
        let name: String
        let domain: String
        let isHostOnly: Bool
        let path: String

        // Bytes are compared: for Swift, strings of different bytes can be equal.
        static func == (one: Key, other: Key) -> Bool {
            one.isHostOnly == other.isHostOnly && one.name.utf8.elementsEqual(other.name.utf8)
                && one.path.utf8.elementsEqual(other.path.utf8) && one.domain.utf8.elementsEqual(other.domain.utf8)
        }

        func hash(into hasher: inout Hasher) {
            hasher.combine(isHostOnly)
            for text in [name, domain, path] {
                for byte in text.utf8 { hasher.combine(byte) }
                hasher.combine(0xFF as UInt8)
            }
        }
    }

    var key: Key { Key(name: name, domain: domain, isHostOnly: isHostOnly, path: path) }

    func isExpired(at now: Date) -> Bool { expires.map { $0 <= now } ?? false }

    /// The text of the cookie in a `Cookie` field (RFC 6265bis §5.8.3).
    var pair: String { name.isEmpty ? value : "\(name)=\(value)" }

    /// Returns the cookie with another creation time.
    func with(created: Date) -> Cookie { with(expires: expires, created: created) }

    /// Returns the cookie with the latest expiry that is allowed, if its own is later (RFC 6265bis §5.5).
    func limited(at now: Date) -> Cookie {
        guard let expires else { return self }
        return with(expires: min(expires, now.addingTimeInterval(Double(CookieRules.longestAge))), created: created)
    }

    private func with(expires: Date?, created: Date) -> Cookie {
        Cookie(
            name: name, value: value, domain: domain, isHostOnly: isHostOnly, path: path, isSecure: isSecure,
            isHTTPOnly: isHTTPOnly, sameSite: sameSite, expires: expires, created: created)
    }
}

extension Date {
    /// The date rounded up to a whole second, between the distant past and future; NaN becomes the distant future.
    var inWholeSeconds: Date {
        guard self > .distantPast else { return self.timeIntervalSince1970.isNaN ? .distantFuture : .distantPast }
        return Date(timeIntervalSince1970: min(self, .distantFuture).timeIntervalSince1970.rounded(.up))
    }

    /// Microseconds since 1970, from which `init(microseconds:)` makes the same time again.
    var microseconds: Int64 {
        let time = max(.distantPast, min(self, .distantFuture))
        return Int64((time.timeIntervalSinceReferenceDate * 1e6).rounded()) + Self.referenceMicroseconds
    }

    /// Creates a time; one that no calendar has becomes the distant past or the distant future.
    init(microseconds: Int64) {
        let limits = Date.distantPast.microseconds...Date.distantFuture.microseconds
        let limited = min(max(microseconds, limits.lowerBound), limits.upperBound)
        self.init(timeIntervalSinceReferenceDate: Double(limited - Self.referenceMicroseconds) / 1e6)
    }

    /// The microseconds from 1970 to 2001.
    private static let referenceMicroseconds: Int64 = 978_307_200_000_000
}

extension Cookie: CustomStringConvertible, CustomReflectable {
    /// One line such as "sid=<redacted>; Domain=example.com; Path=/; Secure", without the value.
    public var description: String {
        var parts = ["\(name)=\(redaction)", isHostOnly ? "Host=\(domain)" : "Domain=\(domain)", "Path=\(path)"]
        if let expires { parts.append("Expires=\(HTTPDate(expires))") }
        if isSecure { parts.append("Secure") }
        if isHTTPOnly { parts.append("HttpOnly") }
        if let sameSite { parts.append("SameSite=\(sameSite.rawValue)") }
        return parts.joined(separator: "; ").escapingControls
    }

    /// The description alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": description], displayStyle: .struct) }
}
