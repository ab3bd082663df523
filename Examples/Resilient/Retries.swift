// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Retries: which requests are retried, when, how often, and the events and errors that result.

import Curlew
import CurlewTesting

extension Resilient {
    /// A policy with two retries and without waits.
    private static var quick: RetryPolicy { RetryPolicy(limit: 2, backoff: .none) }

    static func retries(_ stage: inout Stage) async {
        await stage.show("attempts", "connection lost, again, 503, again, fine") { stage in
            let broken = MockResponse.fine.fault(.close, at: .start)
            let server = try stage.server(broken, .busy(), .fine)
            let transfer = Session { $0.retry = quick }.transfer(Request(server.url("/")))
            let events = transfer.events
            let text = String(decoding: try await transfer.value, as: UTF8.self)
            var results: [String] = []
            for await event in events {
                switch event.kind {
                case .waiting(_, let error):
                    results.append(error.response.map { "\($0.status.code)" } ?? "\(error.kind)")
                case .retried: results.append("again")
                default: break
                }
            }
            return (results + [text]).joined(separator: ", ")
        }
        await stage.show("Retry-After", "200, 1 s later") { stage in
            let server = try stage.server(.busy(429, after: 1), .fine)
            let start = ContinuousClock.now
            let (_, head) = try await Session { $0.retry = quick }.data(for: Request(server.url("/")))
            let seconds = (ContinuousClock.now - start).components.seconds
            return "\(head.status.code), \(seconds) s later"
        }
        await stage.show("a POST", "503 at once; with a key 200") { stage in
            let server = try stage.server(.busy(), .busy(), .fine)
            var policy = quick
            let (_, first) = try await Session { [policy] in $0.retry = policy }.data(
                for: Request(.post, server.url("/")))
            policy.addsIdempotencyKey = true
            let session = Session { [policy] in $0.retry = policy }
            let (_, second) = try await session.data(for: Request(.post, server.url("/")))
            return "\(first.status.code) at once; with a key \(second.status.code)"
        }
        await stage.show("the error of the last attempt", "cannot connect, 3 attempts") { stage in
            let gone = try MockServer()
            let url = gone.url("/")
            gone.stop()
            do throws(NetworkError) {
                _ = try await Session { $0.retry = quick }.data(for: Request(url))
                return "an answer"
            } catch {
                return "\(error.kind), \(error.attempts) attempts"
            }
        }
        await stage.show("a budget", "10 requests, and most of 50 retries are avoided") { stage in
            let server = try stage.server(.busy())
            let session = Session { $0.retry = RetryPolicy(limit: 5, backoff: .none) }
            for _ in 0..<10 { _ = try await session.data(for: Request(server.url("/"))) }
            let repetitions = server.requestCount - 10
            return
                "10 requests, and \(repetitions < 25 ? "most" : "only \(50 - repetitions)") of 50 retries are avoided"
        }
    }
}
