// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// Equal requests that share one transfer.
@Suite(.timeLimit(.minutes(5)))
struct CoalescingTests {
    private let session = Session { $0.coalescesRequests = true }

    /// A server that holds the responses to "/held" until the gate opens.
    private func server(_ gate: Gate) throws -> MockServer {
        let count = Lock(0)
        let server = try MockServer { request in
            let number = count.withLock { count in
                count += 1
                return count
            }
            return .text("\(number) \(request.field("Authorization") ?? "-")")
        }
        server.on("GET", "/held") { request in
            .text("held \(request.field("Authorization") ?? "-")").fault(.stall(gate), at: .start)
        }
        return server
    }

    private func waitFor(_ count: Int, _ session: Session) async {
        while session.core.coalescing.waiting < count { await Task.yield() }
    }

    @Test func equalRequestsShareOneTransfer() async throws {
        let gate = Gate()
        let server = try server(gate)
        let request = Request(server.url("/held"))
        try await withThrowingTaskGroup(of: Data.self) { group in
            for _ in 0..<100 { group.addTask { try await session.data(for: request).0 } }
            for _ in 0..<100 { group.addTask { try await session.transfer(request).value } }
            await waitFor(200, session)
            gate.open()
            for try await data in group { #expect(data == Data("held -".utf8)) }
        }
        #expect(server.requestCount == 1)
        #expect(session.core.coalescing.waiting == 0)
        _ = try await session.data(for: request)
        #expect(server.requestCount == 2)
    }

    @Test func waitersMayLeaveAtRandom() async throws {
        let gate = Gate()
        let server = try server(gate)
        let request = Request(server.url("/held"))
        var chance = SeededChance(26)
        let tasks = (0..<1000).map { _ in Task { try await session.data(for: request).0 } }
        await waitFor(1000, session)
        let leaving = Set((0..<1000).filter { _ in chance.next() % 3 > 0 })
        for index in leaving { tasks[index].cancel() }
        for index in leaving {
            let error = await #expect(throws: NetworkError.self) { try await tasks[index].value }
            #expect(error?.isCancellation == true)
        }
        gate.open()
        for index in 0..<1000 where !leaving.contains(index) {
            #expect(try await tasks[index].value == Data("held -".utf8))
        }
        #expect(server.requestCount == 1)
    }

    @Test func transferEndsWhenTheLastRequestLeaves() async throws {
        let gate = Gate()
        let server = try server(gate)
        let tasks = (0..<10).map { _ in Task { try await session.data(for: Request(server.url("/held"))) } }
        await waitFor(10, session)
        while server.requestCount < 1 { await Task.yield() }
        for task in tasks { task.cancel() }
        for task in tasks { _ = await task.result }
        try await session.idle()
        let later = Task { try await session.data(for: Request(server.url("/held"))).0 }
        while server.requestCount < 2 { await Task.yield() }
        gate.open()
        #expect(try await later.value == Data("held -".utf8))
    }

    @Test func differentRequestsDoNotShare() async throws {
        let gate = Gate()
        let server = try server(gate)
        let url = server.url("/held")
        var trusted = Request(url)
        trusted.trust = SystemTrust()
        let requests = [
            trusted, Request(url), Request(url, fields: [.authorization: "Bearer a"]),
            Request(url, fields: [.authorization: "Bearer b"]), Request(url, fields: [.accept: "text/plain"]),
            Request(url + "?a"), Request(url, options: [.decompression(.off)]),
            Request(url, options: [.cookies(.none)]), Request(.head, url),
        ]
        try await withThrowingTaskGroup(of: Void.self) { group in
            for request in requests { group.addTask { _ = try await session.data(for: request) } }
            // HEAD and another query have other routes, so they do not wait.
            while server.requestCount < requests.count { await Task.yield() }
            gate.open()
            try await group.waitForAll()
        }
        #expect(server.requestCount == requests.count)
    }

    @Test func authenticatorsAreCompared() async throws {
        let gate = Gate()
        let server = try server(gate)
        func request(_ interceptor: any Interceptor) -> Request {
            var request = Request(server.url("/held"))
            request.interceptors = [interceptor]
            return request
        }
        let own = Own()
        let requests: [(Request, String)] = [
            (request(.bearer("a")), "held Bearer a"), (request(.bearer("b")), "held Bearer b"),
            (request(.basic("u", "p")), "held Basic dTpw"), (request(own), "held own"), (request(Own()), "held own"),
        ]
        try await withThrowingTaskGroup(of: (String, String).self) { group in
            for (request, expected) in requests + requests {
                group.addTask {
                    (String(decoding: try await session.data(for: request).0, as: UTF8.self), expected)
                }
            }
            await waitFor(10, session)
            gate.open()
            for try await (body, expected) in group { #expect(body == expected) }
        }
        #expect(server.requestCount == requests.count)
    }

    /// An interceptor that is compared by its identity.
    private final class Own: Interceptor {
        let scope = Interception.Scope.attempt

        func intercept(
            _ request: Request, context: Interception.Context, next: Interception.Next
        ) async throws -> IncomingResponse {
            var request = request
            request.fields[.authorization] = "own"
            return try await next(request)
        }
    }

    @Test func interceptorsThatCannotBeComparedPreventSharing() async throws {
        let gate = Gate()
        let server = try server(gate)
        var request = Request(server.url("/held"))
        request.interceptors = [.adapt(scope: .attempt) { $0.fields["X-Own"] = "1" }]
        let sent = request
        let tasks = (0..<2).map { _ in Task { try await session.data(for: sent) } }
        while server.requestCount < 2 { await Task.yield() }
        gate.open()
        for task in tasks { _ = try await task.value }
    }

    /// An interceptor whose comparison uses the session.
    private struct Peeking: Interceptor, Hashable {
        let scope = Interception.Scope.attempt
        let session: Session

        static func == (first: Peeking, second: Peeking) -> Bool { first.session.core.coalescing.waiting >= 0 }
        func hash(into hasher: inout Hasher) { _ = session.core.coalescing.waiting }

        func intercept(
            _ request: Request, context: Interception.Context, next: Interception.Next
        ) async throws -> IncomingResponse { try await next(request) }
    }

    /// A comparison under the lock would wait for itself.
    @Test func interceptorsAreComparedWithoutALock() async throws {
        let gate = Gate()
        let server = try server(gate)
        var request = Request(server.url("/held"))
        request.interceptors = [Peeking(session: session)]
        let sent = request
        let tasks = (0..<2).map { _ in Task { try await session.data(for: sent) } }
        await waitFor(2, session)
        gate.open()
        for task in tasks { _ = try await task.value }
        #expect(server.requestCount == 1)
    }

    @Test func interceptorsOfTheTransferRunForEachRequest() async throws {
        let gate = Gate()
        let server = try server(gate)
        let count = Lock(0)
        let session = Session(
            interceptors: [
                .intercept { request, _, next in
                    count.withLock { $0 += 1 }
                    return try await next(request)
                }
            ]
        ) { $0.coalescesRequests = true }
        let tasks = (0..<5).map { _ in Task { try await session.data(for: Request(server.url("/held"))) } }
        await waitFor(5, session)
        gate.open()
        for task in tasks { _ = try await task.value }
        #expect(count.withLock { $0 } == 5 && server.requestCount == 1)
    }

    @Test func errorsReachAllWaiters() async throws {
        let gate = Gate()
        let server = try MockServer { _ in .text("x").fault(.stall(gate), at: .start).fault(.reset, at: .head(5)) }
        let tasks = (0..<5).map { _ in Task { try await session.data(for: Request(server.url("/"))) } }
        await waitFor(5, session)
        gate.open()
        for task in tasks {
            let error = await #expect(throws: NetworkError.self) { try await task.value }
            #expect(error?.kind == .connectionLost)
        }
    }

    @Test func streamsAndUnsafeRequestsDoNotShare() async throws {
        let gate = Gate()
        let server = try server(gate)
        let streams = (0..<2).map { _ in
            Task {
                var count = 0
                for try await chunk in session.transfer(Request(server.url("/held"))).bytes { count += chunk.count }
                return count
            }
        }
        while server.requestCount < 2 { await Task.yield() }
        gate.open()
        for stream in streams { #expect(try await stream.value == 6) }
        async let first = session.data(for: Request(.post, server.url("/post")))
        async let second = session.data(for: Request(.post, server.url("/post")))
        _ = try await (first, second)
        #expect(server.requestCount == 4)
    }

    @Test func optionOfTheRequestDecides() async throws {
        let gate = Gate()
        let server = try server(gate)
        let plain = Session()
        let shared = Request(server.url("/held"), options: .coalescing)
        let tasks = (0..<3).map { _ in Task { try await plain.data(for: shared) } }
        await waitFor(3, plain)
        gate.open()
        for task in tasks { _ = try await task.value }
        #expect(server.requestCount == 1)
    }

    @Test func sharedResponseIsStoredOnceAndSaysSo() async throws {
        let gate = Gate()
        let server = try MockServer { _ in
            .text("x").field("Cache-Control", "max-age=60").fault(.stall(gate), at: .start)
        }
        let cache = HTTPCache()
        let session = Session(cache: cache) { $0.coalescesRequests = true }
        let tasks = (0..<3).map { _ in
            Task { try await session.transfer(Request(server.url("/"))).response() }
        }
        await waitFor(3, session)
        gate.open()
        var collapsed = 0
        for task in tasks {
            let response = try await task.value
            collapsed += response.head.cache?.isCollapsed == true ? 1 : 0
            #expect(response.metrics.responseBodyBytes == 1 && response.metrics.cache?.isStored == true)
        }
        #expect(
            collapsed == 2 && cache.statistics.stores == 1 && cache.statistics.collapsed == 2
                && server.requestCount == 1)
    }

    @Test func requestJoinsAfterAnotherHasLeft() async throws {
        let gate = Gate()
        let server = try server(gate)
        let request = Request(server.url("/held"))
        let tasks = (0..<2).map { _ in Task { try await session.data(for: request).0 } }
        await waitFor(2, session)
        while server.requestCount < 1 { await Task.yield() }
        tasks[0].cancel()
        _ = await tasks[0].result
        let late = Task { try await session.data(for: request).0 }
        while session.core.coalescing.waiting < 2, server.requestCount < 2 { await Task.yield() }
        gate.open()
        #expect(try await tasks[1].value == Data("held -".utf8))
        #expect(try await late.value == Data("held -".utf8))
        #expect(server.requestCount == 1)
    }
}
