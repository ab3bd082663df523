// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing

@testable import Curlew

/// A proxy of another project, which runs in a folder of its own.
///
/// The password of the user anna is "open sesame".
struct ProxyPeer: PeerServer {
    /// The proxies with the ways to reach them.
    enum Kind: CaseIterable, Sendable {
        case squid, tinyproxy, apache, microsocks, dante

        var peer: Peer {
            switch self {
            case .squid: .squid
            case .tinyproxy: .tinyproxy
            case .apache: .apache2
            case .microsocks: .microsocks
            case .dante: .danted
            }
        }

        var isSOCKS: Bool { self == .microsocks || self == .dante }
        /// Whether the proxy has a listener that requires credentials.
        var requiresCredentials: Bool { self != .dante }
    }

    let kind: Kind
    let instance: PeerInstance

    /// Starts a proxy; the listener `plain` requires no credentials, `http1Only` requires them, and `secure` has TLS.
    init(_ kind: Kind) throws {
        self.kind = kind
        let listeners: [PeerListener] = kind == .apache ? [.plain, .secure, .http1Only] : [.plain, .http1Only]
        instance = try PeerInstance(kind.peer, listeners, hasLargeFile: false, mark: kind.mark) {
            executable, folder, ports in
            func port(_ listener: PeerListener) -> String { "\(ports[listener] ?? 0)" }
            try Data("anna:$apr1$curlew$qVLYbZPMoIWIlogXx8VPT1\n".utf8).write(to: URL(filePath: "\(folder)/passwords"))
            try Data("anna:open sesame\n".utf8).write(to: URL(filePath: "\(folder)/digests"))
            let text = kind.configuration(folder, port(.plain), port(.http1Only), port(.secure))
            let open = "Port \(port(.plain))\nListen 127.0.0.1\nMaxClients 50\n"
            try Data(open.utf8).write(to: URL(filePath: "\(folder)/other.conf"))
            try Data(text.utf8).write(to: URL(filePath: "\(folder)/proxy.conf"))
            return kind.command(executable, folder, port(.plain), port(.http1Only))
        }
    }

    /// The URL of the proxy, without or with credentials.
    func proxy(_ credentials: Proxy.Credentials? = nil, isProtected: Bool = false) throws -> Proxy {
        let port = instance.ports[isProtected ? .http1Only : .plain] ?? 0
        return try Proxy("\(kind.isSOCKS ? "socks5h" : "http")://127.0.0.1:\(port)", credentials)
    }

    /// The lines of the log of requests.
    var log: String {
        (try? String(contentsOf: URL(filePath: "\(instance.folder)/temporary/access.log"), encoding: .utf8)) ?? ""
    }
}

extension ProxyPeer.Kind {
    fileprivate var mark: String {
        switch self {
        case .squid: "Accepting HTTP Socket connections"
        case .tinyproxy: "Accepting connections"
        case .apache: "resuming normal"
        case .microsocks: "curlew starts"
        case .dante: "running"
        }
    }

    fileprivate func command(_ program: String, _ folder: String, _ plain: String, _ protected: String) -> [String] {
        switch self {
        case .squid: [program, "-N", "-d", "1", "-f", "\(folder)/proxy.conf"]
        case .tinyproxy:
            [
                "/bin/sh", "-c", "\"$0\" -d -c \"$1/other.conf\" > /dev/null & exec \"$0\" -d -c \"$1/proxy.conf\"",
                program,
                folder,
            ]
        case .apache: [program, "-DFOREGROUND", "-f", "\(folder)/proxy.conf"]
        case .microsocks:
            [
                "/bin/sh", "-c",
                "\"$0\" -i 127.0.0.1 -p \"$1\" & echo curlew starts; exec \"$0\" -i 127.0.0.1 -p \"$2\" -u anna -P 'open sesame'",
                program, plain, protected,
            ]
        case .dante: [program, "-f", "\(folder)/proxy.conf"]
        }
    }

    fileprivate func configuration(
        _ folder: String, _ plain: String, _ protected: String, _ secure: String
    ) -> String {
        switch self {
        case .squid:
            """
            http_port 127.0.0.1:\(plain) name=open
            http_port 127.0.0.1:\(protected) name=protected
            auth_param digest program /usr/lib/squid/digest_file_auth \(folder)/digests
            auth_param digest realm staff
            auth_param basic program /usr/lib/squid/basic_ncsa_auth \(folder)/passwords
            auth_param basic realm staff
            acl users proxy_auth REQUIRED
            acl open myportname open
            acl forbidden dstdomain forbidden.test
            http_access deny forbidden
            http_access allow open
            http_access allow users
            http_access deny all
            logformat curlew %rm %ru %>Hs "%{Authorization}>h" "%{Proxy-Authorization}>h"
            access_log stdio:\(folder)/temporary/access.log curlew
            cache_log \(folder)/temporary/cache.log
            pid_filename \(folder)/temporary/squid.pid
            coredump_dir \(folder)/temporary
            visible_hostname localhost
            cache deny all
            shutdown_lifetime 0 seconds
            pinger_enable off

            """
        case .tinyproxy:
            """
            Port \(protected)
            Listen 127.0.0.1
            Timeout 60
            MaxClients 50
            BasicAuth anna sesame
            LogLevel Info

            """
        case .apache: apache(folder, plain, protected, secure)
        case .microsocks: ""
        case .dante:
            """
            logoutput: stdout
            internal: 127.0.0.1 port = \(plain)
            external: lo
            clientmethod: none
            socksmethod: none
            \(geteuid() == 0 ? "user.privileged: root\nuser.unprivileged: www-data" : "")
            client pass { from: 127.0.0.0/8 to: 0.0.0.0/0 }
            socks block { from: 0.0.0.0/0 to: forbidden.test }
            socks pass { from: 127.0.0.0/8 to: 0.0.0.0/0 }

            """
        }
    }

    private func apache(_ folder: String, _ plain: String, _ protected: String, _ secure: String) -> String {
        let modules = [
            "mpm_event", "authz_core", "authn_core", "authn_file", "authz_user", "authz_host", "auth_basic", "ssl",
            "socache_shmcb", "proxy", "proxy_http", "proxy_connect",
        ]
        func host(_ port: String, _ rules: String, isSecure: Bool = false) -> String {
            """
            Listen 127.0.0.1:\(port)
            <VirtualHost 127.0.0.1:\(port)>
                SSLEngine \(isSecure ? "on" : "off")
                ProxyRequests On
                <Proxy "*">
                    \(rules)
                </Proxy>
            </VirtualHost>

            """
        }
        let users =
            "AuthType Basic\nAuthName staff\nAuthBasicProvider file\nAuthUserFile \(folder)/passwords\nRequire valid-user"
        return """
            \(ApacheConfiguration.base(folder, modules: modules))
            AllowCONNECT 1-65535
            LogFormat "%r %>s \\"%{Authorization}i\\" \\"%{Proxy-Authorization}i\\"" curlew
            CustomLog \(folder)/temporary/access.log curlew
            \(host(plain, "Require all granted"))
            \(host(protected, users))
            \(host(secure, "Require all granted", isSecure: true))

            """
    }
}
