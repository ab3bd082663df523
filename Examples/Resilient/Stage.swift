// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import Glibc

/// The local servers of the jobs, and the output for each job.
struct Stage {
    private(set) var servers: [MockServer] = []
    private(set) var jobs = 0
    private(set) var unexpected = 0

    /// Starts a server that sends the given responses one after the other and repeats the last one forever.
    ///
    /// Each job has its own server, because budgets, rates and circuit breakers belong to an origin.
    mutating func server(_ answers: MockResponse...) throws -> MockServer {
        let server = try MockServer()
        server.on(nil, "*", inOrder: answers)
        servers.append(server)
        return server
    }

    /// Starts a server whose responses depend on the requests.
    mutating func server(_ answer: @escaping @Sendable (RecordedRequest) -> MockResponse) throws -> MockServer {
        let server = try MockServer { answer($0) }
        servers.append(server)
        return server
    }

    /// Runs a job, prints its result and counts unexpected results.
    ///
    /// - Parameters:
    ///   - job: The name of the job.
    ///   - expected: The expected result of the closure.
    mutating func show(_ job: String, _ expected: String, _ work: (inout Stage) async throws -> String) async {
        jobs += 1
        let found: String
        do { found = try await work(&self) } catch { found = "\(error)" }
        if found != expected { unexpected += 1 }
        let gap = String(repeating: " ", count: max(1, 24 - job.count))
        print(job + gap + found + (found == expected ? "" : " <- unexpected: not “\(expected)”"))
    }

    /// Ends the program, with status 0 if all results are as expected.
    func end() -> Never {
        let requests = servers.reduce(0) { $0 + $1.requestCount }
        print("\n\(jobs) jobs, \(requests) requests, \(unexpected) unexpected results")
        exit(unexpected == 0 && servers.allSatisfy(\.violations.isEmpty) ? 0 : 1)
    }
}

extension MockServer {
    /// The number of received requests.
    var requestCount: Int { requests.count }
}

extension MockResponse {
    static let fine = MockResponse.text("fine")

    static func busy(_ status: Int = 503, after seconds: Int? = nil) -> MockResponse {
        let answer = MockResponse.text("busy", status: status)
        return seconds.map { answer.field("Retry-After", "\($0)") } ?? answer
    }
}
