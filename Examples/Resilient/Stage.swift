// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import Glibc

/// The servers of the jobs, on this machine, and what is told about each job.
struct Stage {
    private(set) var servers: [MockServer] = []
    private(set) var jobs = 0
    private(set) var unexpected = 0

    /// A server that gives these answers, one after the other, and the last one for ever.
    ///
    /// Each job has one of its own: budgets, rates and circuits belong to an origin.
    mutating func server(_ answers: MockResponse...) throws -> MockServer {
        let server = try MockServer()
        server.on(nil, "*", inOrder: answers)
        servers.append(server)
        return server
    }

    /// A server whose answers depend on the requests.
    mutating func server(_ answer: @escaping @Sendable (RecordedRequest) -> MockResponse) throws -> MockServer {
        let server = try MockServer { answer($0) }
        servers.append(server)
        return server
    }

    /// Does a job, prints what came of it, and counts what was not expected.
    ///
    /// - Parameters:
    ///   - job: Its name.
    ///   - expected: What the closure has to return.
    mutating func show(_ job: String, _ expected: String, _ work: (inout Stage) async throws -> String) async {
        jobs += 1
        let found: String
        do { found = try await work(&self) } catch { found = "\(error)" }
        if found != expected { unexpected += 1 }
        let gap = String(repeating: " ", count: max(1, 24 - job.count))
        print(job + gap + found + (found == expected ? "" : " <- unexpected: not “\(expected)”"))
    }

    /// Ends the program: with status 0 when everything was as expected.
    func end() -> Never {
        let requests = servers.reduce(0) { $0 + $1.requestCount }
        print("\n\(jobs) jobs, \(requests) requests, \(unexpected) unexpected answers")
        exit(unexpected == 0 && servers.allSatisfy(\.violations.isEmpty) ? 0 : 1)
    }
}

extension MockServer {
    /// How many requests came.
    var requestCount: Int { requests.count }
}

extension MockResponse {
    static let fine = MockResponse.text("fine")

    static func busy(_ status: Int = 503, after seconds: Int? = nil) -> MockResponse {
        let answer = MockResponse.text("busy", status: status)
        return seconds.map { answer.field("Retry-After", "\($0)") } ?? answer
    }
}
