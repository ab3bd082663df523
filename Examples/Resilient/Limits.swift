// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Requests that are delayed or not sent: rate limits, quotas and circuit breakers.

import Curlew
import CurlewTesting

extension Resilient {
    static func limits(_ stage: inout Stage) async {
        await stage.show("a rate", "6 requests within 0.3 s to 1 s") { stage in
            let server = try stage.server(.fine)
            let session = Session(interceptors: [.rateLimit(requests: 10, per: .seconds(1), burst: 3)])
            let request = Request(server.url("/"))
            let start = ContinuousClock.now
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<6 { group.addTask { _ = try await session.data(for: request) } }
                try await group.waitForAll()
            }
            let time = ContinuousClock.now - start
            let isRight = time >= .milliseconds(299) && time < .seconds(1)
            return "\(server.requestCount) requests within \(isRight ? "0.3 s to 1 s" : "\(time)")"
        }
        await stage.show("a server that is busy", "429, then 4 others wait 1 s and get 200") { stage in
            let server = try stage.server(.busy(429, after: 1), .fine)
            let session = Session(interceptors: [.rateLimit()])
            let request = Request(server.url("/"))
            let first = try await session.data(for: request).1.status.code
            let start = ContinuousClock.now
            let others = try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<4 { group.addTask { try await session.data(for: request).1.status.code } }
                return try await group.reduce(into: Set<Int>()) { $0.insert($1) }
            }
            let wait = (ContinuousClock.now - start).components.seconds
            return "\(first), then 4 others wait \(wait) s and get \(others.map { "\($0)" }.joined())"
        }
        await stage.show("a used-up quota", "200, then timed out at once: again in 3600 s") { stage in
            let server = try stage.server(
                MockResponse.fine.field("X-RateLimit-Remaining", "0").field("X-RateLimit-Reset", "3600"))
            let session = Session(interceptors: [.rateLimit()])
            let request = Request(server.url("/"))
            let first = try await session.data(for: request).1.status.code
            do throws(NetworkError) {
                return "\(first), then \(try await session.data(for: request).1.status.code)"
            } catch {
                let wait = error.retryAfter.map { ($0 + .milliseconds(500)).components.seconds } ?? 0
                return "\(first), then \(error.kind) at once: again in \(wait) s"
            }
        }
        await stage.show("a circuit", "500, 500, circuit open, fine") { stage in
            let server = try stage.server(.busy(500), .busy(500), .fine)
            let session = Session(interceptors: [.circuitBreaker(failures: 2, cooldown: .milliseconds(200))])
            let request = Request(server.url("/"))
            var results: [String] = []
            for _ in 0..<3 {
                do throws(NetworkError) {
                    results.append("\(try await session.data(for: request).1.status.code)")
                } catch {
                    results.append("\(error.kind)")
                    try await Task.sleep(for: error.retryAfter ?? .zero)
                }
            }
            let (data, _) = try await session.data(for: request)
            return (results + [String(decoding: data, as: UTF8.self)]).joined(separator: ", ")
        }
    }
}
