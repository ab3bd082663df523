// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew

/// Uses sessions and releases them without a shutdown.
struct ReleaseScene {
    struct Result: Codable {
        var base: ProcessFigures
        /// The figures while all sessions have open connections, which shows that the figures count them.
        var inUse: ProcessFigures
        var final: ProcessFigures
        /// The number of requests by outcome.
        var outcomes: [String: Int]
    }

    private static let count = 20
    private let servers: Servers

    init(_ servers: Servers) { self.servers = servers }

    func run() async throws -> Result {
        // Warm up, so that descriptors that a process opens only once do not count.
        _ = try await use(2)
        let base = await ProcessFigures.atRest()
        let (inUse, outcomes) = try await use(Self.count)
        let final = await ProcessFigures.atRest()
        return Result(base: base, inUse: inUse, final: final, outcomes: outcomes)
    }

    /// Uses new sessions, releases all of them, and returns the figures before the release and the outcomes.
    private func use(_ count: Int) async throws -> (ProcessFigures, [String: Int]) {
        let trust = try servers.trust
        let sessions = (0..<count).map { _ in Session(trust: trust) }
        var outcomes: [String: Int] = [:]
        for session in sessions {
            for origin in [servers.plain, servers.secure] {
                let (data, head) = try await session.data(for: Request(.get, origin + "/data"))
                outcomes["\(head.status.code) \(data.count)", default: 0] += 1
            }
            // An unused transfer, and one that is left while the server holds back the rest of the body.
            _ = session.transfer(Request(.get, servers.plain + "/data"))
            for try await chunk in session.transfer(Request(.get, servers.plain + "/held")).bytes {
                outcomes["left after \(chunk.count)", default: 0] += 1
                break
            }
        }
        let figures = ProcessFigures.now()
        withExtendedLifetime(sessions) {}
        return (figures, outcomes)
    }
}
