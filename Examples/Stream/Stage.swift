// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import Glibc

/// The local server of the streams, and the output for each job.
struct Stage {
    let server: MockServer
    private(set) var jobs = 0
    private(set) var unexpected = 0

    init() throws {
        server = try MockServer()
        server.on("GET", "/prices", inOrder: Self.prices)
        server.on("GET", "/users", Self.stream("application/x-ndjson", Self.users))
        server.on("GET", "/broken", Self.stream("application/x-ndjson", "{\"name\": \"ada\"}\n{\"nome\": \"grace\"}\n"))
        server.on("GET", "/log", Self.stream("text/plain", "first\r\nsecond\n\nlast"))
        server.on("GET", "/journal", Self.stream("application/json-seq", "\u{1E}{\"name\": \"ada\"}\n\u{1E}{\"name\":"))
        server.on("GET", "/feed.xml", Self.stream("application/atom+xml", Self.feed))
        server.on("GET", "/report", Self.stream("multipart/mixed; boundary=B", Self.report))
        server.on("POST", "/photos", .text("thanks"))
        server.on("POST", "/echo") { .bytes($0.body).field("Content-Type", $0.field("Content-Type") ?? "") }
        server.on(
            "POST", "/chat",
            Self.stream("text/event-stream", "data: {\"word\": \"snow\"}\n\ndata: {\"word\": \"ice\"}\n\n"))
    }

    /// Makes a response with small chunks, so that most elements arrive split.
    private static func stream(_ type: String, _ text: String) -> MockResponse {
        .status(200, [("Content-Type", type)], body: Array(text.utf8)).chunked(size: 7)
    }

    private static let users = (1...1000).map { "{\"name\": \"user \($0)\"}\n" }.joined()

    private static let feed =
        "<feed xmlns='http://www.w3.org/2005/Atom'><entry><title>Alps &amp; sea</title></entry>"
        + "<entry><title>Snow</title></entry></feed>"

    private static let report =
        "--B\r\nContent-Type: text/plain\r\n\r\nfirst\r\n--B\r\nContent-Type: text/html\r\n\r\n<p>second</p>\r\n--B--"

    /// A connection that ends, one that breaks inside an event, a busy server, and the end of the events.
    private static let prices: [MockResponse] = [
        stream("text/event-stream", "retry: 10\n\nid: 1\ndata: 7\n\nid: 2\ndata: 8\n\n"),
        stream("text/event-stream", ": still here\nid: 3\ndata: 9\n\nid: 4\ndata: 1").fault(.close, at: .body(37)),
        .text("busy", status: 503), stream("text/event-stream", "event: last\nid: 4\ndata: 10\n\n"), .status(204),
    ]

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
