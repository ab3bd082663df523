// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

@testable import Curlew

/// An Apache process with static files, uploads and an echo, and with a certificate of its own.
///
/// It uses neither the system's service nor its configuration.
struct ApacheServer: PeerServer {
    /// Returns the server that the tests share.
    static func shared() throws -> ApacheServer { try sharedResult.get() }
    private static let sharedResult = Result { try ApacheServer() }

    /// Whether this Apache has mod_brotli.
    static var hasBrotli: Bool {
        FileManager.default.fileExists(atPath: "\(ApacheConfiguration.modules)/mod_brotli.so")
    }

    let instance: PeerInstance

    init() throws {
        instance = try PeerInstance(
            .apache2, [.plain, .secure, .http1Only, .priorKnowledge], hasLargeFile: true, mark: "resuming normal"
        ) { executable, folder, ports in
            try Data(Self.echo.utf8).write(to: URL(filePath: "\(folder)/echo.lua"))
            try Data(Self.passwords.utf8).write(to: URL(filePath: "\(folder)/passwords"))
            try Data(Self.digests.utf8).write(to: URL(filePath: "\(folder)/digests"))
            try Data(Self.configuration(folder, ports).utf8).write(to: URL(filePath: "\(folder)/httpd.conf"))
            return [executable, "-DFOREGROUND", "-f", "\(folder)/httpd.conf"]
        }
    }

    /// A script that responds with the body of the request.
    private static let echo = """
        function handle(r)
            r.content_type = "application/octet-stream"
            r:write(r:requestbody() or "")
            return apache2.OK
        end

        """

    /// The password "open sesame" of the user anna, in the formats of htpasswd and htdigest.
    private static let passwords = "anna:{SHA}W8r/fyL/UzygmbNAjq2HbA67qac=\n"
    private static let digests = """
        anna:staff:\(MessageDigest.digest(.md5, of: "anna:staff:open sesame".utf8)?.hexadecimal ?? "")

        """

    private static var modules: [String] {
        let names = [
            "mpm_event", "authz_core", "mime", "headers", "alias", "filter", "deflate", "brotli", "dav", "dav_fs",
            "lua", "expires",
            "ssl", "http2", "socache_shmcb", "authn_core", "authn_file", "authz_user", "auth_basic", "auth_digest",
        ]
        return names.filter { $0 != "brotli" || hasBrotli }
    }

    /// Configures the paths `/name` and `/name/upload`, which require a password.
    private static func protected(_ name: String, _ scheme: String, _ rules: String, _ folder: String) -> String {
        """
        Alias /\(name)/upload \(folder)/upload
        Alias /\(name) \(folder)/files
        <Location /\(name)>
            AuthType \(scheme)
            AuthName staff
            \(rules)
            Require valid-user
            Dav on
        </Location>
        """
    }

    private static func configuration(_ folder: String, _ ports: [PeerListener: UInt16]) -> String {
        func virtualHost(_ listener: PeerListener, _ protocols: String) -> String {
            let isSecure = listener == .secure || listener == .http1Only
            return """
                Listen 127.0.0.1:\(ports[listener] ?? 0)
                <VirtualHost 127.0.0.1:\(ports[listener] ?? 0)>
                    Protocols \(protocols)
                    SSLEngine \(isSecure ? "on" : "off")
                </VirtualHost>

                """
        }
        return """
            \(ApacheConfiguration.base(folder, modules: modules))
            ServerLimit 1
            StartServers 1
            ThreadLimit 128
            ThreadsPerChild 128
            MaxRequestWorkers 128
            MinSpareThreads 1
            MaxSpareThreads 128
            LogLevel notice
            TypesConfig /dev/null
            AddType text/plain .txt
            KeepAlive on
            KeepAliveTimeout 60
            MaxKeepAliveRequests 0
            H2MaxSessionStreams 256
            SSLSessionCache shmcb:\(folder)/sessions
            Header always set Peer-Connection "expr=%{REMOTE_PORT}"
            DocumentRoot \(folder)/files
            DavLockDB \(folder)/temporary/locks
            DavMinTimeout 60
            <Directory \(folder)>
                Require all granted
            </Directory>
            Alias /upload \(folder)/upload
            <Location /upload>
                Dav on
            </Location>
            Alias /limited \(folder)/upload
            <Location /limited>
                Dav on
                LimitRequestBody 1000
            </Location>
            LuaMapHandler ^/echo$ \(folder)/echo.lua
            Alias /gzip \(folder)/files
            Alias /brotli \(folder)/files
            <Location /gzip>
                SetOutputFilter DEFLATE
            </Location>
            Alias /cached \(folder)/files
            <Location /cached>
                ExpiresActive on
                ExpiresDefault "access plus 60 seconds"
                AddOutputFilterByType DEFLATE text/plain
            </Location>
            \(hasBrotli ? "<Location /brotli>\nSetOutputFilter BROTLI_COMPRESS\n</Location>" : "")
            \(protected("basic", "Basic", "AuthUserFile \(folder)/passwords", folder))
            \(protected("digest", "Digest", "AuthUserFile \(folder)/digests", folder))
            \(protected("brief", "Digest", "AuthUserFile \(folder)/digests\nAuthDigestNonceLifetime 1", folder))
            \(protected("next", "Digest", "AuthUserFile \(folder)/digests\nAuthDigestNonceLifetime 25", folder))
            \(virtualHost(.plain, "http/1.1"))
            \(virtualHost(.priorKnowledge, "h2c http/1.1"))
            \(virtualHost(.secure, "h2 http/1.1"))
            \(virtualHost(.http1Only, "http/1.1"))

            """
    }
}
