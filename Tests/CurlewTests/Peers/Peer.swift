// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Peers: real servers and tools that others wrote. A suite names its peer with the two traits below; it is skipped where
// that is not installed, unless CURLEW_REQUIRE_PEERS=1 demands it.

import FoundationEssentials
import Testing

/// A real server that tests talk to, or a tool that judges; each has its line in Tests/peers.txt.
enum Peer: String, Sendable {
    case nginx, nghttpd, apache2, openssl, python3
    /// Libraries of Python, as Debian packages them.
    case werkzeug, botocore

    /// Where the program is; nil when it is not installed.
    var executable: String? {
        if self == .werkzeug || self == .botocore {
            let isThere = FileManager.default.fileExists(atPath: "/usr/lib/python3/dist-packages/\(rawValue)")
            return isThere ? "/usr/bin/python3" : nil
        }
        let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map(String.init)
        return (folders + ["/usr/sbin", "/usr/local/sbin"]).map { "\($0)/\(rawValue)" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    /// Whether its tests run: with peers demanded they do, and fail when it is missing.
    var isWanted: Bool {
        executable != nil || ProcessInfo.processInfo.environment["CURLEW_REQUIRE_PEERS"] == "1"
    }
}

/// What went wrong before a peer could be talked to.
struct PeerFailure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// Prints a line for each test that ran to its end, which .ci/run counts.
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
    /// The suite's tests talk to this peer.
    static func peer(_ peer: Peer) -> Self { PeerTrait(peer: peer) }
}

extension Trait where Self == ConditionTrait {
    /// Skips the suite where the peer is not installed.
    static func enabledIfInstalled(_ peer: Peer) -> Self {
        .enabled(if: peer.isWanted, "\(peer.rawValue) is not installed; Scripts/setup-peers installs it")
    }
}
