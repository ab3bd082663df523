// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import FoundationEssentials

/// Measures the memory and descriptors left by a thousand TLS connections, each with a full handshake and its own
/// trust.
struct HandshakeScene {
    struct Result: Codable {
        var outcomes: [String: Int]
        /// Resident memory before and after the connections, in KiB.
        var baseMemory: Int
        var finalMemory: Int
        var base: ProcessFigures
        var final: ProcessFigures
    }

    private let servers: Servers

    init(_ servers: Servers) { self.servers = servers }

    func run() async throws -> Result {
        // Warm up, so that one-time allocations of the process do not count.
        _ = try await handshakes(200)
        let base = await ProcessFigures.atRest()
        let baseMemory = ProcessFigures.trimmed()
        let outcomes = try await handshakes(1000)
        let final = await ProcessFigures.atRest()
        return Result(
            outcomes: outcomes, baseMemory: baseMemory, finalMemory: ProcessFigures.trimmed(), base: base, final: final)
    }

    /// Performs handshakes in a new session and shuts the session down.
    private func handshakes(_ count: Int) async throws -> [String: Int] {
        let session = Session()
        let roots = try TrustRoots.only(Certificate.all(pem: servers.roots))
        var outcomes: [String: Int] = [:]
        for number in 0..<count {
            outcomes[await outcome(of: session, try request(number, roots)), default: 0] += 1
        }
        try await session.shutdown(.graceful(within: .seconds(10)))
        return outcomes
    }

    /// Makes a request; half of the requests are refused, by various rules.
    private func request(_ number: Int, _ roots: TrustRoots) throws -> Request {
        var request = Request(.get, servers.secure + "/closing")
        var digest = [UInt8](repeating: 0, count: 32)
        write(number, into: &digest)
        let chain = PinnedPublicKeys.Chain.required(roots)
        let own = Certificate.PublicKeyHash(of: try Certificate.all(pem: servers.roots)[0])
        let other = try Certificate.PublicKeyHash(sha256: digest)
        switch number % 4 {
        case 0: request.trust = try PinnedPublicKeys([own], backup: other, chain: chain)
        case 1: request.trust = try PinnedPublicKeys([other], withoutBackup: "soak", chain: chain)
        case 2:
            request.trust = try PinnedPublicKeys([own], backup: other, chain: chain)
                .checkingRevocation(ocspResponse: .required)
        default:
            request.trust = try PinnedPublicKeys([own], backup: other, chain: chain)
                .checkingRevocation(ocspResponse: .ifPresent)
        }
        return request
    }

    private func write(_ number: Int, into digest: inout [UInt8]) {
        for place in 0..<8 { digest[place] = UInt8(truncatingIfNeeded: number >> (8 * place)) }
        digest[31] = 1
    }

    private func outcome(of session: Session, _ request: Request) async -> String {
        do throws(NetworkError) {
            return "\(try await session.data(for: request).1.status.code)"
        } catch {
            return (error.cause as? TrustFailure)?.rule.rawValue ?? error.code
        }
    }
}
