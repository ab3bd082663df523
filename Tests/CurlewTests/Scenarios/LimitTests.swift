// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew
@testable import CurlewEngine

/// Edge cases of limits, queues, pauses and progress.
@Suite(.timeLimit(.minutes(5)))
struct LimitTests {
    /// Returns the time until which the transport lets the loop sleep.
    private func deadline(of session: Session) async -> UInt64 {
        await withCheckedContinuation { continuation in
            session.core.share.loop.call { continuation.resume(returning: $0.deadline) }
        }
    }

    @Test func pausedTransferSetsNoLoopTimeout() async throws {
        let silence = try MockServer { _ in .silence }
        let session = Session { $0.timeouts.idle = .milliseconds(100) }
        let held = session.transfer(Request(silence.url("/held")))
        held.pause()
        held.start()
        // The idle timeout of this transfer shows that the time has passed for both.
        let error = try await networkError { try await session.data(for: Request(silence.url("/"))) }
        #expect(error.kind == .timedOut)
        #expect(held.state == .paused)
        #expect(await deadline(of: session) == Monotonic.never)
    }

    @Test func pausedTransferEndsWithItsReleasedSession() async throws {
        let server = try MockServer { _ in .text("x") }
        let (loop, watch) = {
            let session = Session()
            let transfer = session.transfer(Request(server.url("/")))
            transfer.pause()
            transfer.start()
            return (session.core.share.loop, transfer.progress)
        }()
        do {
            var observer = watch.makeAsyncIterator()
            #expect(await observer.next() != nil)
        }
        _ = consume watch
        await loop.waitUntilExited()
        #expect(server.requests.isEmpty)
    }

    @Test func priorityOrdersTransfersQueuedForAHost() async throws {
        let gate = Gate()
        let server = try MockServer { request in
            request.path == "/first" ? .text("x").fault(.stall(gate), at: .start) : .text("x")
        }
        let session = Session { $0.limits.connectionsPerHost = 1 }
        let first = session.transfer(Request(server.url("/first"))).start()
        await gate.waitUntilReached()
        var waiting: [Transfer<Data>] = []
        for (path, priority) in [
            ("/low1", Request.Priority.low), ("/low2", .low), ("/normal", .normal), ("/high", .high),
        ] {
            let options = Request.Options(priority: priority)
            waiting.append(session.transfer(Request(server.url(path), options: options)).start())
        }
        #expect(await session.transfers.map(\.state) == [.running, .queued, .queued, .queued, .queued])
        waiting[1].priority = .high
        // When this returns, the loop has processed the change.
        #expect(await session.transfers.count == 5)
        gate.open()
        for transfer in [first] + waiting { _ = try await transfer.value }
        #expect(server.requests.map(\.path) == ["/first", "/low2", "/high", "/normal", "/low1"])
        #expect(waiting[0].metrics.map { $0.queued > .zero } == true)
    }

    @Test func lastProgressIsReportedDuringAStall() async throws {
        let gate = Gate()
        let script = MockResponse.bytes(Array(repeating: 1, count: 1000))
            .dripping(bytes: 300, every: .milliseconds(5)).fault(.stall(gate), at: .body(900))
        let server = try MockServer { _ in script }
        let transfer = Session().transfer(Request(server.url("/")))
        for await progress in transfer.progress where progress.received == 900 { break }
        #expect(!gate.isOpen)
        gate.open()
        #expect(try await transfer.value.count == 1000)
    }

    @Test func secondConcurrentReaderOfStreamThrows() async throws {
        let gate = Gate()
        let server = try MockServer { _ in .text("x").fault(.stall(gate), at: .start) }
        let stream = Session().transfer(Request(server.url("/"))).stream
        let outcomes = await withTaskGroup(of: NetworkError.Kind?.self) { group in
            for _ in 0..<2 {
                group.addTask {
                    do {
                        for try await _ in stream {}
                        return nil
                    } catch {
                        gate.open()
                        return (error as? NetworkError)?.kind
                    }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(outcomes.contains(.invalidRequest))
        #expect(outcomes.contains(nil))
    }

    @Test func malformedStatusLineAcceptedByLibcurlIsInvalid() async throws {
        let server = try MockServer { _ in .raw("HTTP/1.1  200 OK\r\nContent-Length: 2\r\n\r\nok") }
        let error = try await networkError { try await Session().data(for: Request(server.url("/"))) }
        #expect(error.kind == .invalidResponse)
        #expect(error.message.contains("status line"))
    }

    @Test func negativeBodyLengthsAreRefused() async throws {
        let server = try MockServer()
        let source = AsyncStream<[UInt8]> { $0.finish() }
        for length in [-1, -5] as [Int64] {
            let request = Request(.post, server.url("/"), body: .stream(source, length: length))
            let error = try await networkError { try await Session().data(for: request) }
            #expect(error.kind == .invalidRequest && error.phase == .preparing)
        }
        #expect(server.connectionCount == 0)
    }

    @Test func blanksAroundFieldValuesAreTrimmed() async throws {
        let server = try MockServer { _ in .text("x") }
        let fields: HeaderFields = ["X-Blank": " \t", "X-Wide": "  a b\t"]
        _ = try await Session().data(for: Request(.get, server.url("/"), fields: fields))
        #expect(server.requests.first?.field("X-Blank") == "")
        #expect(server.requests.first?.field("X-Wide") == "a b")
    }

    @Test func framingFieldsOfSessionAreRefused() async throws {
        let server = try MockServer()
        for name in ["Content-Length", "host", "Transfer-Encoding"] as [HeaderName] {
            var configuration = Session.Configuration()
            configuration.fields[name] = "3"
            let session = Session(configuration)
            let error = try await networkError { try await session.data(for: Request(server.url("/"))) }
            #expect(error.kind == .invalidRequest)
            #expect(error.message.contains(name.rawValue))
        }
        #expect(server.connectionCount == 0)
    }

    @Test func sessionCopyKeepsTrust() async throws {
        let authority = try TestAuthority(commonName: "root")
        let server = try MockServer(tls: try authority.issue()) { _ in .text("x") }
        let session = try Session(trust: CustomRoots(pem: authority.certificatePEM))
        #expect(try await session.copy().data(for: Request(server.url("/"))).1.status == 200)
        let distrustful = session.copy(trust: SystemTrust())
        let error = try await networkError { try await distrustful.data(for: Request(server.url("/"))) }
        #expect(error.kind == .untrusted)
    }
}
