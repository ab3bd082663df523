// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import Glibc

/// Uses https on a machine without root certificates, as in a minimal container.
struct RootlessScene {
    struct Result: Codable {
        /// The rule that refuses the system's roots alone (`system`) or together with other roots (`both`), and the
        /// hint.
        var system: String
        var hint: String
        var both: String
        /// The statuses if other roots replace the system's roots (`instead`) or a second evaluator has them (`any`).
        var instead: Int
        var any: Int
    }

    let servers: Servers

    func run() async throws -> Result {
        setenv("SSL_CERT_FILE", "/nonexistent/roots.pem", 1)
        let own = try Certificate.all(pem: servers.roots)
        let refused = try await refusal(SystemTrust())
        return Result(
            system: refused.rule.rawValue, hint: refused.hint ?? "",
            both: try await refusal(CustomRoots(.systemAnd(own))).rule.rawValue,
            instead: try await status(CustomRoots(.systemOr(own))),
            any: try await status(AnyTrust(SystemTrust(), CustomRoots(own))))
    }

    private func status(_ trust: some TrustEvaluator) async throws -> Int {
        try await Session(trust: trust).data(for: Request(.get, servers.secure + "/data")).1.status.code
    }

    private func refusal(_ trust: some TrustEvaluator) async throws -> TrustFailure {
        do {
            return TrustFailure(.chain, "accepted with \(try await status(trust))")
        } catch let error as NetworkError {
            return error.cause as? TrustFailure ?? TrustFailure(.chain, error.code)
        }
    }
}
