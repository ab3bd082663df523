// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// The program that `make demo-trust` runs: servers with valid and invalid certificates, and the trust policies that
// accept them. Stage.swift has the policies, Servers.swift the servers.

import Curlew
import CurlewTesting
import Glibc

@main
struct PinnedTLS {
    static func main() async {
        do {
            let (stage, session) = (try Stage(), Session())
            let policies = try stage.policies()
            var unexpected = 0
            print(row("the server's certificate", policies.map(\.name)))
            let servers = try stage.servers()
            for shown in servers {
                let verdicts = try await verdicts(on: shown, by: policies, session)
                if verdicts != shown.verdicts { unexpected += 1 }
                print(row(shown.name, verdicts) + (verdicts == shown.verdicts ? "" : " <- unexpected"))
            }
            if try await !explain(policies[1].trust, stage, session) { unexpected += 1 }
            print("\n\(servers.count) servers, \(policies.count) policies, \(unexpected) unexpected results")
            exit(unexpected == 0 ? 0 : 1)
        } catch {
            print("error:", error)
            exit(1)
        }
    }

    /// Sends a request to the server under each policy and returns the verdicts.
    private static func verdicts(
        on shown: ServerCase, by policies: [Stage.Policy], _ session: Session
    ) async throws -> [String] {
        var options = MockServer.Options()
        options.tls.ocspResponse = shown.ocspResponse
        options.tls.securityLevel = 0
        let server = try MockServer(tls: shown.identity, options: options) { _ in .text("hello") }
        var verdicts: [String] = []
        for policy in policies {
            let error = await refusal(of: server.url(), by: policy.trust, session)
            let rule = (error?.cause as? TrustFailure)?.rule.rawValue
            verdicts.append(error.map { rule ?? "\($0.kind)" } ?? "yes")
        }
        // The client must not send a request to a refused server.
        if server.requests.count != verdicts.count(where: { $0 == "yes" }) { verdicts.append("SENT TOO MUCH") }
        return verdicts
    }

    private static func refusal(
        of url: String, by trust: any TrustEvaluator, _ session: Session
    ) async -> NetworkError? {
        var request = Request(.get, url)
        request.trust = trust
        do throws(NetworkError) {
            _ = try await session.data(for: request)
            return nil
        } catch {
            return error
        }
    }

    /// Prints the error of a refused server, which contains pins to paste, and the error of a request without TLS.
    private static func explain(_ pins: any TrustEvaluator, _ stage: Stage, _ session: Session) async throws -> Bool {
        let server = try MockServer(tls: stage.issuer.issue())
        let plain = try MockServer()
        let refused = await refusal(of: server.url("/account?token=secret"), by: pins, session)
        let plainly = await refusal(of: plain.url(), by: pins, session)
        for error in [refused, plainly] { print("\n" + (error?.detailedDescription ?? "accepted!")) }
        return refused?.kind == .untrusted && plainly?.kind == .invalidRequest && plain.connectionCount == 0
    }

    private static func row(_ name: String, _ cells: [String]) -> String {
        let widths = [33] + cells.map { _ in 12 }
        return zip([name] + cells, widths).map { $0 + String(repeating: " ", count: max(1, $1 - $0.count)) }.joined()
    }
}
