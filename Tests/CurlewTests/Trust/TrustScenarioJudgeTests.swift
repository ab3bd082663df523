// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import Dispatch
import FoundationEssentials
import Testing

/// Compares the table with the verdicts of `openssl verify` on chains, hosts and lists, each in a new process.
@Suite(.enabledIfInstalled(.openssl), .peer(.openssl), .timeLimit(.minutes(5)))
struct TrustScenarioJudgeTests {
    @Test func chainVerdictsEqualOpenSSL() async throws {
        try await compare(.roots, options: [])
    }

    @Test(arguments: [TrustColumn.revocationCRL, .revocationCRLChain])
    func revocationListVerdictsEqualOpenSSL(_ column: TrustColumn) async throws {
        try await compare(column, options: [column == .revocationCRL ? "-crl_check" : "-crl_check_all"])
    }

    /// Runs all rows with a column in one shell; a row with `differs` must get the opposite verdict.
    private func compare(_ column: TrustColumn, options: [String]) async throws {
        guard let openssl = Peer.openssl.executable else {
            throw PeerFailure("openssl is not installed, but CURLEW_REQUIRE_PEERS=1 demands it")
        }
        // Rows that fail in TLS have no verdict to compare.
        let rows = try TrustScenario.table.get().filter { $0.expect[column] != nil && $0.expect[column] != .failInTLS }
        #expect(rows.count > 20)
        let name = "curlew-openssl-\(UUID().uuidString)"
        let folder = FileManager.default.temporaryDirectory.appending(path: name)
        defer { try? FileManager.default.removeItem(at: folder) }
        for row in rows { try write(row, options: options, to: folder.appending(path: row.id)) }
        try Data(rows.map { "\($0.id)\n" }.joined().utf8).write(to: folder.appending(path: "rows"))
        let process = try PeerProcess(["/bin/sh", "-c", Self.script, openssl, folder.path], folder: folder.path)
        // On another thread, since the read blocks until the process ends.
        let printed = await withCheckedContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(returning: process.failure(before: "\u{0}")) }
        }
        try #require(printed == "")
        for row in rows {
            let said = try String(contentsOf: folder.appending(path: "\(row.id)/said"), encoding: .utf8)
            let accepts = try #require(Self.accepts(said) as Bool?, "\(row.id): \(said)")
            let expected = (row.expect[column] == .accept) == (row.differs == nil)
            #expect(accepts == expected, "\(row.id): \(said)")
        }
        withExtendedLifetime(process) {}
    }

    /// Uses only the roots of the row, and the flags of the chain verification in a handshake.
    private static let script = """
        while read -r row; do
            cd "$1/$row" || exit
            "$0" verify -partial_chain -trusted_first -auth_level 2 -purpose sslserver -no-CApath -no-CAstore \
                -CAfile roots -untrusted served $(cat options) leaf < /dev/null > said 2>&1
            echo $? >> said
        done < "$1/rows"
        """

    private func write(_ row: TrustScenario, options: [String], to folder: URL) throws {
        let chain = try TrustScenarioChain(row)
        var options = options
        options += [row.isAddress ? "-verify_ip" : "-verify_hostname"]
        options += [row.host.hasSuffix(".") ? String(row.host.dropLast()) : row.host]
        if options.count > 2 { options += ["-CRLfile", "lists"] }
        let files = [
            "roots": try chain.roots().map(\.pem).joined(), "served": chain.identity.chainPEM,
            "leaf": chain.identity.certificatePEM, "lists": chain.lists.map(\.pem).joined(),
            "options": options.joined(separator: " "),
        ]
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        for (name, text) in files { try Data(text.utf8).write(to: folder.appending(path: name)) }
    }

    /// Reads the verdict from the output with its status at the end; nil for other output.
    private static func accepts(_ said: String) -> Bool? {
        if said.hasSuffix("leaf: OK\n0\n") { return true }
        return said.contains("verification failed") && said.hasSuffix("\n2\n") ? false : nil
    }
}
