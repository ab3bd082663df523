// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import Glibc

/// The local server of the notes, and the output for each job.
struct Stage {
    let server: MockServer
    private(set) var jobs = 0
    private(set) var unexpected = 0

    init() throws {
        server = try MockServer()
        let alps = #"{"id": 1, "title": "Alps", "tags": ["travel"]}"#
        server.on("GET", "/v1/notes/1", .json(alps))
        server.on("GET", "/v1/notes/latest", .status(204))
        server.on("GET", "/v1/notes") { $0.query == "page=1&tag=travel" ? .json("[\(alps)]") : .json("[]") }
        server.on("GET", "/v1/search") { $0.query == "q=snow%20%26%20ice" ? .json("[\(alps)]") : .text("Nothing.") }
        server.on("GET", "/v1/export", .pattern(PatternBody(seed: 1, length: 1 << 40)))
        server.on("POST", "/v1/login") { .status($0.bodyText == "password=s%26cret&user=ada" ? 204 : 401) }
        server.on("POST", "/v1/notes") { request in
            guard request.bodyText.contains("Milk") else {
                return .json(#"{"fields": {"title": "must not be empty"}}"#, status: 422)
            }
            return .json(#"{"id": 2, "title": "Milk", "tags": []}"#, status: 201)
        }
        server.on("PUT", "/v1/notes/1/picture") { .json(#"{"sha256": "\#($0.bodySHA256)"}"#) }
        server.on("DELETE", "/v1/notes/1") { _ in
            let problem = #"{"type": "https://notes.example/locked", "title": "Locked", "by": "grace"}"#
            return .status(403, [("Content-Type", "application/problem+json")], body: Array(problem.utf8))
        }
        server.on("POST", "/v1/echo") { request in
            .status(200, [("Content-Type", request.field("Content-Type") ?? "")], body: request.body)
        }
    }

    /// Runs a job, prints its result and counts unexpected results.
    ///
    /// - Parameters:
    ///   - job: The name of the job.
    ///   - expected: The expected result of the closure.
    mutating func show(_ job: String, _ expected: String, _ work: () async throws -> String) async {
        jobs += 1
        let found: String
        do { found = try await work() } catch { found = "\(error)" }
        if found != expected { unexpected += 1 }
        let gap = String(repeating: " ", count: max(1, 24 - job.count))
        print(job + gap + found + (found == expected ? "" : " <- unexpected: not “\(expected)”"))
    }

    /// Ends the program, with status 0 if all results are as expected.
    func end() -> Never {
        print("\n\(jobs) jobs, \(server.requests.count) requests, \(unexpected) unexpected results")
        exit(unexpected == 0 && server.violations.isEmpty ? 0 : 1)
    }
}
