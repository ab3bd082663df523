// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

extension Cookie {
    /// The reason why a jar does not store a cookie; its description has no secret.
    ///
    /// ```swift
    /// for refusal in jar.refusals where refusal.reason == .publicSuffix { print(refusal) }
    /// ```
    public struct Refusal: Error, Sendable, Hashable {
        /// The rule that the cookie breaks.
        public enum Reason: String, Sendable, Hashable, Codable, CaseIterable {
            /// The field or the cookie has a control character (RFC 6265bis §5.6, step 1).
            case controlCharacter
            /// Name and value are empty (§5.7, step 3).
            case empty
            /// Name and value have more than 4096 bytes together (§5.7, step 4).
            case tooLong
            /// The name, value or path cannot be sent unchanged: it contains ";", the name or a value without a name
            /// contains "=", or the name or value begins or ends with a space or a tab.
            case separator
            /// The domain is not a valid host (§5.7, step 8).
            case invalidDomain
            /// The path does not begin with "/".
            case invalidPath
            /// The host of the response does not belong to the domain (§5.7, step 10).
            case foreignDomain
            /// The domain is a public suffix, such as "com" or "co.uk" (§5.7, step 9).
            case publicSuffix
            /// A response without TLS sets `Secure`, and its host is not localhost (§5.7, step 13).
            case insecureOrigin
            /// The cookie would hide a secure cookie, but its response has no TLS (§5.7, step 16).
            case hidesSecureCookie
            /// `SameSite=None` requires `Secure` (§5.7, step 19).
            case insecureSameSiteNone
            /// The cookie lacks what the prefix of its name requires: `Secure` for each prefix, `HttpOnly` for
            /// `__Http-` and `__Host-Http-`, `Path=/` and no `Domain` for `__Host-` and `__Host-Http-`; or a cookie
            /// without a name has a prefix in its value (§5.7, steps 20 to 22).
            case brokenPrefix
        }

        /// The rule that the cookie breaks.
        public let reason: Reason
        /// The name of the cookie, at most 100 characters.
        public let name: String
        /// The host of the response, or the domain of a cookie that the program sets; for an invalid URL, the URL.
        public let host: String
        /// The attribute `Domain` of a field, or the domain of a cookie that the program sets; nil without one.
        public let domain: String?

        init(_ reason: Reason, name: String, host: String, domain: String? = nil) {
            self.reason = reason
            self.name = name.shortened(to: 100)
            self.host = host.shortened(to: 253)
            self.domain = domain?.shortened(to: 253)
        }
    }
}

extension Cookie.Refusal: CustomStringConvertible, LocalizedError {
    /// One sentence that names the cookie, the host and the rule.
    public var description: String {
        let cookie = name.isEmpty ? "A cookie" : "The cookie “\(name)”"
        return "\(cookie) of \(host) is not stored: \(reason.explanation(domain))".escapingControls
    }

    /// The description, which is also `localizedDescription`.
    public var errorDescription: String? { description }
}

// The pure steps throw a reason; the jar wraps it in a refusal.
extension Cookie.Refusal.Reason: Error {
    fileprivate func explanation(_ domain: String?) -> String {
        let named = "its domain" + (domain.map { " “\($0)”" } ?? "")
        return switch self {
        case .controlCharacter: "it contains a control character."
        case .empty: "its name and its value are empty."
        case .tooLong: "its name and value together have more than \(CookieRules.maximumCookieLength) bytes."
        case .separator:
            "it contains “;”, its name (or a value without a name) contains “=”, or a space is at an end of name or value."
        case .invalidDomain: "\(named) is not a valid host, or is an address, which has no subdomains."
        case .invalidPath: "its path does not begin with “/”."
        case .foreignDomain: "the host does not belong to \(named)."
        case .publicSuffix: "\(named) is a public suffix, under which others have their own domains."
        case .insecureOrigin: "only a response over https or from localhost can set “Secure”."
        case .hidesSecureCookie: "it would hide a secure cookie, but was received without TLS."
        case .insecureSameSiteNone: "“SameSite=None” requires “Secure”."
        case .brokenPrefix: "it breaks a rule of its prefix, such as “__Secure-” or “__Host-”."
        }
    }
}
