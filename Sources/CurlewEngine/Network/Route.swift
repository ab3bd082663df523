// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import CurlewSupport

/// The path of connections to a server: through a proxy, over a Unix socket, or with a traffic class.
///
/// A direct connection without a traffic class has no route. A session has one object for each route. A trust domain
/// has one route, so requests over different routes never share a connection, and a handle gets the options of its
/// route only once.
package final class Route: Sendable {
    /// The target of the connections of a route.
    package enum Hop: Sendable {
        /// The server itself; the route sets only a traffic class.
        case server
        case proxy(Proxy)
        /// A Unix socket; an abstract socket has a name and no file (unix(7)).
        case socket(path: String, isAbstract: Bool)
    }

    /// The parameters of a proxy.
    package struct Proxy: Sendable {
        package enum Scheme: String, Sendable, CaseIterable { case http, https, socks4, socks4a, socks5, socks5h }

        package var scheme: Scheme
        package var host: String
        package var port: UInt16
        /// Whether an HTTP proxy also opens a tunnel for requests without TLS; SOCKS proxies always open a tunnel.
        package var tunnels = false
        package var user: String?
        package var password: String?
        /// Whether the engine sends a digest of the name and the password (RFC 7616).
        package var usesDigest = false
        /// The fields that only the proxy receives; nil without fields.
        package var lines: HeaderLines?
        /// The trust domain whose judge and identity apply to the TLS handshake with an https proxy.
        package var trust: TrustDomain?

        package init(_ scheme: Scheme, host: String, port: UInt16) {
            self.scheme = scheme
            self.host = host
            self.port = port
        }

        /// Whether the proxy is an HTTP proxy; false for a SOCKS proxy.
        package var isHTTP: Bool { scheme == .http || scheme == .https }

        /// Whether this machine looks up the server's name, because the proxy accepts only addresses.
        var needsServerAddress: Bool { scheme == .socks4 || scheme == .socks5 }
    }

    package let hop: Hop
    /// The value of the IPv4 TOS or IPv6 traffic class byte (RFC 2474); 0 leaves it unset.
    package let trafficClass: UInt8
    /// A unique number for the order of origins; an origin without a route has 0.
    let number = curlew_next_id()

    package init(_ hop: Hop, trafficClass: UInt8 = 0) {
        self.hop = hop
        self.trafficClass = trafficClass
    }

    package var proxy: Proxy? { if case .proxy(let proxy) = hop { proxy } else { nil } }

    /// Whether connections use a Unix socket, which has neither an address nor a port.
    var isSocket: Bool { socketName != nil }

    /// The path of the Unix socket, or "@" and the name of an abstract socket; nil for other routes.
    package var socketName: String? {
        if case .socket(let path, let isAbstract) = hop { isAbstract ? "@" + path : path } else { nil }
    }

    /// Whether an HTTP proxy forwards requests instead of opening a tunnel.
    ///
    /// Forwarded requests to different servers share connections to the proxy.
    package func forwards(isSecure: Bool) -> Bool {
        guard let proxy, proxy.isHTTP else { return false }
        return !isSecure && !proxy.tunnels
    }

    // MARK: Options of libcurl

    /// Sets the options of the route on a new handle; without these options libcurl connects directly.
    func apply(to curl: UnsafeMutableRawPointer, _ tls: EngineConfiguration.TLS) {
        switch hop {
        case .server: break
        case .socket(let path, let isAbstract):
            _ = curlew_set_string(curl, isAbstract ? CURLOPT_ABSTRACT_UNIX_SOCKET : CURLOPT_UNIX_SOCKET_PATH, path)
        case .proxy(let proxy): apply(proxy, to: curl, tls)
        }
    }

    private func apply(_ proxy: Proxy, to curl: UnsafeMutableRawPointer, _ tls: EngineConfiguration.TLS) {
        let url = "\(proxy.scheme.rawValue)://\(authority(proxy.host, proxy.port))"
        _ = curlew_set_string(curl, CURLOPT_PROXY, url)
        _ = curlew_set_long(curl, CURLOPT_HTTPPROXYTUNNEL, proxy.tunnels ? 1 : 0)
        _ = curlew_set_long(curl, CURLOPT_HEADEROPT, Int(CURLHEADER_SEPARATE))
        if let lines = proxy.lines { _ = curlew_set_pointer(curl, CURLOPT_PROXYHEADER, lines.list) }
        // Disable libcurl's other method, GSSAPI: it would search for credentials of the user.
        _ = curlew_set_long(curl, CURLOPT_SOCKS5_AUTH, curlew_auth_basic)
        if let user = proxy.user {
            let method = proxy.usesDigest ? curlew_auth_digest : curlew_auth_basic
            _ = curlew_set_long(curl, CURLOPT_PROXYAUTH, method)
            _ = curlew_set_string(curl, CURLOPT_PROXYUSERNAME, user)
            _ = curlew_set_string(curl, CURLOPT_PROXYPASSWORD, proxy.password ?? "")
        }
        guard proxy.scheme == .https else { return }
        // Only the judge decides on trust, as for servers; see `EasyHandle.setConstants()`.
        _ = curlew_set_long(curl, CURLOPT_PROXY_SSL_VERIFYPEER, 1)
        _ = curlew_set_long(curl, CURLOPT_PROXY_SSL_VERIFYHOST, 0)
        _ = curlew_set_string(curl, CURLOPT_PROXY_CAINFO, nil)
        _ = curlew_set_string(curl, CURLOPT_PROXY_CAPATH, nil)
        _ = curlew_set_long(curl, CURLOPT_PROXY_SSLVERSION, tls.versions)
    }
}
