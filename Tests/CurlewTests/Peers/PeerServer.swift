// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewEngine
import CurlewTesting
import FoundationEssentials

/// The kinds of listeners of a peer, each with a port of its own.
enum PeerListener: CaseIterable, Sendable {
    /// HTTP/1.1 without TLS.
    case plain
    /// TLS with HTTP/2 and HTTP/1.1, by ALPN.
    case secure
    /// HTTP/2 without TLS, with prior knowledge.
    case priorKnowledge
    /// TLS with HTTP/1.1 only.
    case http1Only
}

/// A running peer.
protocol PeerServer: Sendable {
    var instance: PeerInstance { get }
}

extension PeerServer {
    /// Returns the http URL of a path.
    func url(_ path: String) -> String { url(.plain, path) }

    /// Returns the https URL of a path.
    func secureURL(_ path: String) -> String { url(.secure, path) }

    /// Returns the URL of a path at a listener, which the peer must have.
    func url(_ listener: PeerListener, _ path: String) -> String {
        let port = instance.ports[listener] ?? 0
        let isSecure = listener == .secure || listener == .http1Only
        return (isSecure ? "https://localhost:" : "http://127.0.0.1:") + "\(port)\(path)"
    }

    var authority: TestAuthority { instance.authority }

    /// The folder in which uploads to `/upload/…` are stored.
    var uploads: String { "\(instance.folder)/upload" }

    /// Removes a stored upload and returns its length and digest.
    func takeUpload(_ name: String) throws -> (length: Int, sha256: String) {
        let file = URL(filePath: "\(uploads)/\(name)")
        let stored = try Data(contentsOf: file)
        try FileManager.default.removeItem(at: file)
        return (stored.count, SHA256Stream.hex(of: stored))
    }
}

/// A program started in a folder of its own, which is removed when the program ends.
final class PeerInstance: Sendable {
    /// A file of 64 MiB, served by instances with `hasLargeFile`.
    static let large = PatternBody(seed: 64, length: 64 << 20)
    /// A short text that every instance serves.
    static let small = "Served by a peer.\n"
    /// A text of a few hundred KiB that every instance serves.
    static let text = (0..<10_000).map { "Line \($0) of \($0 * $0 % 977) said \($0 % 7).\n" }.joined()

    let authority: TestAuthority
    let folder: String
    let ports: [PeerListener: UInt16]
    private let process: PeerProcess

    /// The path of the large file, if the instance has one.
    var largeFile: String { "\(folder)/files/large.bin" }

    /// Starts the program and returns when it accepts connections.
    ///
    /// - Parameters:
    ///   - mark: The text that the program prints when it is ready.
    ///   - arguments: A closure that writes the files that the program needs and returns the command line.
    init(
        _ peer: Peer, _ listeners: [PeerListener], hasLargeFile: Bool, mark: String,
        arguments: (_ executable: String, _ folder: String, _ ports: [PeerListener: UInt16]) throws -> [String]
    ) throws {
        guard let executable = peer.executable else {
            throw PeerFailure("\(peer.rawValue) is not installed, but CURLEW_REQUIRE_PEERS=1 demands it")
        }
        authority = try TestAuthority()
        var failure = ""
        // Another program may take the port before the peer listens, so retry with other ports.
        for _ in 0..<5 {
            let ports = try Dictionary(uniqueKeysWithValues: listeners.map { ($0, try findFreePort()) })
            let folder = try Self.makeFolder(peer, authority)
            if hasLargeFile { try Data(Self.large.bytes).write(to: URL(filePath: "\(folder)/files/large.bin")) }
            let process = try PeerProcess(arguments(executable, folder, ports), folder: folder)
            guard let output = process.failure(before: mark) else {
                (self.folder, self.ports, self.process) = (folder, ports, process)
                return
            }
            failure = output
        }
        throw PeerFailure("\(peer.rawValue) does not start: \(failure)")
    }

    /// Creates the folder; servers that drop root privileges can store uploads there.
    private static func makeFolder(_ peer: Peer, _ authority: TestAuthority) throws -> String {
        let identity = try authority.issue()
        let name = "curlew-\(peer.rawValue)-\(UUID().uuidString)"
        let folder = FileManager.default.temporaryDirectory.appending(path: name).path
        for name in ["files", "upload", "temporary"] {
            try FileManager.default.createDirectory(
                atPath: "\(folder)/\(name)", withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o777])
            try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: "\(folder)/\(name)")
        }
        let files = [
            "chain.pem": identity.chainPEM, "key.pem": identity.privateKeyPEM, "files/small.txt": small,
            "files/text.txt": text, "ca.pem": authority.certificatePEM,
        ]
        for (name, text) in files { try Data(text.utf8).write(to: URL(filePath: "\(folder)/\(name)")) }
        let ocspResponse = try authority.ocspResponse(for: identity.certificate)
        try Data(ocspResponse).write(to: URL(filePath: "\(folder)/ocsp-response.der"))
        return folder
    }
}

/// The combinations of HTTP version and TLS for requests to a peer.
enum PeerRoute: CaseIterable, Sendable {
    case plain, http1OverTLS, http2, priorKnowledge

    static let http2Only: [PeerRoute] = [.http2, .priorKnowledge]
    static let http1Only: [PeerRoute] = [.plain, .http1OverTLS]

    /// Whether a connection serves more than one request: before 8.0 libcurl fails when it reuses a connection of
    /// HTTP/2 without TLS (curl issue 10634).
    var reusesConnections: Bool { self != .priorKnowledge || CurlVersion.current.sharesPlainHTTP2 }
    var isHTTP2: Bool { self == .http2 || self == .priorKnowledge }
    var isSecure: Bool { self == .http2 || self == .http1OverTLS }
    var version: ResponseHead.HTTPVersion { isHTTP2 ? .http2 : .http1_1 }

    func url(_ server: some PeerServer, _ path: String) -> String {
        switch self {
        case .plain: server.url(.plain, path)
        case .http1OverTLS, .http2: server.url(.secure, path)
        case .priorKnowledge: server.url(.priorKnowledge, path)
        }
    }

    func session(
        _ server: some PeerServer, _ configure: @Sendable (inout Session.Configuration) -> Void = { _ in }
    ) throws -> Session {
        try Session(trust: CustomRoots(pem: server.authority.certificatePEM)) { configuration in
            // The default of a second is too short on a busy machine.
            configuration.http.expectContinueTimeout = .seconds(20)
            if self == .http1OverTLS { configuration.http.version = .http1Only }
            if self == .priorKnowledge { configuration.http.version = .http2PriorKnowledge }
            configure(&configuration)
        }
    }
}
