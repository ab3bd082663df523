// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// Retries that wait for network connectivity.
@Suite(.timeLimit(.minutes(5)))
struct ConnectivityTests {
    /// A stand-in for the machine's connectivity, which returns when its gate opens.
    private struct ManualConnectivity: Sendable {
        let gate = Gate()
        private let reached = Signal()
        var arrivals: UInt64 { reached.count }

        func wait() async {
            reached.send()
            _ = await gate.wait()
        }

        func waitUntilReached() async { _ = await reached.wait(after: 0) }
    }

    private let policy = RetryPolicy(
        limit: 2, backoff: RetryPolicy.Backoff(first: .seconds(1)), waitsForConnectivity: true)

    /// A request that fails with the given errors in order and then succeeds.
    private func request(
        _ policy: RetryPolicy, _ clock: any Clock<Duration>, _ failures: [NetworkError.Kind], _ path: ManualConnectivity
    ) -> (request: Request, sent: Lock<Int>) {
        let left = Lock(failures)
        let sent = Lock(0)
        var request: Request = "http://127.0.0.1:1/"
        request.interceptors = [
            RetryInterceptor(policy, clock: clock, chance: { 1 }, connectivity: { _ in await path.wait() }),
            .intercept { request, _, _ in
                sent.withLock { $0 += 1 }
                if let kind = left.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) {
                    throw NetworkError(kind, phase: .connecting, "no route")
                }
                return IncomingResponse(ResponseHead(status: .ok), to: request)
            },
        ]
        return (request, sent)
    }

    @Test(arguments: [NetworkError.Kind.cannotConnect, .cannotResolve]) func retryWaitsForConnectivity(
        _ kind: NetworkError.Kind
    ) async throws {
        let (clock, path) = (RecordingClock(), ManualConnectivity())
        let (request, sent) = request(policy, clock, [kind], path)
        let transfer = Session().transfer(request).start()
        await path.waitUntilReached()
        #expect(sent.withLock { $0 } == 1)
        path.gate.open()
        _ = try await transfer.value
        #expect(sent.withLock { $0 } == 2)
        #expect(await clock.notes.all() == [.seconds(1)], "the backoff follows")
    }

    @Test func otherFailuresAndPoliciesDoNotWaitForConnectivity() async throws {
        let path = ManualConnectivity()
        let (lost, first) = request(policy, RecordingClock(), [.connectionLost, .timedOut], path)
        _ = try await Session().data(for: lost)
        let (plain, second) = request(RetryPolicy(limit: 2, backoff: .none), RecordingClock(), [.cannotConnect], path)
        _ = try await Session().data(for: plain)
        #expect(path.arrivals == 0 && first.withLock { $0 } == 3 && second.withLock { $0 } == 2)
    }

    @Test func deadlineEndsTheConnectivityWait() async throws {
        let (clock, path) = (StubClock(), ManualConnectivity())
        var policy = policy
        policy.deadline = .seconds(20)
        let (request, sent) = request(policy, clock, [.cannotConnect, .cannotConnect], path)
        let transfer = Session().transfer(request).start()
        await path.waitUntilReached()
        await clock.waitUntil(sleepers: 1)
        clock.advance(by: .seconds(20))
        let error = try await networkError { try await transfer.value }
        #expect(error.kind == .cannotConnect && error.attempts == 1 && error.earlier.isEmpty)
        #expect(sent.withLock { $0 } == 1)
    }

    @Test func cancellationEndsTheConnectivityWait() async throws {
        let path = ManualConnectivity()
        let (request, sent) = request(policy, RecordingClock(), [.cannotConnect], path)
        let transfer = Session().transfer(request).start()
        await path.waitUntilReached()
        transfer.cancel()
        #expect(try await networkError { try await transfer.value }.kind == .cancelled)
        #expect(sent.withLock { $0 } == 1)
    }

    /// A retry waits for a route to the server; a server on this machine needs no route to the Internet.
    @Test func connectivityWaitUsesTheRouteToTheServer() async {
        let connectivity = Connectivity(monitor: nil, resolver: .system, routes: nil)
        await connectivity.wait(for: "http://127.0.0.1:1/")
        await connectivity.wait(for: "http://localhost:1/")
        await connectivity.wait(for: "not a URL")
        var request: Request = "http://192.0.2.1/"
        request.options.unixSocket = "/nowhere"
        await connectivity.wait(for: request)
    }

    @Test func connectivityWaitUsesTheRouteToTheProxy() async throws {
        let routes = RouteTable(
            Session.Configuration { $0.proxy = .always(try! Proxy("http://127.0.0.1:3128")) }, environment: .current
        ) { _ in fatalError("no TLS") }
        // The proxy looks up the name of the server.
        let resolver = EngineResolver.asynchronous { _ in
            Issue.record("the wait looks up the name of the server")
            return .failure(.unknown("refused"))
        }
        await Connectivity(monitor: nil, resolver: resolver, routes: routes).wait(for: "http://www.example.com/")
    }

    /// The wait ends when a name is not resolved although the machine is connected, or when the kernel does not answer:
    /// only another attempt can tell.
    @Test func connectivityWaitEndsWhenANameIsNotResolved() async {
        let network = Simulated(PathMonitor.Path(.satisfied, outward: PathMonitor.Path.Interface("eth0")))
        await Connectivity(monitor: network.monitor, resolver: .system, routes: nil).wait(for: "http://a.example/")
        network.value = PathMonitor.Path(.unknown, obstacle: .noAnswer)
        await Connectivity(monitor: network.monitor, resolver: .system, routes: nil).wait(for: "http://a.example/")
        network.value = PathMonitor.Path(.unsatisfied, obstacle: .nameNotResolved)
        await Connectivity(monitor: network.monitor, resolver: .system, routes: nil).wait(for: "http://a.example/")
    }

    @Test func connectivityWaitEndsIfTheKernelCannotBeAsked() async {
        let kernel = PathSource(.outside, KernelMonitor<LinkState>("curlew-test", unknown: .unknown) { nil })
        let resolver = EngineResolver.asynchronous { _ in .failure(.unknown("refused")) }
        for host in ["192.0.2.1", "www.example.com"] {
            let monitor = PathMonitor(host: host, resolver: resolver, kernel)
            await Connectivity(monitor: monitor, resolver: resolver, routes: nil).wait(for: "http://a.example/")
        }
    }

    /// The obstacle of a name that was not resolved can change and return, which one iterator does not deliver again.
    @Test func connectivityWaitObservesAnewAfterAnotherObstacle() async {
        let paths = Lock([
            PathMonitor.Path(.unsatisfied, obstacle: .nameNotResolved),
            PathMonitor.Path(.unsatisfied, obstacle: .noRoute),
            PathMonitor.Path(.unsatisfied, obstacle: .nameNotResolved),
            PathMonitor.Path(.unsatisfied, obstacle: .nameNotResolved),
        ])
        // Each stream has one path and does not end.
        let monitor = PathMonitor {
            let (stream, continuation) = AsyncStream<PathMonitor.Path>.makeStream()
            if let path = paths.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) { continuation.yield(path) }
            return stream
        }
        let connectivity = Connectivity(monitor: monitor, resolver: .system, routes: nil)
        await connectivity.wait(for: "http://a.example/", by: RecordingClock())
        #expect(paths.withLock { $0.isEmpty })
    }

    /// Connections to these names use the loopback addresses without a look-up (RFC 6761 §6.3).
    @Test func namesOfThisMachineAreNotLookedUp() async {
        let resolver = EngineResolver.asynchronous { _ in
            Issue.record("a name of this machine was looked up")
            return .failure(.unknown("refused"))
        }
        for host in ["localhost", "api.localhost"] {
            await Connectivity(monitor: nil, resolver: resolver, routes: nil).wait(for: Request("http://\(host):1/"))
            #expect(await PathMonitor(host: host, resolver: resolver).current.isSatisfied)
        }
    }

    @Test func requestForAUnixSocketDoesNotWaitForAPathMonitor() async {
        let network = Simulated(PathMonitor.Path(.unsatisfied, obstacle: .linkDown))
        var request: Request = "http://192.0.2.1/"
        request.options.unixSocket = "/nowhere"
        await Connectivity(monitor: network.monitor, resolver: .system, routes: nil).wait(for: request)
    }

    @Test func sessionWaitsForItsPathMonitor() async throws {
        let network = Simulated(PathMonitor.Path(.unsatisfied, obstacle: .linkDown))
        let session = Session(path: network.monitor) {
            $0.retry = RetryPolicy(limit: 1, backoff: .none, waitsForConnectivity: true)
        }
        #expect(await session.path.current == network.value)
        #expect(await session.copy().path.current == network.value)
        let transfer = session.transfer("http://127.0.0.1:1/")
        let events = transfer.events
        transfer.start()
        for await event in events { if case .waiting = event.kind { break } }
        #expect(transfer.state != .finished)
        network.value = PathMonitor.Path(.satisfied, outward: PathMonitor.Path.Interface("eth0"))
        let error = try await networkError { try await transfer.value }
        #expect(error.kind == .cannotConnect && error.attempts == 2)
    }
}
