// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

@Suite("Problem details (RFC 9457)")
struct ProblemDetailsTests {
    static let rows: [(String, ProblemDetails)] = [
        // The example of §3, abridged.
        (
            """
            {"type": "https://example.com/probs/out-of-credit", "title": "You do not have enough credit.",
             "detail": "Your current balance is 30, but that costs 50.", "instance": "/account/12345/msgs/abc",
             "balance": 30, "accounts": ["/account/12345", "/account/67890"], "status": 403}
            """,
            ProblemDetails(
                type: "https://example.com/probs/out-of-credit", title: "You do not have enough credit.",
                status: .forbidden, detail: "Your current balance is 30, but that costs 50.",
                instance: "/account/12345/msgs/abc",
                extensions: ["balance": 30, "accounts": ["/account/12345", "/account/67890"]])
        ),
        ("{}", ProblemDetails()),
        // §3.1: members of a wrong type are ignored.
        (
            #"{"type":1,"title":[],"status":"403","detail":null,"instance":{},"x":null}"#,
            ProblemDetails(extensions: ["x": nil])
        ),
        (#"{"status":403.5,"title":"T"}"#, ProblemDetails(title: "T")),
    ]

    @Test("C-07", arguments: rows)
    func problemsRoundTrip(text: String, problem: ProblemDetails) throws {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        #expect(try decoder.decode(ProblemDetails.self, from: Data(text.utf8)) == problem)
        #expect(try decoder.decode(ProblemDetails.self, from: JSONEncoder().encode(problem)) == problem)
    }

    @Test func onlyObjectsAreProblems() {
        #expect(throws: DecodingError.self) { try JSONDecoder().decode(ProblemDetails.self, from: Data("[]".utf8)) }
    }

    @Test func standardMembersOverrideExtensions() throws {
        let problem = ProblemDetails(title: "T", status: 404, extensions: ["a_b": 1, "title": "lost"])
        let value = try JSONDecoder().decode(JSONValue.self, from: JSONEncoder().encode(problem))
        #expect(value == ["type": "about:blank", "title": "T", "status": 404, "a_b": 1])
    }

    @Test func problemIsDecodedFromAnError() {
        let error = NetworkError(
            .unacceptableStatus, phase: .validating, "x", response: ReadingScene.head("application/problem+json", 403),
            body: Array(Self.rows[0].0.utf8))
        #expect(error.decode(ProblemDetails.self) == Self.rows[0].1)
    }
}
