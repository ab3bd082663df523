// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc

/// An nginx process with static files and uploads, and with a certificate of its own.
struct NginxServer: PeerServer {
    /// The settings that tests change.
    struct Settings {
        /// The time for which an idle connection is kept, in nginx's notation.
        var keepAlive = "60s"
        /// The number of requests that a connection serves.
        var keepAliveRequests = 1000
        var hasLargeFile = false
        /// Whether the server staples an OCSP response and requires client certificates of its own authority.
        var isStrict = false
    }

    /// Returns the server shared by the tests that neither count its connections nor change its settings.
    static func shared() throws -> NginxServer { try sharedResult.get() }
    private static let sharedResult = Result { try NginxServer(Settings(hasLargeFile: true)) }

    let instance: PeerInstance

    init(_ settings: Settings = Settings()) throws {
        instance = try PeerInstance(
            .nginx, PeerListener.allCases, hasLargeFile: settings.hasLargeFile, mark: "start worker process"
        ) { executable, folder, ports in
            let text = Self.configuration(folder, ports, settings)
            try Data(text.utf8).write(to: URL(filePath: "\(folder)/nginx.conf"))
            return [executable, "-p", folder, "-e", "stderr", "-c", "\(folder)/nginx.conf"]
        }
    }

    /// Starts a new worker for new connections; the old worker ends after its pending responses.
    func reload() throws {
        let text = try String(contentsOf: URL(filePath: "\(instance.folder)/nginx.pid"), encoding: .utf8)
        guard let process = pid_t(text.filter(\.isNumber)) else { throw PeerFailure("nginx.pid says \(text)") }
        kill(process, SIGHUP)
    }

    /// Returns the configuration; the log goes to standard error until the server has started, then to a file.
    private static func configuration(
        _ folder: String, _ ports: [PeerListener: UInt16], _ settings: Settings
    ) -> String {
        func listen(_ listener: PeerListener) -> String { "listen 127.0.0.1:\(ports[listener] ?? 0)" }
        return """
            daemon off;
            worker_processes 1;
            pid nginx.pid;
            error_log stderr notice;
            \(geteuid() == 0 ? "user root;" : "")
            events { worker_connections 1024; }
            http {
                error_log \(folder)/error.log;
                access_log off;
                client_body_temp_path temporary/body;
                proxy_temp_path temporary/proxy;
                fastcgi_temp_path temporary/fastcgi;
                uwsgi_temp_path temporary/uwsgi;
                scgi_temp_path temporary/scgi;
                client_max_body_size 0;
                keepalive_timeout \(settings.keepAlive);
                keepalive_requests \(settings.keepAliveRequests);
                http2_max_concurrent_streams 256;
                lingering_close off;
                root \(folder)/files;
                default_type application/octet-stream;
                types { text/plain txt; }
                ssl_certificate \(folder)/chain.pem;
                ssl_certificate_key \(folder)/key.pem;
                ssl_protocols TLSv1.2 TLSv1.3;
                ssl_session_cache shared:tests:1m;
                \(settings.isStrict ? strictness(folder) : "")
                add_header Peer-Connection $connection always;
                server {
                    \(listen(.plain));
                    \(listen(.secure)) ssl http2;
                    \(listen(.priorKnowledge)) http2;
                    \(listen(.http1Only)) ssl;
                    \(locations(folder, ports))
                }
            }

            """
    }

    private static func strictness(_ folder: String) -> String {
        """
        ssl_stapling on;
        ssl_stapling_file \(folder)/ocsp-response.der;
        ssl_client_certificate \(folder)/ca.pem;
        ssl_verify_client on;
        """
    }

    private static func locations(_ folder: String, _ ports: [PeerListener: UInt16]) -> String {
        """
        location /upload/ { root \(folder); dav_methods PUT; }
        location /post/ {
            rewrite ^/post/(.*)$ /upload/$1 break;
            proxy_pass http://127.0.0.1:\(ports[.plain] ?? 0);
            proxy_http_version 1.1;
            proxy_method PUT;
        }
        location /limited/ { root \(folder); dav_methods PUT; client_max_body_size 1k; lingering_close on; }
        location /gzip/ { alias \(folder)/files/; gzip on; gzip_types text/plain; }
        location /cached/ { alias \(folder)/files/; expires 60s; gzip on; gzip_types text/plain; gzip_vary on; }
        location = /answer { return 200 "Answered.\\n"; }
        location = /nothing { return 204; }
        location = /who { return 200 "$ssl_client_s_dn $ssl_protocol"; }
        location = /moved { return 301 /small.txt; }
        location = /elsewhere { absolute_redirect off; return 307 /small.txt; }
        location = /other { return 308 http://127.0.0.1:\(ports[.plain] ?? 0)/small.txt; }
        location = /broken { error_page 503 /small.txt; return 503; }
        location = /paced.bin { alias \(folder)/files/large.bin; limit_rate 2m; }
        location = /once.txt { alias \(folder)/files/small.txt; keepalive_timeout 0; }
        location = /connections { stub_status; }
        """
    }
}
