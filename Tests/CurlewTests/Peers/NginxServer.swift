// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Glibc

/// An nginx of our own: static files and uploads, over http and https, with a certificate made for it.
final class NginxServer: Sendable {
    /// A file of 64 MiB that the shared one serves.
    static let large = PatternBody(seed: 64, length: 64 << 20)
    /// A short text that it serves.
    static let small = "Served by nginx.\n"

    /// The one that tests share, unless they look at all its connections.
    static func shared() throws -> NginxServer { try sharedResult.get() }
    private static let sharedResult = Result { try NginxServer(keepAlive: "60s", hasLargeFile: true) }

    let authority: TestAuthority
    /// Where uploads to `/upload/…` are stored.
    var uploads: String { "\(folder)/upload" }

    private let folder: String
    private let ports: (plain: UInt16, secure: UInt16)
    private let process: PeerProcess

    /// Starts it; it accepts connections from then on.
    ///
    /// - Parameters:
    ///   - keepAlive: How long it keeps an idle connection, in its own words.
    ///   - hasLargeFile: Whether it serves the large file too.
    init(keepAlive: String, hasLargeFile: Bool = false) throws {
        guard let executable = Peer.nginx.executable else {
            throw PeerFailure("nginx is not installed, but CURLEW_REQUIRE_PEERS=1 demands it")
        }
        authority = try TestAuthority()
        var failure = ""
        // Between finding a port and listening at it somebody else may take it.
        for _ in 0..<5 {
            let ports = (plain: try findFreePort(), secure: try findFreePort())
            let folder = try Self.makeFolder(authority.issue(), ports, keepAlive: keepAlive)
            if hasLargeFile { try Data(Self.large.bytes).write(to: URL(filePath: "\(folder)/files/large.bin")) }
            let process = try PeerProcess(
                [executable, "-p", folder, "-e", "stderr", "-c", "\(folder)/nginx.conf"], folder: folder)
            guard let output = process.failure(before: "start worker process") else {
                (self.folder, self.ports, self.process) = (folder, ports, process)
                return
            }
            failure = output
        }
        throw PeerFailure("nginx does not start: \(failure)")
    }

    /// The URL of a path by http.
    func url(_ path: String) -> String { "http://127.0.0.1:\(ports.plain)\(path)" }

    /// The URL of a path by https.
    func secureURL(_ path: String) -> String { "https://localhost:\(ports.secure)\(path)" }

    private static func makeFolder(
        _ identity: TestIdentity, _ ports: (plain: UInt16, secure: UInt16), keepAlive: String
    ) throws -> String {
        let folder = FileManager.default.temporaryDirectory.appending(path: "curlew-nginx-\(UUID().uuidString)").path
        for name in ["files", "upload", "temporary"] {
            try FileManager.default.createDirectory(atPath: "\(folder)/\(name)", withIntermediateDirectories: true)
        }
        let text = configuration(folder, ports, keepAlive: keepAlive)
        try Data(text.utf8).write(to: URL(filePath: "\(folder)/nginx.conf"))
        try Data(identity.chainPEM.utf8).write(to: URL(filePath: "\(folder)/chain.pem"))
        try Data(identity.privateKeyPEM.utf8).write(to: URL(filePath: "\(folder)/key.pem"))
        try Data(small.utf8).write(to: URL(filePath: "\(folder)/files/small.txt"))
        return folder
    }

    /// What is logged before the `http` block goes to standard error, where the start is waited for; the rest to a file.
    private static func configuration(
        _ folder: String, _ ports: (plain: UInt16, secure: UInt16), keepAlive: String
    ) -> String {
        """
        daemon off;
        worker_processes 1;
        pid nginx.pid;
        error_log stderr notice;
        \(geteuid() == 0 ? "user root;" : "")
        events { worker_connections 512; }
        http {
            error_log \(folder)/error.log;
            access_log off;
            client_body_temp_path temporary/body;
            proxy_temp_path temporary/proxy;
            fastcgi_temp_path temporary/fastcgi;
            uwsgi_temp_path temporary/uwsgi;
            scgi_temp_path temporary/scgi;
            client_max_body_size 0;
            keepalive_timeout \(keepAlive);
            lingering_close off;
            root \(folder)/files;
            default_type application/octet-stream;
            types { text/plain txt; }
            server {
                listen 127.0.0.1:\(ports.plain);
                listen 127.0.0.1:\(ports.secure) ssl http2;
                ssl_certificate \(folder)/chain.pem;
                ssl_protocols TLSv1.2 TLSv1.3;
                ssl_session_cache shared:tests:1m;
                ssl_certificate_key \(folder)/key.pem;
                location /upload/ { root \(folder); dav_methods PUT; }
                location = /once.txt { alias \(folder)/files/small.txt; keepalive_timeout 0; }
                location = /connections { stub_status; }
            }
        }

        """
    }
}
