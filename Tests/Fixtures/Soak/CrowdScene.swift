// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Glibc

/// Ten thousand concurrent calls on one session to one server in the same process, so the figures include both.
struct CrowdScene {
    struct Result: Codable {
        var successes = 0
        /// The failures by code.
        var failures: [String: Int] = [:]
        /// The peak of resident memory in KiB.
        var peak = 0
        /// The longest reported turn of the loop (more than 100 ms) in milliseconds; 0 without such a turn.
        var longestTurn = 0
        var connections = 0
        var seconds = 0.0
        var processorSeconds = 0.0
    }

    static let count = 10_000

    func run() async throws -> Result {
        var options = MockServer.Options()
        options.requestBodyLimit = 0
        let server = try MockServer(options: options) { _ in .text("hello") }
        let session = Session()
        let events = session.events
        let watcher = Task {
            var longest = Duration.zero
            for await case .slowTurn(let turn) in events { longest = max(longest, turn) }
            return longest
        }
        var result = Result()
        let began = ContinuousClock.now
        await withTaskGroup(of: String?.self) { group in
            for _ in 0..<Self.count {
                group.addTask {
                    do throws(NetworkError) {
                        let (body, head) = try await session.data(for: Request(server.url("/")))
                        return head.status == .ok && body.count == 5 ? nil : "\(head.status.code)"
                    } catch {
                        return error.code
                    }
                }
            }
            for await failure in group {
                if let failure { result.failures[failure, default: 0] += 1 } else { result.successes += 1 }
            }
        }
        result.seconds = began.duration(to: .now) / .seconds(1)
        result.peak = ProcessFigures.memory("VmHWM")
        result.connections = server.connectionCount
        try await session.shutdown(.immediate)
        result.longestTurn = Int(await watcher.value / .milliseconds(1))
        result.processorSeconds = Double(clock()) / Double(CLOCKS_PER_SEC)
        return result
    }
}
