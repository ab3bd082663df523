// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// The benchmark client that uses URLSession: async functions for small responses, delegates for large bodies.

import Foundation
import FoundationNetworking
import Measuring

@main
struct URLSessionBench {
    static func main() {
        raiseFileLimit()
        let job = Job(Array(CommandLine.arguments.dropFirst()))
        guard let url = URL(string: job.url) else { die("the URL is not valid") }
        runBlocking {
            let configuration = URLSessionConfiguration.ephemeral
            configuration.httpMaximumConnectionsPerHost = max(6, job.connections)
            configuration.urlCache = nil
            configuration.timeoutIntervalForRequest = 600
            let session = URLSession(configuration: configuration)
            let meter = Meter()
            let outcome = try await work(job, url, session)
            meter.finish(outcome.latencies, requests: outcome.requests, bytes: outcome.bytes)
        }
    }

    static func work(_ job: Job, _ url: URL, _ session: URLSession) async throws -> Outcome {
        try await withThrowingTaskGroup(of: Outcome.self) { group in
            for worker in 0..<job.concurrency {
                let count = job.share(of: worker)
                group.addTask { try await repeated(count, job, url, session) }
            }
            return try await group.reduce(into: Outcome()) { $0.add($1) }
        }
    }

    static func repeated(_ count: Int, _ job: Job, _ url: URL, _ session: URLSession) async throws -> Outcome {
        var outcome = Outcome()
        for _ in 0..<count {
            let began = now()
            if job.upload != nil || job.isStreamed {
                outcome.bytes += try await BodyTask(job).run(url, session.configuration)
            } else {
                let (data, response) = try await session.data(from: url)
                job.verify(status: (response as? HTTPURLResponse)?.statusCode ?? 0, bytes: data.count)
                outcome.bytes += data.count
            }
            outcome.latencies.add(now() - began)
            outcome.requests += 1
        }
        return outcome
    }
}

/// The results of a worker.
struct Outcome: Sendable {
    var latencies = Histogram()
    var requests = 0
    var bytes = 0

    mutating func add(_ other: Outcome) {
        latencies.add(other.latencies)
        requests += other.requests
        bytes += other.bytes
    }
}
