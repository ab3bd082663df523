// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Proxies: rules, the environment or a closure select the proxy of each request. The rules are pure; libcurl
// communicates with the proxy.

internal import CurlewSupport

/// A server that opens connections to other servers for this machine.
///
/// Environment variables usually name the proxies of a program, and a ``Session`` reads these variables by default; see
/// ``Proxy/Policy``. Create a value to set a proxy in code.
///
/// For an https request, an HTTP proxy opens a tunnel (CONNECT, RFC 9110 §9.3.6) and cannot read the request. An HTTP
/// proxy forwards a request without TLS, and can read all of it. SOCKS proxies tunnel every request.
///
/// The session's trust evaluators and pins judge only the server behind the proxy. Only the proxy's own ``trust``
/// judges the certificate of an https proxy.
///
/// ```swift
/// let proxy = try Proxy("http://proxy.example.com:3128", .basic("anna", password))
/// let session = Session { $0.proxy = .always(proxy, except: "localhost, 10.0.0.0/8, .example.com") }
/// ```
public struct Proxy: Sendable {
    /// The protocol between this machine and a proxy.
    public enum Scheme: String, Sendable, Hashable, CaseIterable, Codable {
        /// HTTP without TLS.
        case http
        /// HTTP over TLS: the network cannot read the credentials for the proxy and the names of the servers.
        case https
        /// SOCKS 4: this machine looks up the server's name and sends an IPv4 address to the proxy.
        case socks4
        /// SOCKS 4a: the proxy looks up the server's name.
        case socks4a
        /// SOCKS 5 (RFC 1928): this machine looks up the server's name.
        case socks5
        /// SOCKS 5 (RFC 1928): the proxy looks up the server's name.
        case socks5h
    }

    /// The protocol between this machine and the proxy.
    public let scheme: Scheme
    /// The host of the proxy: a host name of A-labels in lower case, or an IP address.
    public let host: String
    /// The port of the proxy.
    public let port: Int
    /// The name and the password for the proxy; nil for a proxy that requires none.
    ///
    /// The server behind the proxy never receives them.
    public var credentials: Credentials?
    /// Fields that only an HTTP proxy receives, with CONNECT and with forwarded requests; empty unless set.
    ///
    /// `Proxy-Authorization` may be among them, for a token: `proxy.fields[.proxyAuthorization] = "Bearer …"`.
    public var fields: HeaderFields
    /// Whether an HTTP proxy also tunnels requests without TLS; false unless set.
    ///
    /// Many proxies allow tunnels only to port 443.
    public var tunnelsPlainHTTP: Bool
    /// The evaluator of an https proxy's certificate; the system's roots unless set.
    public var trust: any TrustEvaluator
    /// The client certificate for an https proxy that requires one; nil unless set.
    public var identity: ClientIdentity?

    /// Creates a proxy from its URL.
    ///
    /// - Parameters:
    ///   - url: The URL, such as "http://proxy.example.com:3128" or "socks5h://127.0.0.1:1080". As in curl, a URL
    ///     without a scheme names an HTTP proxy, and "socks" means SOCKS 4. The default port is 443 for https and 1080
    ///     for the other schemes. The URL may contain a percent-encoded name and password. A path, a query and a
    ///     fragment are ignored.
    ///   - credentials: The name and the password for the proxy; by default those in the URL.
    ///   - trust: The evaluator of an https proxy's certificate; the system's roots by default.
    ///   - identity: The client certificate for an https proxy that requires one; nil by default.
    /// - Throws: `NetworkError` of kind `invalidRequest` with the flaw `configuration`. The message names the invalid
    ///   part of the URL and shows no password.
    public init(
        _ url: String, _ credentials: Credentials? = nil, trust: any TrustEvaluator = SystemTrust(),
        identity: ClientIdentity? = nil
    ) throws(NetworkError) {
        let parsed: ProxyURL
        do throws(ProxyURL.Flaw) {
            parsed = try ProxyURL(url)
        } catch {
            throw NetworkError(
                invalid: .configuration, "The URL of the proxy is not valid: \(error).",
                hint: "Write it like http://proxy.example.com:3128, https://…, socks4a://… or socks5h://….")
        }
        self.init(parsed)
        if let credentials { self.credentials = credentials }
        self.trust = trust
        self.identity = identity
    }

    init(_ url: ProxyURL) {
        (scheme, host, port) = (url.scheme, url.host, Int(url.port))
        credentials = url.user.map { Credentials(user: $0, password: url.password ?? "", isDigest: false) }
        fields = [:]
        tunnelsPlainHTTP = false
        trust = SystemTrust()
        identity = nil
    }

    /// The URL of the proxy, without credentials.
    public var url: String { "\(scheme.rawValue)://\(authority(host, port))" }
}

extension Proxy {
    /// A name and a password for a proxy; descriptions show neither.
    ///
    /// ```swift
    /// let proxy = try Proxy("http://proxy.example.com:3128", .digest("anna", password))
    /// ```
    public struct Credentials: Sendable, Hashable {
        let user: String
        let password: String
        let isDigest: Bool

        /// Sends the name and the password with the first request (RFC 7617; for SOCKS 5, RFC 1929).
        ///
        /// The network between this machine and the proxy can read both, unless the proxy is an https proxy. A SOCKS 4
        /// proxy receives only the name.
        public static func basic(_ user: String, _ password: String) -> Credentials {
            Credentials(user: user, password: password, isDigest: false)
        }

        /// Sends only a digest of the password, after the proxy has required a digest (RFC 7616).
        ///
        /// For SOCKS proxies this is the same as ``basic(_:_:)``.
        public static func digest(_ user: String, _ password: String) -> Credentials {
            Credentials(user: user, password: password, isDigest: true)
        }

        /// The rule that the name or the password breaks; nil when both are valid in HTTP and SOCKS.
        func brokenRule(for scheme: Scheme) -> String? {
            for text in [user, password]
            where text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) {
                return "the name or the password has a control character"
            }
            guard scheme == .http || scheme == .https else {
                // RFC 1929 §2 has one byte for each length.
                let isLong = user.utf8.count > 255 || password.utf8.count > 255
                return isLong ? "the name or the password is longer than 255 bytes" : nil
            }
            return !isDigest && user.utf8.contains(UInt8(ascii: ":")) ? "the name has a colon" : nil
        }
    }
}

extension Proxy.Credentials: CustomStringConvertible, CustomReflectable {
    /// "<redacted>".
    public var description: String { redaction }

    /// The description alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": redaction], displayStyle: .struct) }
}

extension Proxy: Hashable, CustomStringConvertible, CustomReflectable {
    /// Whether all members are equal.
    public static func == (one: Proxy, other: Proxy) -> Bool {
        one.scheme == other.scheme && one.host == other.host && one.port == other.port
            && one.credentials == other.credentials && one.fields == other.fields
            && one.tunnelsPlainHTTP == other.tunnelsPlainHTTP && one.identity == other.identity
            && AnyHashable(one.trust) == AnyHashable(other.trust)
    }

    /// Hashes the URL and the credentials.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(scheme)
        hasher.combine(host)
        hasher.combine(port)
        hasher.combine(credentials)
    }

    /// The URL, without credentials.
    public var description: String { url }

    /// The description alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": url], displayStyle: .struct) }
}

extension Proxy {
    /// The rule that the credentials or the fields break; nil when the proxy can be used.
    var brokenRule: String? {
        if let rule = credentials?.brokenRule(for: scheme) { return rule }
        for field in fields {
            guard field.name.isValid, HeaderFields.isValidValue(field.value) else {
                return "the field “\(field.name.rawValue.escapingControls)” is not valid"
            }
            if field.name != .proxyAuthorization, Request.ownedFields[field.name] != nil {
                return "Curlew writes the field “\(field.name.rawValue)” itself"
            }
        }
        return nil
    }
}
