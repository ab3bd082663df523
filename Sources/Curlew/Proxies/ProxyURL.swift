// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The parts of a proxy's URL, from code or from an environment variable.
///
/// As in curl, a path, a query and a fragment have no meaning and are ignored: many variables end in "/". A URL
/// such as `socks5h://localhost/run/proxy.sock` is invalid: in curl it means a proxy at a Unix socket, which Curlew
/// does not support.
struct ProxyURL: Hashable, Sendable {
    /// The invalid part of a URL; the description shows no password.
    enum Flaw: Error, Hashable, CustomStringConvertible {
        case scheme(String)
        case host
        case port
        case unixSocket
        case userInfo

        var description: String {
            switch self {
            case .scheme(let name): "no proxy has the scheme “\(name.escapingControls)”"
            case .host: "its host is missing or is not valid"
            case .port: "its port is not a number from 1 to 65535"
            case .unixSocket: "a SOCKS proxy at a Unix socket is not supported"
            case .userInfo: "its user name or password is not percent-encoded UTF-8"
            }
        }
    }

    let scheme: Proxy.Scheme
    let host: String
    let port: UInt16
    let user: String?
    let password: String?

    init(_ text: String) throws(Flaw) {
        var rest = Substring(text)
        var scheme = Proxy.Scheme.http
        if let mark = rest.firstRange(of: "://") {
            let name = rest[..<mark.lowerBound].lowercased()
            // Other text before the mark may be a password.
            guard name.utf8.allSatisfy(ByteSet.letters.union(.digits).contains) else { throw .host }
            guard let known = Self.scheme(name) else { throw .scheme(name) }
            scheme = known
            rest = rest[mark.upperBound...]
        }
        self.scheme = scheme
        // The first "/", "?" or "#" ends the authority, even before an "@" (RFC 3986 §3.2).
        let end = rest.utf8.firstIndex(where: ByteSet("/?#").contains) ?? rest.endIndex
        let path = rest[end...].prefix { $0 != "?" && $0 != "#" }
        // Otherwise a part of an unescaped password would be the host.
        if rest[end...].utf8.contains(UInt8(ascii: "@")) { throw .userInfo }
        rest = rest[..<end]
        (user, password) = try Self.takeUserInfo(&rest)
        var host = rest
        var port: Substring?
        if rest.hasPrefix("[") {
            guard let end = rest.firstIndex(of: "]") else { throw .host }
            host = rest[rest.index(after: rest.startIndex)..<end]
            let after = rest[rest.index(after: end)...]
            guard host.contains(":"), after.isEmpty || after.hasPrefix(":") else { throw .host }
            if !after.isEmpty { port = after.dropFirst() }
        } else if let colon = rest.firstIndex(of: ":") {
            (host, port) = (rest[..<colon], rest[rest.index(after: colon)...])
            if host.isEmpty || port?.contains(":") == true { throw .host }
        }
        guard let normal = HostName.key(host) else { throw .host }
        if normal == "localhost", !["", "/"].contains(path), scheme != .http, scheme != .https { throw .unixSocket }
        self.host = normal
        if let port {
            guard port.utf8.allSatisfy(ByteSet.digits.contains), let number = UInt16(port), number > 0 else {
                throw .port
            }
            self.port = number
        } else {
            // These are curl's defaults.
            self.port = scheme == .https ? 443 : 1080
        }
    }

    private static func scheme(_ name: String) -> Proxy.Scheme? {
        name == "socks" ? .socks4 : Proxy.Scheme(rawValue: name)
    }

    private static func takeUserInfo(_ rest: inout Substring) throws(Flaw) -> (String?, String?) {
        guard let at = rest.lastIndex(of: "@") else { return (nil, nil) }
        let parts = rest[..<at].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        rest = rest[rest.index(after: at)...]
        var texts: [String] = []
        for part in parts {
            guard let bytes = part.percentDecoded, let text = String(validating: bytes, as: UTF8.self) else {
                throw .userInfo
            }
            texts.append(text)
        }
        return (texts[0], texts.count > 1 ? texts[1] : nil)
    }
}
