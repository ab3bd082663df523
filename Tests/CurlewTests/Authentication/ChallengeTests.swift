// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// The `challenge` authenticator, which calls a closure for each challenge.
@Suite(.timeLimit(.minutes(5)))
struct ChallengeTests {
    private struct Refused: Error {}

    /// The arguments of all calls of the closure.
    private final class Questions: Sendable {
        private let all = Lock<
            [(challenge: ChallengeAuthentication.Challenge, context: ChallengeAuthentication.Context)]
        >([])

        func note(_ challenge: ChallengeAuthentication.Challenge, _ context: ChallengeAuthentication.Context) {
            all.withLock { $0.append((challenge, context)) }
        }

        var challenges: [ChallengeAuthentication.Challenge] { all.withLock { $0.map(\.challenge) } }
        var contexts: [ChallengeAuthentication.Context] { all.withLock { $0.map(\.context) } }
    }

    private func server() throws -> MockServer {
        try MockServer { request in
            if request.field("Authorization") == "Bearer right" { return .text("welcome") }
            return .text("who are you?", status: 401).field("WWW-Authenticate", "Bearer realm=\"a\", Basic realm=\"b\"")
        }
    }

    private func session(
        _ questions: Questions = Questions(),
        _ decide:
            @escaping @Sendable (ChallengeAuthentication.Challenge, ChallengeAuthentication.Context) async throws ->
            ChallengeAuthentication.Decision
    ) -> Session {
        Session(interceptors: [
            .challenge { challenge, context in
                questions.note(challenge, context)
                return try await decide(challenge, context)
            }
        ])
    }

    private func text(_ session: Session, _ request: Request) async throws -> String {
        String(decoding: try await session.data(for: request).0, as: UTF8.self)
    }

    @Test func useSendsTheCredential() async throws {
        let (server, questions) = (try server(), Questions())
        let session = session(questions) { _, _ in .use(.bearer("right")) }
        #expect(try await text(session, Request(server.url("/x?secret=1"))) == "welcome")
        #expect(questions.challenges == [ChallengeAuthentication.Challenge(.bearer, ["realm": "a"])])
        let context = try #require(questions.contexts.first)
        #expect(context.failures == 0 && context.origin == server.origin)
        #expect(context.response.status == .unauthorized && context.request.url == server.url("/x?secret=1"))
        var dumped = "\(context)"
        dump(context, to: &dumped)
        #expect(!dumped.contains("secret=1") && dumped.contains("/x?secret=<redacted>"))
    }

    @Test func useDefaultReturnsTheResponse() async throws {
        let (server, questions) = (try server(), Questions())
        let session = session(questions) { _, _ in .useDefault }
        #expect(try await text(session, Request(server.url("/"))) == "who are you?")
        #expect(questions.challenges.map(\.scheme) == [.bearer] && server.requests.count == 1)
    }

    @Test func useDefaultLeavesTheResponseToOuterInterceptors() async throws {
        let server = try server()
        let outer: any Interceptor = .intercept(scope: .attempt) { request, _, next in
            let response = try await next(request)
            guard response.head.status == .unauthorized else { return response }
            await response.discard()
            var request = request
            request.fields[.authorization] = "Bearer right"
            return try await next(request)
        }
        let session = Session(interceptors: [outer, .challenge { _, _ in .useDefault }])
        #expect(try await text(session, Request(server.url("/"))) == "welcome")
    }

    @Test func rejectMovesToTheNextChallenge() async throws {
        let (server, questions) = (try server(), Questions())
        let session = session(questions) { challenge, _ in
            challenge.scheme == .bearer ? .reject : .use(.bearer("right"))
        }
        #expect(try await text(session, Request(server.url("/"))) == "welcome")
        #expect(questions.challenges.map(\.realm) == ["a", "b"])
        let none = self.session(questions) { _, _ in .reject }
        #expect(try await text(none, Request(server.url("/"))) == "who are you?")
        #expect(questions.challenges.count == 4)
    }

    @Test func cancelFailsWithTheGivenError() async throws {
        let server = try server()
        let request = Request(server.url("/"))
        let own = try await networkError { try await text(session { _, _ in .cancel(Refused()) }, request) }
        #expect(own.kind == .interceptorFailed && own.cause is Refused && own.response?.status == .unauthorized)
        let thrown = try await networkError { try await text(session { _, _ in throw Refused() }, request) }
        #expect(thrown.kind == .interceptorFailed && thrown.cause is Refused)
        let cancelled = session { _, _ in .cancel(CancellationError()) }
        #expect(try await networkError { try await text(cancelled, request) }.kind == .cancelled)
        let typed = NetworkError(.unsupported, phase: .receiving, "The server is closed.")
        let error = try await networkError { try await text(session { _, _ in .cancel(typed) }, request) }
        #expect(error.kind == .unsupported && error.message == "The server is closed.")
    }

    @Test func closureIsCalledAgainAfterRefusedCredentials() async throws {
        let (server, questions) = (try server(), Questions())
        let session = session(questions) { _, context in
            .use(.bearer(context.failures == 2 ? "right" : "wrong"))
        }
        #expect(try await text(session, Request(server.url("/"))) == "welcome")
        #expect(questions.contexts.map(\.failures) == [0, 1, 2] && server.requests.count == 4)
    }

    @Test func closureIsNotCalledForRequestsWithOwnCredentials() async throws {
        let (server, questions) = (try server(), Questions())
        let session = session(questions) { _, _ in .use(.basic("a", "b")) }
        var request = Request(server.url("/"))
        request.fields[.authorization] = "Bearer wrong"
        #expect(try await session.data(for: request).1.status == .unauthorized)
        let inURL = Request(server.url("/").replacing("http://", with: "http://ann:wrong@"))
        #expect(try await session.data(for: inURL).1.status == .unauthorized)
        #expect(questions.challenges.isEmpty && server.requestCount == 2)
    }

    @Test func closureCallsAreLimitedToTen() async throws {
        let (server, questions) = (try server(), Questions())
        let session = session(questions) { _, _ in .use(.bearer("wrong")) }
        #expect(try await text(session, Request(server.url("/"))) == "who are you?")
        #expect(questions.challenges.count == 10 && server.requests.count == 11)
    }

    @Test func unauthorizedWithoutChallengesIsReturned() async throws {
        let (server, questions) = (try MockServer { _ in .text("no", status: 401) }, Questions())
        let session = session(questions) { _, _ in .use(.bearer("right")) }
        #expect(try await text(session, Request(server.url("/"))) == "no" && questions.challenges.isEmpty)
    }

    @Test func nestedAuthenticatorUsesTheReceivedChallenge() async throws {
        let server = try DigestServer()
        for auth in [.digest("anna", "open sesame"), .password("anna", "open sesame")] as [any Authenticator] {
            let before = server.server.requests.count
            let session = session { challenge, _ in challenge.scheme == .digest ? .use(auth) : .reject }
            #expect(try await text(session, Request(server.url())) == "welcome")
            #expect(server.server.requests.count == before + 2, "the received challenge must be used")
        }
        #expect(server.complaints == [])
    }

    @Test func streamedBodyIsNotResent() async throws {
        let (server, questions) = (try server(), Questions())
        let session = session(questions) { _, _ in .use(.bearer("right")) }
        let body = RequestBody.stream(ChunkSource(body: PatternBody(seed: 1, length: 10)), length: 10)
        #expect(try await text(session, Request(.put, server.url("/"), body: body)) == "who are you?")
        #expect(questions.challenges.isEmpty && server.requests.count == 1)
        let again = RequestBody.bytes([1, 2, 3])
        #expect(try await text(session, Request(.put, server.url("/"), body: again)) == "welcome")
    }

    @Test(arguments: [false, true]) func cancellationEndsAPendingClosure(_ listens: Bool) async throws {
        let server = try server()
        let (asked, never) = (Gate(), Gate())
        let session = session { _, _ in
            asked.open()
            if listens {
                await never.wait()
            } else {
                await Task { _ = await never.wait() }.value
            }
            return .useDefault
        }
        let task = Task { try await session.data(for: Request(server.url("/"))) }
        _ = await asked.wait()
        task.cancel()
        #expect(try await networkError { try await task.value }.kind == .cancelled)

        let other = Gate()
        let thinking = self.session { _, _ in
            other.open()
            await Task { _ = await never.wait() }.value
            return .useDefault
        }
        let transfer = thinking.transfer(Request(server.url("/")))
        transfer.start()
        _ = await other.wait()
        transfer.cancel()
        #expect(try await networkError { try await transfer.value }.kind == .cancelled)
        never.open()
    }

    @Test func shutdownEndsAPendingClosure() async throws {
        let server = try server()
        let (asked, never) = (Gate(), Gate())
        let session = session { _, _ in
            asked.open()
            await Task { _ = await never.wait() }.value
            return .useDefault
        }
        let task = Task { try await session.data(for: Request(server.url("/"))) }
        _ = await asked.wait()
        try await session.shutdown(.immediate)
        let error = try await networkError { try await task.value }
        #expect(error.kind == .cancelled || error.kind == .sessionClosed)
        never.open()
    }

    @Test func closureIsNotCalledAfterCrossOriginRedirects() async throws {
        let (home, away, questions) = (try server(), try server(), Questions())
        home.on("GET", "/away", .redirect(to: away.url("/")))
        let session = session(questions) { _, _ in .use(.bearer("right")) }
        #expect(try await text(session, Request(home.url("/away"))) == "who are you?")
        #expect(questions.challenges.isEmpty)
    }
}
