// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Peers: servers and tools of other projects. A suite names its peer with the two traits below; it is skipped if the
// peer is not installed, unless CURLEW_REQUIRE_PEERS=1 demands it.

import FoundationEssentials
import Testing

/// A server, tool or library of another project that tests run against; Tests/peers.txt has a line for each that Debian
/// has.
enum Peer: String, Sendable {
    case nginx, nghttpd, apache2, openssl, python3, curl, wget
    case squid, tinyproxy, microsocks, danted, mitmdump
    /// The message bus, with Python's binding of GLib for the programs that use it.
    case dbus = "dbus-daemon"
    /// The program of iproute2, with which tests change the links, addresses and routes of a network namespace.
    case ip
    /// Python libraries, installed as Debian packages.
    case werkzeug, botocore, dnspython
    /// Python libraries that Debian lacks, installed from PyPI.
    case hishel, aioquic
    /// A library that is newer than Debian's, built from the sources on PyPI.
    case brotli

    /// The folder in which Scripts/setup-peers installs Python libraries from PyPI.
    static let pythonFolder = "/usr/local/lib/curlew-peers"
    /// The folder of the libraries for HTTP/3.
    static let http3Folder = "/usr/local/lib/curlew-http3"

    /// The path of the program, or of brotli's library; nil if it is not installed.
    var executable: String? {
        if self == .brotli { return BrotliEncoder.isInstalled ? BrotliEncoder.library : nil }
        if let library {
            return FileManager.default.fileExists(atPath: library) ? "/usr/bin/python3" : nil
        }
        let gi = "/usr/lib/python3/dist-packages/gi"
        if self == .dbus, !FileManager.default.fileExists(atPath: gi) { return nil }
        let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map(String.init)
        return (folders + ["/usr/sbin", "/usr/local/sbin"]).map { "\($0)/\(rawValue)" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    /// The folder of a Python library; nil for another peer.
    private var library: String? {
        switch self {
        case .werkzeug, .botocore: "/usr/lib/python3/dist-packages/\(rawValue)"
        case .dnspython: "/usr/lib/python3/dist-packages/dns"
        case .hishel: "\(Self.pythonFolder)/hishel"
        case .aioquic: "\(Self.http3Folder)/aioquic"
        default: nil
        }
    }

    /// Whether the tests of the peer run; with `CURLEW_REQUIRE_PEERS=1` they run and fail if the peer is missing.
    var isWanted: Bool {
        // PyPI may be unreachable.
        let isFromPyPI = self == .hishel || self == .aioquic || self == .brotli
        return executable != nil || !isFromPyPI && ProcessInfo.processInfo.environment["CURLEW_REQUIRE_PEERS"] == "1"
    }
}

/// An error that happened before a peer was ready.
struct PeerFailure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// Prints a line for each test that ran to its end; .ci/run counts these lines.
struct PeerTrait: SuiteTrait, TestTrait, TestScoping {
    let peer: Peer
    let isRecursive = true

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        try await function()
        if testCase != nil { print("peer-test: \(peer.rawValue) \(test.name.prefix { $0 != "(" })") }
    }
}

extension Trait where Self == PeerTrait {
    /// Marks the tests of a suite as tests against a peer.
    static func peer(_ peer: Peer) -> Self { PeerTrait(peer: peer) }
}

extension Trait where Self == ConditionTrait {
    /// Skips the suite if the peer is not installed.
    static func enabledIfInstalled(_ peer: Peer) -> Self {
        .enabled(if: peer.isWanted, "\(peer.rawValue) is not installed; Scripts/setup-peers installs it")
    }
}
