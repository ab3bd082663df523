// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// Tokens that are got once for all who need them.
@Suite(.timeLimit(.minutes(5)))
struct RefreshingTests {
    /// A server that takes one token at a time, and counts.
    private final class Scene: Sendable {
        let server: MockServer
        let session: Session
        private let good: Lock<String>
        let fetches = Lock(0)

        init(accepting token: String) throws {
            let good = Lock(token)
            self.good = good
            server = try MockServer { request in
                request.field("Authorization") == "Bearer " + good.withLock { $0 }
                    ? .text("fine") : .text("who?", status: 401)
            }
            session = Session()
        }

        func accept(_ token: String) { good.withLock { $0 = token } }

        func request(_ auth: any Authenticator, _ path: String = "/") -> Request {
            var request = Request(server.url(path))
            request.interceptors = [auth]
            return request
        }

        /// Answers with tokens that are numbered.
        func fetch(_ old: AccessToken?) -> AccessToken {
            let number = fetches.withLock { count in
                count += 1
                return count
            }
            return AccessToken("t\(number)")
        }

        func status(_ request: Request) async throws -> Int { try await session.data(for: request).1.status.code }
    }

    private func failure(_ body: () async throws -> Void) async throws -> NetworkError {
        do { try await body() } catch let error as NetworkError { return error }
        throw Unexpected()
    }

    private struct Unexpected: Error {}
    private struct NoLuck: Error {}

    // MARK: One request

    @Test func theFirstRequestGetsAToken() async throws {
        let scene = try Scene(accepting: "t1")
        let auth = RefreshingAuthentication { scene.fetch($0) }
        #expect(auth.token == nil)
        #expect(try await scene.status(scene.request(auth)) == 200)
        #expect(try await scene.status(scene.request(auth)) == 200)
        #expect(scene.fetches.withLock { $0 } == 1 && scene.server.requestCount == 2)
        #expect(auth.token?.value == "t1")
    }

    @Test func aRefusedTokenIsReplacedAndTheRequestSentAgain() async throws {
        let scene = try Scene(accepting: "t1")
        let auth = RefreshingAuthentication(AccessToken("old")) { scene.fetch($0) }
        #expect(try await scene.status(scene.request(auth)) == 200)
        #expect(scene.server.requestCount == 2)
    }

    @Test func aSecondRefusalIsTheResult() async throws {
        let scene = try Scene(accepting: "never")
        let auth = RefreshingAuthentication(AccessToken("old")) { scene.fetch($0) }
        let (data, head) = try await scene.session.data(for: scene.request(auth))
        #expect(head.status == .unauthorized && data == Data("who?".utf8))
        #expect(scene.server.requestCount == 2 && scene.fetches.withLock { $0 } == 1)
    }

    @Test func anExpiringTokenIsReplacedBefore() async throws {
        let scene = try Scene(accepting: "t1")
        let auth = RefreshingAuthentication(AccessToken("old", expiresIn: .seconds(-1))) { scene.fetch($0) }
        #expect(try await scene.status(scene.request(auth)) == 200)
        #expect(scene.server.requestCount == 1)
    }

    @Test func aBodyThatCanBeReadOnceIsNotSentAgain() async throws {
        let scene = try Scene(accepting: "t1")
        let auth = RefreshingAuthentication(AccessToken("old")) { scene.fetch($0) }
        var request = scene.request(auth)
        request.method = .post
        let pieces = AsyncStream<[UInt8]> {
            $0.yield(Array("once".utf8)); $0.finish()
        }
        request.body = .stream(pieces)
        #expect(try await scene.status(request) == 401)
        #expect(scene.fetches.withLock { $0 } == 0)
        // But the next request knows that the token is no good.
        #expect(try await scene.status(scene.request(auth)) == 200)
        #expect(scene.server.requestCount == 2)
    }

    @Test func theRequestsOwnWordWins() async throws {
        let scene = try Scene(accepting: "mine")
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

    @Test func aFailedFetchFailsTheRequest() async throws {
        let scene = try Scene(accepting: "t1")
        let tries = Lock(0)
        let auth = RefreshingAuthentication(AccessToken("secret-old")) { old in
            #expect(old?.value == "secret-old")
            let count = tries.withLock { count in
                count += 1
                return count
            }
            if count == 1 { throw NoLuck() }
            return scene.fetch(old)
        }
        let error = try await failure { _ = try await scene.status(scene.request(auth)) }
        #expect(error.kind == .authenticationFailed && error.cause is NoLuck)
        #expect(error.response?.status == .unauthorized && error.phase == .validating)
        #expect(!error.description.contains("secret"))
        #expect(error.retriability == .never)
        // The next one tries again, and does not send what was refused.
        #expect(try await scene.status(scene.request(auth)) == 200)
        #expect(scene.server.requestCount == 2)
    }

    @Test func whatTheClosureThrowsIsNoCancellation() async throws {
        let scene = try Scene(accepting: "t1")
        let auth = RefreshingAuthentication { _ in throw CancellationError() }
        let error = try await failure { _ = try await scene.status(scene.request(auth)) }
        #expect(error.kind == .authenticationFailed && error.phase == .preparing)
        #expect(scene.server.requestCount == 0)
    }

    @Test func whatTakesTooLongIsNotWaitedFor() async throws {
        let scene = try Scene(accepting: "t1")
        let gate = Gate()
        let settings = RefreshingAuthentication.Settings(timeout: .seconds(5), clock: NotingClock())
        let auth = RefreshingAuthentication(settings: settings) { old in
            // In a task that does not hear of cancellation.
            _ = await Task { await gate.wait() }.value
            return scene.fetch(old)
        }
        let error = try await failure { _ = try await scene.status(scene.request(auth)) }
        #expect(error.kind == .authenticationFailed && error.message.contains("5"))
        // While it still goes on nobody begins another, and what it brings late is used.
        let second = try await failure { _ = try await scene.status(scene.request(auth)) }
        #expect(second.kind == .authenticationFailed)
        gate.open()
        while auth.token == nil { await Task.yield() }
        #expect(try await scene.status(scene.request(auth)) == 200)
        #expect(scene.fetches.withLock { $0 } == 1)
    }

    // MARK: Many requests

    @Test func aThousandRequestsGetOneToken() async throws {
        let scene = try Scene(accepting: "t1")
        let auth = RefreshingAuthentication(AccessToken("old")) { scene.fetch($0) }
        let request = scene.request(auth)
        let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<1000 { group.addTask { try await scene.status(request) } }
            return try await group.reduce(into: Set()) { $0.insert($1) }
        }
        #expect(statuses == [200])
        #expect(scene.fetches.withLock { $0 } == 1)
    }

    @Test func aFailedFetchFailsAllWhoWaitOnce() async throws {
        let (gate, calls) = (Gate(), Lock(0))
        let source = TokenSource(nil, store: nil, settings: .init()) { _ in
            calls.withLock { $0 += 1 }
            await gate.wait()
            throw NoLuck()
        }
        let waiters = (0..<50).map { _ in Task { try await source.token() } }
        while source.waiting < 50 { await Task.yield() }
        gate.open()
        for waiter in waiters {
            let outcome = await waiter.result
            guard case .failure(let error) = outcome, case .notFetched(let cause)? = error as? TokenFailure else {
                return #expect(Bool(false), "\(outcome)")
            }
            #expect(cause is NoLuck)
        }
        #expect(calls.withLock { $0 } == 1)
    }

    @Test func whoIsCancelledStopsWaitingAndTheOthersDoNot() async throws {
        let gate = Gate()
        let source = TokenSource(nil, store: nil, settings: .init()) { _ in
            await gate.wait()
            try Task.checkCancellation()
            return AccessToken("t")
        }
        let first = Task { try await source.token() }
        while source.waiting < 1 { await Task.yield() }
        let second = Task { try await source.token() }
        while source.waiting < 2 { await Task.yield() }
        first.cancel()
        #expect(await first.result.isCancelled)
        #expect(source.waiting == 1)
        gate.open()
        #expect(try await second.value.token.value == "t")
        // Also when nobody waits any more the token is kept.
        #expect(try await source.token().token.value == "t")
        let late = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await TokenSource(nil, store: nil, settings: .init()) { _ in AccessToken("t") }.token()
        }
        #expect(await late.result.isCancelled)
    }

    @Test func requestsOfTheClosureWaitForNobody() async throws {
        let scene = try Scene(accepting: "t1")
        let own = Lock<RefreshingAuthentication?>(nil)
        let auth = RefreshingAuthentication { old in
            guard let own = own.withLock({ $0 }) else { throw NoLuck() }
            // The same client: without care it would wait for itself.
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

    @Test func aTokenThatWasReplacedInTheMeantimeIsUsed() async throws {
        let scene = try Scene(accepting: "new")
        let auth = RefreshingAuthentication(AccessToken("old")) { scene.fetch($0) }
        var request = scene.request(auth)
        request.interceptors.append(
            .intercept(scope: .attempt) { request, _, next in
                let response = try await next(request)
                // Somebody logs in while the request is on its way.
                if response.head.status == .unauthorized { try await auth.replace(AccessToken("new")) }
                return response
            })
        #expect(try await scene.status(request) == 200)
        #expect(scene.fetches.withLock { $0 } == 0)
    }

    @Test func credentialsStayAtTheirOrigin() async throws {
        let scene = try Scene(accepting: "t1")
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

    // MARK: Stores

    private final class Shelf: TokenStore {
        let kept: Lock<AccessToken?>
        let loads = Lock(0)
        let fails = Lock(false)
        let failsToSave = Lock(false)

        init(_ token: AccessToken?) { kept = Lock(token) }

        func load() async throws -> AccessToken? {
            loads.withLock { $0 += 1 }
            if fails.withLock({ $0 }) { throw NoLuck() }
            return kept.withLock { $0 }
        }

        func save(_ token: AccessToken?) async throws {
            if fails.withLock({ $0 }) || failsToSave.withLock({ $0 }) { throw NoLuck() }
            kept.withLock { $0 = token }
        }
    }

    @Test func aStoreIsAskedOnceAndKeepsWhatComes() async throws {
        let scene = try Scene(accepting: "kept")
        let shelf = Shelf(AccessToken("kept", refreshToken: "r"))
        let auth = RefreshingAuthentication(store: shelf) { old in
            #expect(old?.refreshToken == "r")
            return scene.fetch(old)
        }
        #expect(try await scene.status(scene.request(auth)) == 200)
        #expect(scene.fetches.withLock { $0 } == 0)
        scene.accept("t1")
        #expect(try await scene.status(scene.request(auth)) == 200)
        #expect(shelf.kept.withLock { $0?.value } == "t1" && shelf.loads.withLock { $0 } == 1)
        try await auth.replace(nil)
        #expect(shelf.kept.withLock { $0 } == nil && auth.token == nil)
    }

    @Test func whatIsKeptButExpiredIsTheOldToken() async throws {
        let scene = try Scene(accepting: "t1")
        let shelf = Shelf(AccessToken("kept", expiresIn: .seconds(-5), refreshToken: "r"))
        let auth = RefreshingAuthentication(store: shelf) { old in
            #expect(old?.refreshToken == "r")
            return scene.fetch(old)
        }
        #expect(try await scene.status(scene.request(auth)) == 200)
    }

    @Test func whatIsKeptWinsOverTheFirstToken() async throws {
        let scene = try Scene(accepting: "first")
        let shelf = Shelf(nil)
        let auth = RefreshingAuthentication(AccessToken("first"), store: shelf) { scene.fetch($0) }
        #expect(auth.token?.value == "first")
        #expect(try await scene.status(scene.request(auth)) == 200)
        // It is kept from now on, and what takes its place too.
        #expect(shelf.kept.withLock { $0?.value } == "first")
        scene.accept("t1")
        #expect(try await scene.status(scene.request(auth)) == 200)
        let next = RefreshingAuthentication(AccessToken("first"), store: shelf) { scene.fetch($0) }
        #expect(try await scene.status(scene.request(next)) == 200)
        #expect(scene.fetches.withLock { $0 } == 1 && next.token?.value == "t1")
    }

    @Test func aStoreThatFailsIsHeardOfOnce() async throws {
        let scene = try Scene(accepting: "t1")
        let shelf = Shelf(nil)
        shelf.fails.withLock { $0 = true }
        let auth = RefreshingAuthentication(store: shelf) { scene.fetch($0) }
        let error = try await failure { _ = try await scene.status(scene.request(auth)) }
        #expect(error.kind == .authenticationFailed && error.cause is NoLuck)
        #expect(scene.fetches.withLock { $0 } == 0)
        let full = Shelf(AccessToken("old"))
        full.failsToSave.withLock { $0 = true }
        let broken = RefreshingAuthentication(store: full) { scene.fetch($0) }
        let second = try await failure { _ = try await scene.status(scene.request(broken)) }
        #expect(second.cause is NoLuck && second.message.contains("store"))
        #expect(broken.token?.value == "t1")
        #expect(try await scene.status(scene.request(broken)) == 200)
    }
}

extension Result {
    fileprivate var isCancelled: Bool {
        if case .failure(let error) = self { error is CancellationError } else { false }
    }
}
