// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials

/// The local server, a session with a cache in memory, and the output.
struct Stage {
    let server: MockServer
    let cache: HTTPCache
    private let session: Session
    private var results = 0
    private var unexpected = 0

    init() throws {
        server = try MockServer()
        cache = HTTPCache { options in
            options.willStore = { proposal in
                guard proposal.request.url.contains("/users/") else { return true }
                let fields = proposal.head.fields.merging([.cacheControl: "max-age=60"])
                proposal.head = proposal.head.with(fields: fields)
                proposal.tags = ["users"]
                return true
            }
        }
        session = Session(cache: cache)
        addRoutes()
    }

    private func addRoutes() {
        server.on("GET", "/logo", .text("<svg/>").field("Cache-Control", "max-age=60"))
        server.on("GET", "/news") { request in
            let isKnown = request.field("If-None-Match") == "\"1\""
            return (isKnown ? MockResponse.status(304) : .text("Monday")).field("ETag", "\"1\"")
                .field("Cache-Control", "max-age=0")
        }
        server.on("GET", "/hello") { request in
            .text(request.field("Accept-Language") == "de" ? "Hallo" : "Hello").field("Vary", "Accept-Language")
                .field("Cache-Control", "max-age=60")
        }
        server.on(
            "GET", "/weather",
            inOrder: [
                .text("rain").field("Cache-Control", "max-age=0, stale-while-revalidate=60"),
                .text("sun").field("Cache-Control", "max-age=60"),
            ])
        // The cache asks for a stored response again only if it has a validator.
        let prices = MockResponse.text("9 EUR").field("ETag", "\"9\"")
            .field("Cache-Control", "max-age=0, stale-if-error=60")
        server.on("GET", "/prices", inOrder: [prices, .text("busy", status: 503)])
        server.on("GET", "/account") { request in
            .text(request.field("Authorization") == "Bearer anna" ? "Anna" : "Bob").field("Cache-Control", "max-age=60")
        }
        let notes = ["bread", "bread, milk"].map { MockResponse.text($0).field("Cache-Control", "max-age=60") }
        server.on("GET", "/notes", inOrder: notes)
        server.on("POST", "/notes", .text("added"))
        // No freshness: the closure above adds it.
        server.on("GET", "/users/7", .json(#"{"id":7}"#))
        server.on("GET", "/report", .text("yearly").field("Cache-Control", "max-age=3600"))
    }

    /// Returns a GET request to the server.
    func get(_ path: String, _ fields: HeaderFields = [:], options: Request.Options = []) -> Request {
        Request(server.url(path), fields: fields, options: options)
    }

    /// Returns a POST request to the server.
    func post(_ path: String, _ text: String) -> Request { Request(.post, server.url(path), body: .text(text)) }

    /// Sends a request, and prints the status, what the cache did, and the bytes of the body that the server sent.
    ///
    /// - Parameters:
    ///   - expected: The expected `Cache-Status` without the time to live, which depends on the clock.
    ///   - status: The expected status.
    ///   - other: The session; the one with the cache in memory unless given.
    mutating func show(
        _ request: Request, _ expected: String, status: Status = .ok, by other: Session? = nil
    ) async throws {
        let response = try await (other ?? session).transfer(request).response()
        let path = String(request.url.dropFirst(server.origin.count))
        let report = Self.withoutTime(response.head["Cache-Status"] ?? "no Cache-Status")
        let body = String(decoding: response.value, as: UTF8.self)
        let line =
            Self.padded("\(request.method) \(path)", 15) + "\(response.status.code)  " + Self.padded(report, 44)
            + Self.padded("\(response.metrics.responseBodyBytes) B received", 15) + body
        let isExpected =
            report == expected && response.status == status && response.metrics.cache == response.head.cache
        check(line, isExpected, expected: "“\(expected)” with status \(status.code)")
    }

    /// Prints a result.
    mutating func check(_ line: String, _ isExpected: Bool, expected: String = "another number") {
        results += 1
        if !isExpected { unexpected += 1 }
        print("  " + line + (isExpected ? "" : " <- unexpected; expected: \(expected)"))
    }

    /// Prints a summary, and returns the status of the program: 0 if all results are as expected.
    func end() -> Int32 {
        for violation in server.violations { print("violation:", violation) }
        print("\n\(cache)")
        print("\(results) results, \(server.requests.count) requests to the server, \(unexpected) unexpected results")
        return unexpected == 0 && server.violations.isEmpty ? 0 : 1
    }

    private static func withoutTime(_ report: String) -> String {
        report.split(separator: "; ").filter { !$0.hasPrefix("ttl=") }.joined(separator: "; ")
    }

    private static func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(1, width - text.count))
    }
}
