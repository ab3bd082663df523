// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew

/// Requests a resource of several servers with the default trust, whose roots the environment names.
struct DefaultTrustScene {
    struct Result: Codable {
        /// The outcome for each server, from a session without an evaluator: the status, the rule that refuses the
        /// server, or the code of another error.
        var session: [String]
        /// The same outcomes from the shared session.
        var shared: [String]
        /// The same outcomes from a session with other roots, for requests with `SystemTrust`.
        var request: [String]
    }

    let origins: [String]

    func run() async -> Result {
        let other = Session(trust: CustomRoots(.only([])))
        return Result(
            session: await outcomes(of: Session()), shared: await outcomes(of: Session.shared),
            request: await outcomes(of: other, SystemTrust()))
    }

    private func outcomes(of session: Session, _ trust: (any TrustEvaluator)? = nil) async -> [String] {
        var results: [String] = []
        for origin in origins {
            var request = Request(.get, origin + "/data")
            request.trust = trust
            do throws(NetworkError) {
                let (_, head) = try await session.data(for: request)
                results.append("\(head.status.code)")
            } catch {
                results.append((error.cause as? TrustFailure)?.rule.rawValue ?? error.code)
            }
        }
        return results
    }
}
