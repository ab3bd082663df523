// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine
import CurlewTesting
import Testing

@testable import Curlew

/// Earlier attempts in responses and errors.
@Suite(.timeLimit(.minutes(5)))
struct AttemptHistoryTests {
    /// A server that responds with the given statuses in order, and then with 200.
    private func server(_ statuses: [Int], _ fields: [(String, String)] = []) throws -> MockServer {
        let server = try MockServer()
        let refusals = statuses.map { status in
            fields.reduce(MockResponse.text("no", status: status)) { $0.field($1.0, $1.1) }
        }
        server.on("GET", "/x", inOrder: refusals + [.text("fine")])
        return server
    }

    @Test func finalResponseListsEarlierAttempts() async throws {
        let policy = RetryPolicy(limit: 2, backoff: .none, longestWait: .seconds(5))
        let server = try server([503, 500, 503, 503, 500, 503, 503])
        let session = Session { $0.retry = policy }
        let api = Client(try BaseURL(server.url("/")), session: session)
        for _ in 0..<2 {
            let error = try await networkError { try await api.get("x", as: JSONValue.self) }
            #expect(error.kind == .unacceptableStatus && error.attempts == 3 && error.duration != nil)
            #expect(error.earlier.map { $0.response?.status.code } == [503, 500] && error.response?.status == 503)
        }
        let head = try await session.data(for: Request(server.url("/x"))).1
        #expect(head.status == .ok && head.earlier.map { $0.response?.status.code } == [503])
        #expect(try await session.data(for: Request(server.url("/x"))).1.earlier.isEmpty)
        let down = try self.server([503, 503, 503])
        let lines = Client(try BaseURL(down.url("/")), session: session).stream(Call(.get, "x"), using: .lines)
        let error = try await networkError { for try await _ in lines {} }
        #expect(error.kind == .unacceptableStatus && error.attempts == 3 && error.earlier.count == 2)
    }

    @Test func responseNotRetriedHasAHint() async throws {
        let policy = RetryPolicy(limit: 2, backoff: .none, longestWait: .seconds(5))
        let server = try server([503], [("Retry-After", "9")])
        let session = Session { $0.retry = policy }
        let api = Client(try BaseURL(server.url("/")), session: session)
        let error = try await networkError { try await api.get("x", as: JSONValue.self) }
        #expect(error.attempts == 1 && error.earlier.isEmpty && error.hint?.contains("longestWait") == true)
    }

    @Test func errorHintNamesTheReasonWhyRetriesEnd() async throws {
        func hint(_ policy: RetryPolicy, _ kind: NetworkError.Kind, _ method: Method = .get) async throws -> String? {
            var request = Request(method, "http://127.0.0.1:1/")
            request.interceptors = [
                RetryInterceptor(policy, chance: { 1 }),
                .intercept { request, _, _ in
                    throw NetworkError(
                        kind, phase: .waiting, "x", hint: "First.", request: request, retryAfter: .seconds(7))
                },
            ]
            return try await networkError { try await Session().data(for: request) }.hint
        }
        let brief = RetryPolicy(limit: 2, backoff: .none, longestWait: .seconds(6))
        #expect(try await hint(brief, .connectionLost)?.contains("longestWait") == true)
        #expect(try await hint(brief, .connectionLost)?.hasPrefix("First. ") == true)
        #expect(try await hint(brief, .connectionLost, .post)?.contains("Idempotency-Key") == true)
        #expect(try await hint(brief, .untrusted) == "First.")
        let due = RetryPolicy(limit: 2, backoff: .none, deadline: .seconds(5))
        #expect(try await hint(due, .connectionLost)?.contains("deadline") == true)
    }
}
