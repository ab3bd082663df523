// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

@testable import Curlew
import CurlewSupport
import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Testing

/// Cancelling, pausing, sharing and releasing transfers while interceptors run.
@Suite(.timeLimit(.minutes(5)))
struct InterceptorLifetimeTests {
    /// Suspends before or after `next` until its gate opens, and records whether it was cancelled meanwhile.
    private final class Holder: Interceptor {
        let arrival = Gate()
        let gate = Gate()
        let isAfter: Bool
        let wasCancelled = Lock(false)

        init(isAfter: Bool = false) { self.isAfter = isAfter }

        func intercept(_ request: Request, context: Interception.Context, next: Interception.Next) async throws
            -> IncomingResponse
        {
            if !isAfter { try await hold() }
            let response = try await next(request)
            if isAfter { try await hold() }
            return response
        }

        private func hold() async throws {
            arrival.open()
            guard await gate.wait() else {
                wasCancelled.withLock { $0 = true }
                throw CancellationError()
            }
        }
    }

    @Test(arguments: [false, true])
    func cancellingTransferCancelsInterceptor(_ isAfter: Bool) async throws {
        let server = try MockServer { _ in .text("x") }
        let holder = Holder(isAfter: isAfter)
        let session = Session(interceptors: [holder])
        let transfer = session.transfer(Request(server.url("/"))).start()
        await holder.arrival.wait()
        #expect(transfer.state == .running)
        transfer.cancel()
        let error = try await networkError { try await transfer.value }
        #expect(error.kind == .cancelled && holder.wasCancelled.withLock { $0 })
        #expect(transfer.state == .finished && server.requestCount == (isAfter ? 1 : 0))
        try await session.idle()
    }

    @Test func cancellingTaskCancelsInterceptor() async throws {
        for isAlone in [true, false] {
            let holder = Holder()
            let session = Session(interceptors: [holder])
            let task = Task {
                let request: Request = "http://127.0.0.1:1/"
                return try await isAlone ? session.data(for: request).0 : session.transfer(request).value
            }
            await holder.arrival.wait()
            task.cancel()
            #expect(try await networkError { try await task.value }.kind == .cancelled)
            #expect(holder.wasCancelled.withLock { $0 })
        }
    }

    @Test func transferCancelledBeforeStartRunsNoInterceptor() async throws {
        let count = Lock(0)
        let session = Session(interceptors: [.adapt { _ in count.withLock { $0 += 1 } }])
        let transfer = session.transfer("http://127.0.0.1:1/")
        transfer.cancel()
        #expect(try await networkError { try await transfer.value }.kind == .cancelled)
        #expect(try await networkError { for try await _ in session.transfer("x").bytes {} }.kind == .invalidRequest)
        #expect(count.withLock { $0 } == 1)
        let unstarted = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await session.data(for: "http://127.0.0.1:1/").0
        }
        let error = try await networkError { try await unstarted.value }
        #expect(error.kind == .cancelled && error.phase == .preparing && count.withLock { $0 } == 1)
    }

    @Test func cancellingOneOfTwoWaitersKeepsTransferRunning() async throws {
        let server = try MockServer { _ in .text("both") }
        let holder = Holder()
        let transfer = Session(interceptors: [holder]).transfer(Request(server.url("/")))
        let first = Task { try await transfer.value }
        await holder.arrival.wait()
        let isWaiting = Gate()
        let second = Task {
            isWaiting.open()
            return try await transfer.value
        }
        await isWaiting.wait()
        second.cancel()
        #expect(try await networkError { try await second.value }.kind == .cancelled)
        #expect(!holder.wasCancelled.withLock { $0 })
        holder.gate.open()
        #expect(try await first.value == Data("both".utf8))
        #expect(try await transfer.value == Data("both".utf8))
        #expect(server.requestCount == 1)
    }

    @Test func concurrentWaitersShareOneTransfer() async throws {
        let server = try MockServer { _ in .pattern(PatternBody(seed: 3, length: 200_000)) }
        for mapped in [false, true] {
            let session = Session(interceptors: [
                .intercept { request, _, next in
                    let response = try await next(request)
                    return mapped ? response.mapBytes { $0 } : response
                }
            ])
            let transfer = session.transfer(Request(server.url("/")))
            let digests = try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<20 { group.addTask { try await transfer.value.sha256 } }
                return try await group.reduce(into: Set<String>()) { $0.insert($1) }
            }
            #expect(digests == [PatternBody(seed: 3, length: 200_000).sha256])
        }
        #expect(server.requestCount == 2)
    }

    @Test func releasingTransferCancelsInterceptor() async throws {
        let holder = Holder()
        func watchOnce() async {
            let transfer = Session(interceptors: [holder]).transfer("http://127.0.0.1:1/")
            let task = Task { for await _ in transfer.progress {} }
            await holder.arrival.wait()
            task.cancel()
            await task.value
        }
        await watchOnce()
        while !holder.wasCancelled.withLock({ $0 }), !Task.isCancelled { await Task.yield() }
        #expect(holder.wasCancelled.withLock { $0 })
    }

    @Test func startedTransferRunsWithoutReferences() async throws {
        let server = try MockServer { _ in .text("x") }
        let holder = Holder(isAfter: true)
        let session = Session(interceptors: [holder])
        session.transfer(Request(server.url("/"))).start()
        await holder.arrival.wait()
        holder.gate.open()
        try await session.idle()
        #expect(!holder.wasCancelled.withLock { $0 } && server.requestCount == 1)
    }

    @Test func breakingOutOfByteStreamCancelsTransfer() async throws {
        let server = try MockServer { _ in
            .pattern(PatternBody(seed: 2, length: 1 << 20)).fault(.stall(Gate()), at: .body(70_000))
        }
        let session = Session(interceptors: [.intercept { request, _, next in try await next(request) }])
        let transfer = session.transfer(Request(server.url("/")))
        for try await _ in transfer.bytes { break }
        await server.waitUntil(openConnections: 0)
        await transfer.waitUntilFinished()
        #expect(try await networkError { try await transfer.value }.kind == .cancelled)
        #expect(try await networkError { for try await _ in transfer.stream {} }.kind == .cancelled)
    }

    @Test func cancelledByteReaderThrowsCancelled() async throws {
        let holder = Holder()
        let transfer = Session(interceptors: [holder]).transfer("http://127.0.0.1:1/")
        let task = Task { for try await _ in transfer.bytes {} }
        await holder.arrival.wait()
        task.cancel()
        #expect(try await networkError { try await task.value }.kind == .cancelled)
    }

    @Test func transferPausedInInterceptorSendsNothingUntilResumed() async throws {
        let server = try MockServer { _ in .text("x") }
        let holder = Holder()
        let session = Session(interceptors: [holder])
        let transfer = session.transfer(Request(server.url("/"))).start()
        await holder.arrival.wait()
        transfer.pause()
        #expect(transfer.state == .paused)
        holder.gate.open()
        while await session.transfers.isEmpty, !Task.isCancelled { await Task.yield() }
        #expect(await session.transfers.map(\.state) == [.paused])
        #expect(await session.transfers.map(\.id) == [transfer.id])
        #expect(server.requestCount == 0)
        transfer.resume()
        #expect(try await transfer.value == Data("x".utf8))
    }

    @Test func uploadProgressPassesThroughInterceptors() async throws {
        let gate = Gate()
        let server = try MockServer { _ in .text("done").fault(.stall(gate), at: .start) }
        let session = Session(interceptors: [.intercept { request, _, next in try await next(request) }])
        let body = PatternBody(seed: 4, length: 2 << 20)
        let transfer = session.transfer(Request(.post, server.url("/"), body: .bytes(body.bytes)))
        var order: [String] = []
        for try await element in transfer.stream {
            switch element {
            case .progress(let progress):
                if order.last != "progress" { order.append("progress") }
                if progress.sent == body.length { gate.open() }
            case .head: order.append("head")
            case .bytes: order.append("bytes")
            default: break
            }
        }
        #expect(Array(order.prefix(2)) == ["progress", "head"])
        #expect(server.digests == [body.sha256])
    }

    @Test func totalTimeoutCoversAllAttempts() async throws {
        let gate = Gate()
        defer { gate.open() }
        let server = try MockServer { _ in .text("busy", status: 503).fault(.stall(gate), at: .start) }
        let attempts = Lock(0)
        let session = Session(interceptors: [
            .intercept { request, context, next in
                while true {
                    do throws(NetworkError) { return try await next(request) } catch {
                        attempts.withLock { $0 += 1 }
                        if error.phase == .preparing {
                            #expect(context.remaining == .zero)
                            throw error
                        }
                    }
                }
            }
        ])
        var request = Request(server.url("/"))
        request.options.timeouts = Timeouts(total: .seconds(2))
        let error = try await networkError { try await session.data(for: request) }
        #expect(error.kind == .timedOut && error.phase == .preparing, "\(error)")
        #expect(attempts.withLock { $0 } == 2)
    }

    /// The chain itself has the total timeout while no attempt runs.
    @Test(arguments: [false, true])
    func totalTimeoutCancelsInterceptor(afterHead: Bool) async throws {
        let (clock, reached) = (StubClock(), Signal())
        let server = try MockServer { _ in .text("x") }
        let session = Session(clock: clock)
        var request = Request(server.url("/"))
        request.options = .timeout(.seconds(60))
        request.interceptors = [
            .intercept { request, _, next in
                let response = afterHead ? try await next(request) : nil
                reached.send()
                await Gate().wait()
                try Task.checkCancellation()
                return if let response { response } else { try await next(request) }
            }
        ]
        let value = Task { [request] in try await session.data(for: request) }
        _ = await reached.wait(after: 0)
        await clock.waitUntil(sleepers: 1)
        await session.advance(clock, by: .seconds(59))
        await session.advance(clock, by: .seconds(1))
        let error = try await networkError { try await value.value }
        #expect(error.kind == .timedOut && error.message.contains("options.timeouts.total"), "\(error)")
        #expect(try #require(error.duration) >= .seconds(60))
        #expect(server.requestCount == (afterHead ? 1 : 0))
        // A transfer cancelled before its timeout reports the cancellation.
        let transfer = session.transfer(request).start()
        transfer.cancel()
        #expect(try await networkError { try await transfer.value }.kind == .cancelled)
    }

    @Test func interceptorCanRemoveTotalTimeout() async throws {
        let server = try MockServer { _ in .text("x").fault(.pause(.milliseconds(100)), at: .start) }
        let session = Session(interceptors: [
            .intercept { request, _, next in
                var request = request
                request.options.timeouts = Timeouts()
                return try await next(request)
            }
        ])
        var request = Request(server.url("/"))
        request.options = .timeout(.milliseconds(50))
        #expect(try await session.data(for: request).0 == Data("x".utf8))
    }

    @Test func gracefulShutdownWaitsForInterceptors() async throws {
        let server = try MockServer { _ in .text("x") }
        let holder = Holder()
        let session = Session(interceptors: [holder])
        let transfer = session.transfer(Request(server.url("/"))).start()
        await holder.arrival.wait()
        let closing = Task { try await session.shutdown(.graceful(within: .seconds(600))) }
        // Once the shutdown has begun, the loop refuses new holds.
        let loop = session.core.share.loop
        while loop.hold() != nil { await Task.yield() }
        #expect(try await networkError { try await session.data(for: "http://127.0.0.1:1/") }.kind == .sessionClosed)
        holder.gate.open()
        #expect(try await transfer.value == Data("x".utf8))
        try await closing.value
    }

    @Test func immediateShutdownDoesNotWaitForInterceptors() async throws {
        let holder = Holder()
        let session = Session(interceptors: [holder])
        let transfer = session.transfer("http://127.0.0.1:1/").start()
        await holder.arrival.wait()
        try await session.shutdown(.immediate)
        holder.gate.open()
        #expect(try await networkError { try await transfer.value }.kind == .sessionClosed)
    }

    @Test func taskLocalsReachInterceptors() async throws {
        let seen = Lock<[Int]>([])
        let session = Session(interceptors: [
            .intercept { request, _, _ in
                seen.withLock { $0.append(Local.value) }
                return IncomingResponse(ResponseHead(status: .ok), to: request)
            }
        ])
        try await Local.$value.withValue(7) {
            _ = try await session.data(for: "http://127.0.0.1:1/")
            _ = try await session.transfer("http://127.0.0.1:1/").value
        }
        #expect(seen.withLock { $0 } == [7, 7])
    }

    private enum Local {
        @TaskLocal static var value = 0
    }
}
