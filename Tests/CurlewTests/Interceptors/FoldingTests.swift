// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine
import CurlewSupport
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// A built-in interceptor of this file alone: it sends a request again after status 418, with another field.
private struct TeapotInterceptor: FoldableInterceptor {
    private let counts = Lock((runs: 0, passed: 0))

    /// The number of times that the chain ran, and of responses that bypassed it.
    var runs: Int { counts.withLock { $0.runs } }
    var passed: Int { counts.withLock { $0.passed } }

    func interest(in request: Request) -> ChainInterest? {
        if request.fields.contains("X-Run") { return nil }
        var interest = ChainInterest()
        interest.statuses.insert(418)
        return interest
    }

    func adapted(_ request: Request) -> Request? {
        var request = request
        request.fields["X-Adapted"] = "yes"
        return request
    }

    func didBypass(_ request: Request, _ head: RawHead, isComplete: Bool) {
        counts.withLock { $0.passed += isComplete ? 1 : 0 }
    }

    func intercept(_ request: Request, context: Interception.Context, next: Interception.Next) async throws
        -> IncomingResponse
    {
        counts.withLock { $0.runs += 1 }
        var request = adapted(request) ?? request
        let response = try await next(request)
        guard response.head.status.code == 418 else { return response }
        await response.discard()
        request.fields["X-Brew"] = "coffee"
        return try await next(request)
    }
}

/// A built-in interceptor that adds a mark to a field, and cannot fold for a request with four marks.
private struct MarkingInterceptor: FoldableInterceptor {
    let mark: String

    func interest(in request: Request) -> ChainInterest? {
        guard (request.fields["X-Marks"] ?? "").count < 4 else { return nil }
        var interest = ChainInterest()
        interest.failures = true
        return interest
    }

    func adapted(_ request: Request) -> Request? {
        var request = request
        request.fields["X-Marks"] = (request.fields["X-Marks"] ?? "") + mark
        return request
    }

    func intercept(_ request: Request, context: Interception.Context, next: Interception.Next) async throws
        -> IncomingResponse
    {
        try await next(adapted(request) ?? request)
    }
}

/// A built-in interceptor that responds by itself to a 418.
private struct SubstituteInterceptor: FoldableInterceptor {
    func interest(in request: Request) -> ChainInterest? {
        var interest = ChainInterest()
        interest.statuses.insert(418)
        return interest
    }

    func intercept(_ request: Request, context: Interception.Context, next: Interception.Next) async throws
        -> IncomingResponse
    {
        IncomingResponse(ResponseHead(status: .ok), body: "substitute".utf8, to: request)
    }
}

/// Requests whose first attempt starts without the chain.
@Suite(.timeLimit(.minutes(5)))
struct FoldingTests {
    private func session(
        _ teapot: TeapotInterceptor, _ configure: (inout Session.Configuration) -> Void = { _ in }
    ) -> Session {
        var configuration = Session.Configuration()
        configure(&configuration)
        return Session(core: SessionCore(configuration, trust: SystemTrust(), builtIns: [teapot]))
    }

    @Test(arguments: Taking.allCases, [RetryPolicy.never, .standard])
    func interceptorSeesItsStatusForEveryWayToRead(_ way: Taking, _ retries: RetryPolicy) async throws {
        let server = try MockServer { request in
            request.field("X-Brew") == "coffee" ? .text("coffee") : .text("short and stout").status(418)
        }
        let teapot = TeapotInterceptor()
        let taken = try await way(Request(server.url("/")), by: session(teapot) { $0.retry = retries })
        #expect(taken.body == Data("coffee".utf8))
        #expect(taken.head == nil || taken.head?.status == .ok)
        #expect(server.requests.map { $0.field("X-Adapted") } == ["yes", "yes"])
        #expect(teapot.runs == 1 && teapot.passed == 0)
    }

    @Test(arguments: Taking.allCases, [false, true])
    func otherResponsesBypassTheChain(_ way: Taking, isEncoded: Bool) async throws {
        let text = String(repeating: "tea ", count: 1000)
        let wire = try Encoded.gzip(text)
        let server = try MockServer { _ in
            isEncoded ? .bytes(wire).field("Content-Encoding", "gzip") : .text(text)
        }
        let teapot = TeapotInterceptor()
        let session = session(teapot) { $0.retry = .standard }
        #expect(try await way(Request(server.url("/")), by: session).body == Data(text.utf8))
        #expect(server.requests.map { $0.field("X-Adapted") } == ["yes"])
        #expect(teapot.runs == 0 && teapot.passed == 1)
    }

    @Test(arguments: Taking.allCases)
    func builtInThatCannotFoldRunsFromTheStart(_ way: Taking) async throws {
        let server = try MockServer { _ in .text("tea") }
        let teapot = TeapotInterceptor()
        var request = Request(server.url("/"))
        request.fields["X-Run"] = "yes"
        #expect(try await way(request, by: session(teapot)).body == Data("tea".utf8))
        #expect(server.requestCount == 1 && teapot.runs == 1 && teapot.passed == 0)
    }

    @Test(arguments: [Taking.data, .value, .started])
    func failureThatNoInterceptorWantsIsFinal(_ way: Taking) async throws {
        let server = try MockServer { _ in .text("tea").fault(.close, at: .body(1)) }
        let teapot = TeapotInterceptor()
        let session = session(teapot)
        let error = try await networkError { _ = try await way(Request(server.url("/")), by: session) }
        #expect(error.kind == .connectionLost)
        #expect(server.requestCount == 1 && teapot.runs == 0 && teapot.passed == 0)
    }

    @Test(arguments: [Taking.data, .value, .started, .bytes])
    func failureOfAFoldedAttemptIsRetried(_ way: Taking) async throws {
        let isFirst = Lock(true)
        let server = try MockServer { _ in
            let isFirst = isFirst.withLock { isFirst in
                defer { isFirst = false }
                return isFirst
            }
            return isFirst ? .text("tea").fault(.close, at: .head(3)) : .text("tea")
        }
        let teapot = TeapotInterceptor()
        let session = session(teapot) { $0.retry = RetryPolicy(limit: 1, backoff: .none) }
        #expect(try await way(Request(server.url("/")), by: session).body == Data("tea".utf8))
        #expect(server.requestCount == 2 && teapot.passed == 0)
    }

    /// Each interceptor sees the request as the interceptors before it have changed it, as in `intercept`.
    @Test func changesOfInterceptorsAddUp() throws {
        let chain = Chain([MarkingInterceptor(mark: "a"), MarkingInterceptor(mark: "b")])
        let folded = try #require(chain.fold("http://example.test/"))
        #expect(folded.request?.fields["X-Marks"] == "ab")
        #expect(folded.interest.values.failures)
        #expect(chain.fold(Request("http://example.test/", fields: ["X-Marks": "aba"])) == nil)
    }

    /// A chain that responds by itself does not leave the attempt running that was started before it.
    @Test(arguments: [Taking.data, .value, .started])
    func responseWithoutTheStartedAttemptEndsIt(_ way: Taking) async throws {
        let gate = Gate()
        let server = try MockServer { _ in .text("teapot", status: 418).fault(.stall(gate), at: .body(2)) }
        let session = Session(
            core: SessionCore(Session.Configuration(), trust: SystemTrust(), builtIns: [SubstituteInterceptor()]))
        #expect(try await way(Request(server.url("/")), by: session).body == Data("substitute".utf8))
        try await session.idle()
        gate.open()
    }

    /// The clock and the closures of a retry interceptor see the task-local values of the task that starts a transfer.
    @Test(arguments: Taking.allCases)
    func retryInterceptorSeesTheTaskLocalValuesOfTheStarter(_ way: Taking) async throws {
        let server = try MockServer { _ in .text("there") }
        server.on("GET", "/", inOrder: [.status(503), .text("there")])
        let seen = Lock("")
        let retry = RetryInterceptor(RetryPolicy(limit: 1, backoff: RetryPolicy.Backoff(first: .milliseconds(1)))) {
            seen.withLock { $0 = Self.mark }
            return 0.5
        }
        let session = Session(interceptors: [retry])
        let taken = try await Self.$mark.withValue("starter") { try await way(Request(server.url("/")), by: session) }
        #expect(taken.body == Data("there".utf8))
        #expect(seen.withLock { $0 } == "starter")
    }

    @TaskLocal private static var mark = "default"

    @Test func userInterceptorRunsTheChainFromTheStart() async throws {
        let server = try MockServer { _ in .text("tea") }
        let teapot = TeapotInterceptor()
        var request = Request(server.url("/"))
        request.interceptors = [.adapt { $0.fields["X-User"] = "yes" }]
        _ = try await session(teapot).data(for: request)
        #expect(server.requests.map { $0.field("X-User") } == ["yes"])
        #expect(teapot.runs == 1)
    }

    // MARK: Before the start

    @Test(arguments: [false, true])
    func cancellationBeforeTheStartFinishesTheTransfer(isIntercepted: Bool) async throws {
        let server = try MockServer { _ in .text("tea") }
        var request = Request(server.url("/"))
        if isIntercepted { request.interceptors = [.adapt { _ in }] }
        let transfer = Session().transfer(request)
        let events = transfer.events
        transfer.cancel()
        #expect(transfer.state == .finished && !transfer.currentProgress.isFinished && transfer.metrics == nil)
        #expect(try await networkError { try await transfer.value }.kind == .cancelled)
        var kinds: [String] = []
        for await event in events { kinds.append(event.description) }
        #expect(kinds.count == 1 && kinds.last?.contains("cancelled") == true, "\(kinds)")
        #expect(server.requestCount == 0)
    }
}
