// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// Responses that an interceptor keeps and returns for other transfers.
@Suite(.timeLimit(.minutes(5)))
struct KeptResponseTests {
    /// A session whose interceptor returns the response of the first transfer for all transfers.
    private final class Scene: Sendable {
        let server: MockServer
        let session: Session
        let gate = Gate()
        /// Opens when the interceptor returns the kept response.
        let reuse = Gate()
        private let kept: Lock<IncomingResponse?>

        init(
            _ response: MockResponse, stallsAt offset: Int, retries: RetryPolicy = .never,
            scope: Interception.Scope = .attempt
        ) throws {
            let kept = Lock<IncomingResponse?>(nil)
            let (gate, reuse) = (gate, reuse)
            server = try MockServer { _ in response.fault(.stall(gate), at: .body(offset)) }
            var configuration = Session.Configuration()
            configuration.retry = retries
            session = Session(
                configuration,
                interceptors: [
                    .intercept(scope: scope) { request, _, next in
                        if let response = kept.withLock({ $0 }) {
                            reuse.open()
                            return response
                        }
                        let response = try await next(request)
                        kept.withLock { $0 = response }
                        return response
                    }
                ])
            self.kept = kept
        }

        var request: Request { Request(server.url("/")) }

        func transfer() -> Transfer<Data> { session.transfer(request) }

        /// Starts a transfer and waits until its response is kept.
        func first() async -> Transfer<Data> {
            let transfer = transfer().start()
            await gate.waitUntilReached()
            while kept.withLock({ $0 == nil }) { await Task.yield() }
            return transfer
        }

        deinit {
            gate.open()
            kept.withLock { $0 = nil }
        }
    }

    @Test func transferFinishesWithTheResponseOfAnotherTransfer() async throws {
        let scene = try Scene(.text("shared"), stallsAt: 2)
        scene.gate.open()
        _ = try await scene.transfer().value
        #expect(try await scene.session.data(for: scene.request).1.status == .ok)
        #expect(scene.server.requestCount == 1)
        try await scene.session.idle()
    }

    @Test func streamOfACollectedBodyFails() async throws {
        let scene = try Scene(.text("shared"), stallsAt: 2)
        scene.gate.open()
        let first = scene.transfer()
        #expect(try await first.value == Data("shared".utf8))
        let second = scene.transfer()
        let error = try await networkError { for try await _ in second.bytes {} }
        #expect(error.kind == .invalidRequest)
        #expect(try await first.value == Data("shared".utf8))
    }

    /// Two transfers with one response, whose body is still arriving, both get it.
    @Test(arguments: [Interception.Scope.transfer, .attempt])
    func keptResponseGivesItsBodyToBothTransfers(scope: Interception.Scope) async throws {
        let pattern = PatternBody(seed: 8, length: 4000)
        let scene = try Scene(.pattern(pattern), stallsAt: 500, scope: scope)
        let first = await scene.first()
        let second = scene.transfer().start()
        await scene.reuse.wait()
        scene.gate.open()
        let body = Data(pattern.bytes(in: 0..<4000))
        let values = try await [first.value, second.value, second.value, first.value]
        #expect(values.allSatisfy { $0 == body })
        #expect(try await scene.session.data(for: scene.request).0 == body)
    }

    /// A cancelled transfer does not cancel the attempt of the transfer whose response it returns.
    @Test(arguments: [RetryPolicy.never, .standard])
    func cancellationStopsOnlyItsOwnTransfer(retries: RetryPolicy) async throws {
        let scene = try Scene(.text("shared"), stallsAt: 2, retries: retries)
        let first = await scene.first()
        let second = scene.transfer().start()
        await scene.reuse.wait()
        second.cancel()
        #expect(try await networkError { try await second.value }.kind == .cancelled)
        scene.gate.open()
        #expect(try await first.value == Data("shared".utf8))
    }

    /// A stream takes the body of the other transfer, which must end when the reader leaves.
    @Test func readerThatLeavesEndsTheTransferOfTheBody() async throws {
        let scene = try Scene(.pattern(PatternBody(seed: 1, length: 8 << 20)), stallsAt: 100)
        let first = await scene.first()
        let second = scene.transfer()
        for try await _ in second.bytes { break }
        let error = try await networkError { try await first.value }
        #expect(error.kind == .cancelled || error.kind == .invalidRequest)
        scene.gate.open()
        try await scene.session.idle()
    }

    /// Metrics are events of the transfer whose attempt they measure.
    @Test func responseOfAnotherTransferSendsNoMetrics() async throws {
        let scene = try Scene(.text("shared"), stallsAt: 2)
        let first = await scene.first()
        scene.gate.open()
        _ = try await first.value
        let second = scene.transfer()
        let events = second.events
        _ = try await second.value
        var kinds: [String] = []
        for await event in events {
            switch event.kind {
            case .finished(nil): kinds.append("finished")
            case .metrics: kinds.append("metrics")
            default: kinds.append("other")
            }
        }
        #expect(kinds == ["finished"])
    }
}
