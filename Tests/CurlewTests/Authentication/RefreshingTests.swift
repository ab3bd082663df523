// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// Refreshing authentication: concurrent requests share one refresh of the token.
@Suite(.timeLimit(.minutes(5)))
struct RefreshingTests {
    private struct RefreshFailed: Error {}

    // MARK: One request

    @Test func firstRequestFetchesTheToken() async throws {
        let scene = try TokenScene(accepting: "t1")
        let auth = RefreshingAuthentication { scene.fetch($0) }
        #expect(auth.token == nil)
        #expect(try await scene.status(scene.request(auth)) == 200)
        #expect(try await scene.status(scene.request(auth)) == 200)
        #expect(scene.fetches.withLock { $0 } == 1 && scene.server.requestCount == 2)
        #expect(auth.token?.value == "t1")
    }

    @Test func refusedTokenIsRefreshedAndTheRequestResent() async throws {
        let scene = try TokenScene(accepting: "t1")
        let auth = RefreshingAuthentication(AccessToken("old")) { scene.fetch($0) }
        #expect(try await scene.status(scene.request(auth)) == 200)
        #expect(scene.server.requestCount == 2)
    }

    @Test func secondUnauthorizedIsReturned() async throws {
        let scene = try TokenScene(accepting: "never")
        let auth = RefreshingAuthentication(AccessToken("old")) { scene.fetch($0) }
        let (data, head) = try await scene.session.data(for: scene.request(auth))
        #expect(head.status == .unauthorized && data == Data("who?".utf8))
        #expect(scene.server.requestCount == 2 && scene.fetches.withLock { $0 } == 1)
    }

    @Test func expiredTokenIsRefreshedBeforeTheRequest() async throws {
        let scene = try TokenScene(accepting: "t1")
        let auth = RefreshingAuthentication(AccessToken("old", expiresIn: .seconds(-1))) { scene.fetch($0) }
        #expect(try await scene.status(scene.request(auth)) == 200)
        #expect(scene.server.requestCount == 1)
    }

    @Test func nonReplayableBodyIsNotResent() async throws {
        let scene = try TokenScene(accepting: "t1")
        let auth = RefreshingAuthentication(AccessToken("old")) { scene.fetch($0) }
        var request = scene.request(auth)
        request.method = .post
        let pieces = AsyncStream<[UInt8]> {
            $0.yield(Array("once".utf8)); $0.finish()
        }
        request.body = .stream(pieces)
        #expect(try await scene.status(request) == 401)
        #expect(scene.fetches.withLock { $0 } == 0)
        // The next request knows that the server has refused the token.
        #expect(try await scene.status(scene.request(auth)) == 200)
        #expect(scene.server.requestCount == 2)
    }

    @Test func requestsOwnCredentialsTakePrecedence() async throws {
        let scene = try TokenScene(accepting: "mine")
        let auth = RefreshingAuthentication { scene.fetch($0) }
        var request = scene.request(auth)
        request.fields[.authorization] = "Bearer mine"
        #expect(try await scene.status(request) == 200)
        var anonymous = scene.request(auth)
        anonymous.options = .anonymous
        #expect(try await scene.status(anonymous) == 401)
        #expect(scene.fetches.withLock { $0 } == 0)
    }

    // MARK: Failures

    @Test func failedRefreshFailsTheRequest() async throws {
        let scene = try TokenScene(accepting: "t1")
        let tries = Lock(0)
        let auth = RefreshingAuthentication(AccessToken("secret-old")) { old in
            #expect(old?.value == "secret-old")
            let count = tries.withLock { count in
                count += 1
                return count
            }
            if count == 1 { throw RefreshFailed() }
            return scene.fetch(old)
        }
        let error = try await networkError { try await scene.status(scene.request(auth)) }
        #expect(error.kind == .authenticationFailed && error.cause is RefreshFailed)
        #expect(error.response?.status == .unauthorized && error.phase == .validating)
        #expect(!error.description.contains("secret"))
        #expect(error.retriability == .never)
        // The next request refreshes again and does not send the refused token.
        #expect(try await scene.status(scene.request(auth)) == 200)
        #expect(scene.server.requestCount == 2)
    }

    @Test func repeatedRefreshFailuresBackOff() async throws {
        let scene = try TokenScene(accepting: "t1")
        let now = Lock(Date(timeIntervalSince1970: 1_700_000_000))
        let tries = Lock(0)
        let settings = RefreshingAuthentication.Settings(now: { now.withLock { $0 } })
        let auth = RefreshingAuthentication(settings: settings) { old in
            let count = tries.withLock { count in
                count += 1
                return count
            }
            if count <= 2 { throw NetworkError(.connectionLost, phase: .receiving, "down") }
            return scene.fetch(old)
        }
        for _ in 0..<2 {
            let error = try await networkError { try await scene.status(scene.request(auth)) }
            #expect(error.kind == .authenticationFailed && error.retryAfter == nil)
        }
        for _ in 0..<3 {
            let error = try await networkError { try await scene.status(scene.request(auth)) }
            #expect(error.kind == .authenticationFailed && error.retriability == .safe(after: .seconds(2)))
            #expect((error.cause as? NetworkError)?.kind == .connectionLost)
        }
        #expect(tries.withLock { $0 } == 2 && scene.server.requestCount == 0)
        now.withLock { $0.addTimeInterval(2) }
        #expect(try await scene.status(scene.request(auth)) == 200)
    }

    @Test func repeatedRefusalsLimitRefreshes() async throws {
        let scene = try TokenScene(accepting: "t2")
        let now = Lock(Date(timeIntervalSince1970: 1_700_000_000))
        let settings = RefreshingAuthentication.Settings(now: { now.withLock { $0 } })
        let auth = RefreshingAuthentication(AccessToken("old"), settings: settings) { scene.fetch($0) }
        for _ in 0..<5 { #expect(try await scene.status(scene.request(auth)) == 401) }
        // The first request was sent twice; for a second, the other requests return their 401 without a refresh.
        #expect(scene.fetches.withLock { $0 } == 1 && scene.server.requestCount == 6)
        now.withLock { $0.addTimeInterval(1) }
        #expect(try await scene.status(scene.request(auth)) == 200)
        #expect(scene.fetches.withLock { $0 } == 2)
        // The server accepted the token, so the next refusal causes a refresh again.
        scene.accept("t3")
        #expect(try await scene.status(scene.request(auth)) == 200)
    }

    @Test func cancellationErrorOfTheClosureIsAnAuthenticationFailure() async throws {
        let scene = try TokenScene(accepting: "t1")
        let auth = RefreshingAuthentication { _ in throw CancellationError() }
        let error = try await networkError { try await scene.status(scene.request(auth)) }
        #expect(error.kind == .authenticationFailed && error.phase == .preparing)
        #expect(scene.server.requestCount == 0)
    }

    @Test func refreshTimeoutFailsTheRequestAndKeepsTheLateToken() async throws {
        let scene = try TokenScene(accepting: "t1")
        let (gate, clock) = (Gate(), StubClock())
        let settings = RefreshingAuthentication.Settings(timeout: .seconds(5), clock: clock)
        let auth = RefreshingAuthentication(settings: settings) { old in
            // In a task that is not cancelled with the refresh.
            _ = await Task { await gate.wait() }.value
            return scene.fetch(old)
        }
        let request = scene.request(auth)
        let waiting = Task { try await networkError { try await scene.status(request) } }
        await clock.waitForSleeper(at: .seconds(5))
        clock.advance(by: .seconds(5))
        let error = try await waiting.value
        #expect(error.kind == .authenticationFailed && error.message.contains("5"))
        // While the late refresh runs, no second one starts, and its token is used.
        let second = try await networkError { try await scene.status(scene.request(auth)) }
        #expect(second.kind == .authenticationFailed)
        gate.open()
        while auth.token == nil, !Task.isCancelled { await Task.yield() }
        #expect(try await scene.status(scene.request(auth)) == 200)
        #expect(scene.fetches.withLock { $0 } == 1)
    }

    @Test func endlessRefreshIsReplacedByAnother() async throws {
        let scene = try TokenScene(accepting: "t2")
        let (gate, clock, calls) = (Gate(), StubClock(), Lock(0))
        let settings = RefreshingAuthentication.Settings(timeout: .seconds(5), clock: clock)
        let auth = RefreshingAuthentication(settings: settings) { old in
            let call = calls.withLock { calls in
                calls += 1
                return calls
            }
            if call > 1 { throw RefreshFailed() }
            _ = await Task { await gate.wait() }.value
            return AccessToken("t2")
        }
        let request = scene.request(auth)
        let waiting = Task { try await networkError { try await scene.status(request) } }
        for end in [5, 10] {
            await clock.waitForSleeper(at: .seconds(end))
            clock.advance(by: .seconds(5))
        }
        #expect(try await waiting.value.kind == .authenticationFailed)
        // Then another refresh starts, although the first one still runs.
        while calls.withLock({ $0 }) == 1 {
            #expect(try await networkError { try await scene.status(request) }.kind == .authenticationFailed)
        }
        // The late token of the first refresh is still used.
        gate.open()
        while auth.token == nil, !Task.isCancelled { await Task.yield() }
        #expect(try await scene.status(request) == 200)
    }

    @Test func requestsUseTheOldTokenDuringAnEarlyRefresh() async throws {
        let scene = try TokenScene(accepting: "old")
        let (gate, now) = (Gate(), Lock(Date(timeIntervalSince1970: 1_700_000_000)))
        let old = AccessToken("old", expiry: now.withLock { $0.addingTimeInterval(100) })
        let auth = RefreshingAuthentication(old, settings: .init(now: { now.withLock { $0 } })) { old in
            await gate.wait()
            return scene.fetch(old)
        }
        now.withLock { $0.addTimeInterval(90) }
        for _ in 0..<3 { #expect(try await scene.status(scene.request(auth)) == 200) }
        gate.open()
        while auth.token?.value == "old", !Task.isCancelled { await Task.yield() }
        #expect(scene.fetches.withLock { $0 } == 1 && scene.server.requestCount == 3)
    }

    // MARK: Many requests

    @Test func thousandConcurrentRequestsShareOneRefresh() async throws {
        let scene = try TokenScene(accepting: "t1")
        let auth = RefreshingAuthentication(AccessToken("old")) { scene.fetch($0) }
        let request = scene.request(auth)
        let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<1000 { group.addTask { try await scene.status(request) } }
            return try await group.reduce(into: Set()) { $0.insert($1) }
        }
        #expect(statuses == [200])
        #expect(scene.fetches.withLock { $0 } == 1)
    }

    @Test func shutdownEndsTheWaitForARefresh() async throws {
        let scene = try TokenScene(accepting: "t1")
        let (gate, arrival) = (Gate(), Gate())
        let auth = RefreshingAuthentication { old in
            arrival.open()
            await gate.wait()
            return scene.fetch(old)
        }
        let request = scene.request(auth)
        let waiting = Task { try await networkError { try await scene.status(request) } }
        await arrival.wait()
        try await scene.session.shutdown(.immediate)
        #expect(try await waiting.value.kind == .sessionClosed)
        gate.open()
    }

    @Test func totalTimeoutEndsTheWaitForARefresh() async throws {
        let scene = try TokenScene(accepting: "t1")
        let auth = RefreshingAuthentication { _ in
            await Gate().wait()
            throw RefreshFailed()
        }
        var request = scene.request(auth)
        request.options = .timeout(.milliseconds(50))
        let error = try await networkError { try await scene.status(request) }
        #expect(error.kind == .timedOut && scene.server.requestCount == 0)
    }

    @Test func failedRefreshFailsAllWaitersOnce() async throws {
        let (gate, calls) = (Gate(), Lock(0))
        let source = TokenSource(nil, store: nil, settings: .init()) { _ in
            calls.withLock { $0 += 1 }
            await gate.wait()
            throw RefreshFailed()
        }
        let waiters = (0..<50).map { _ in Task { try await source.token() } }
        while source.waiting < 50, !Task.isCancelled { await Task.yield() }
        gate.open()
        for waiter in waiters {
            let outcome = await waiter.result
            guard case .failure(let error) = outcome, case .notFetched(let cause)? = error as? TokenFailure else {
                return #expect(Bool(false), "\(outcome)")
            }
            #expect(cause is RefreshFailed)
        }
        #expect(calls.withLock { $0 } == 1)
    }

    @Test func cancellationEndsOnlyTheWaitOfTheCancelledTask() async throws {
        let gate = Gate()
        let source = TokenSource(nil, store: nil, settings: .init()) { _ in
            await gate.wait()
            try Task.checkCancellation()
            return AccessToken("t")
        }
        let first = Task { try await source.token() }
        while source.waiting < 1, !Task.isCancelled { await Task.yield() }
        let second = Task { try await source.token() }
        while source.waiting < 2, !Task.isCancelled { await Task.yield() }
        first.cancel()
        #expect(await first.result.isCancelled)
        #expect(source.waiting == 1)
        gate.open()
        #expect(try await second.value.token.value == "t")
        // The token is kept although no caller waits any more.
        #expect(try await source.token().token.value == "t")
        let late = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await TokenSource(nil, store: nil, settings: .init()) { _ in AccessToken("t") }.token()
        }
        #expect(await late.result.isCancelled)
    }

    @Test func requestsInsideTheRefreshClosureDoNotWaitForTheRefresh() async throws {
        let scene = try TokenScene(accepting: "t1")
        let own = Lock<RefreshingAuthentication?>(nil)
        let auth = RefreshingAuthentication { old in
            guard let own = own.withLock({ $0 }) else { throw RefreshFailed() }
            // The request uses the same authenticator, so the refresh could wait for itself.
            let status = try await scene.status(scene.request(own, "/token"))
            #expect(status == 401)
            let transfer = scene.session.transfer(scene.request(own, "/token"))
            #expect(try await transfer.response().head.status == .unauthorized)
            return scene.fetch(old)
        }
        own.withLock { $0 = auth }
        #expect(try await scene.status(scene.request(auth)) == 200)
        own.withLock { $0 = nil }
    }

    @Test func tokenReplacedDuringTheRequestIsUsedForTheResend() async throws {
        let scene = try TokenScene(accepting: "new")
        let auth = RefreshingAuthentication(AccessToken("old")) { scene.fetch($0) }
        var request = scene.request(auth)
        request.interceptors.append(
            .intercept(scope: .attempt) { request, _, next in
                let response = try await next(request)
                // The token is replaced while the request runs.
                if response.head.status == .unauthorized { try await auth.replace(AccessToken("new")) }
                return response
            })
        #expect(try await scene.status(request) == 200)
        #expect(scene.fetches.withLock { $0 } == 0)
    }

    @Test func tokensAreNotSentToOtherOrigins() async throws {
        let scene = try TokenScene(accepting: "t1")
        let other = try MockServer { .text($0.field("Authorization") ?? "nothing") }
        let first = try MockServer { request in
            request.path == "/away" ? .redirect(to: other.url("/there")) : .redirect(to: "/away")
        }
        let auth = RefreshingAuthentication { scene.fetch($0) }
        var request = Request(first.url("/"))
        request.interceptors = [auth]
        #expect(try await scene.session.data(for: request).0 == Data("nothing".utf8))
        #expect(first.requests.allSatisfy { $0.field("Authorization") == "Bearer t1" })
        #expect(first.requestCount == 2)
    }
}

extension Result {
    fileprivate var isCancelled: Bool {
        if case .failure(let error) = self { error is CancellationError } else { false }
    }
}
