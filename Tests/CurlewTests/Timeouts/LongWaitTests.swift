// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew
@testable import CurlewAuth
@testable import CurlewTerminal

/// Every duration option accepts the longest `Duration`: nothing traps, and requests run.
@Suite(.timeLimit(.minutes(5)))
struct LongWaitTests {
    private static let forever = Duration.seconds(Int64.max)
    /// Longer than `Duration.components` can represent.
    private static let longest = Duration.seconds(Int64.max) * 10

    private static let choices: [Timeouts] = [forever, longest].flatMap { time in
        [
            Timeouts(connect: time), Timeouts(responseHead: time), Timeouts(idle: time), Timeouts(total: time),
            Timeouts(queue: time), Timeouts(minimumRate: Timeouts.MinimumRate(bytes: 1, within: time)),
            Timeouts(
                connect: time, responseHead: time, idle: time, total: time, queue: time,
                minimumRate: Timeouts.MinimumRate(bytes: 1, within: time)),
        ]
    }

    /// An interceptor without effect: with it, the chain of the request runs in a task that enforces the timeout.
    private struct Passing: Interceptor {
        func intercept(
            _ request: Request, context: Interception.Context, next: Interception.Next
        ) async throws -> IncomingResponse { try await next(request) }
    }

    private func answer(
        _ request: Request, in session: Session, _ location: SourceLocation = #_sourceLocation
    ) async throws {
        let (data, head) = try await session.data(for: request)
        #expect(head.status == .ok && data == Data("fine".utf8), sourceLocation: location)
        let value = try await session.transfer(request).value
        #expect(value == Data("fine".utf8), sourceLocation: location)
    }

    @Test(arguments: choices, [false, true]) func longestTimeoutsAreAccepted(_ timeouts: Timeouts, isIntercepted: Bool)
        async throws
    {
        let server = try MockServer { _ in .text("fine") }
        var request = Request(server.url("/"))
        request.options.timeouts = timeouts
        if isIntercepted { request.interceptors = [Passing()] }
        try await answer(request, in: Session())
        try await answer(request, in: Session { $0.timeouts = timeouts })
    }

    @Test(arguments: [forever, longest], [false, true])
    func longestTotalTimeoutIsAccepted(_ time: Duration, isIntercepted: Bool) async throws {
        let server = try MockServer { _ in .text("fine") }
        var request = Request(server.url("/"))
        request.options.timeouts.total = time
        if isIntercepted { request.interceptors = [Passing()] }
        try await answer(request, in: Session())
        #expect(!request.curlDescription.contains("--max-time"))
    }

    @Test(arguments: [forever, longest]) func longestSessionLimitsAreAccepted(_ time: Duration) async throws {
        let server = try MockServer { _ in .text("fine") }
        let session = Session {
            $0.limits.idleConnectionLifetime = time
            $0.limits.connectionLifetime = time
            $0.http.expectContinue = .always
            $0.http.expectContinueTimeout = time
        }
        try await answer(Request(.post, server.url("/"), body: .text("x")), in: session)
        try await session.shutdown(.graceful(within: time))
    }

    @Test(arguments: [forever, longest]) func tcpDurationsBeyondTheKernelLimitAreRefused(_ time: Duration) async throws
    {
        let choices: [@Sendable (inout Session.Configuration.TCP) -> Void] = [
            { $0.userTimeout = time }, { $0.keepAlive = .init(idle: time) }, { $0.keepAlive = .init(interval: time) },
        ]
        for choice in choices {
            let session = Session { choice(&$0.tcp) }
            let error = try await networkError { try await session.data(for: "http://127.0.0.1:1/") }
            #expect(error.kind == .invalidRequest)
        }
    }

    @Test(arguments: [forever, longest]) func longestRetryWaitsAreAccepted(_ time: Duration) async throws {
        let server = try MockServer()
        server.on(nil, "/", inOrder: [.status(503).field("Retry-After", "0"), .text("fine"), .text("fine")])
        var policy = RetryPolicy.standard
        policy.longestWait = time
        policy.deadline = time
        policy.backoff = RetryPolicy.Backoff(first: time, longest: time)
        var request = Request(server.url("/"))
        request.options.timeouts.total = time
        request.interceptors = [RetryInterceptor(policy, clock: RecordingClock(), chance: { 0.5 })]
        try await answer(request, in: Session())
        #expect(policy.backoff.ceiling(after: 9) == time)
    }

    /// The connectivity wait is limited by the deadline of the policy.
    @Test(arguments: [forever, longest]) func longestConnectivityWaitIsAccepted(_ time: Duration) async throws {
        var policy = RetryPolicy(limit: 1, backoff: .none, deadline: time)
        policy.waitsForConnectivity = true
        var request = Request("http://127.0.0.1:1/")
        request.interceptors = [RetryInterceptor(policy, connectivity: { _ in })]
        let error = try await networkError { try await Session().data(for: request) }
        #expect(error.kind == .cannotConnect && error.attempts == 2)
    }

    @Test(arguments: [forever, longest]) func longestRateLimitWaitIsAccepted(_ time: Duration) async throws {
        let server = try MockServer { _ in .text("fine") }
        let limits = [
            RateLimitInterceptor(longestWait: time),
            RateLimitInterceptor(requests: 1000, per: .seconds(1), longestWait: time),
            RateLimitInterceptor(requests: 1, per: .seconds(1_000_000_000), burst: .max, longestWait: time),
        ]
        for limit in limits {
            var request = Request(server.url("/"))
            request.interceptors = [limit]
            try await answer(request, in: Session())
        }
        var refused = Request(server.url("/"))
        refused.interceptors = [.rateLimit(requests: 1, per: time)]
        let error = try await networkError { try await Session().data(for: refused) }
        #expect(error.kind == .invalidRequest)
    }

    @Test(arguments: [forever, longest]) func longestCircuitCooldownIsAccepted(_ time: Duration) async throws {
        let server = try MockServer { _ in .status(500) }
        var request = Request(server.url("/"))
        request.interceptors = [.circuitBreaker(failures: 1, cooldown: time)]
        let session = Session()
        #expect(try await session.data(for: request).1.status == .internalServerError)
        let error = try await networkError { try await session.data(for: request) }
        #expect(error.kind == .circuitOpen && !error.detailedDescription.isEmpty)
    }

    @Test(arguments: [forever, longest]) func longestTokenLifetimeIsAccepted(_ time: Duration) async throws {
        let scene = try TokenScene(accepting: "t1")
        let settings = RefreshingAuthentication.Settings(skew: time, timeout: time)
        let auth = RefreshingAuthentication(AccessToken("old", expiresIn: time), settings: settings) {
            scene.fetch($0)
        }
        #expect(try await scene.status(scene.request(auth)) == 200)
        let signature = SigV4Signature(region: "eu-central-1", service: "s3") {
            AWSCredentials(accessKeyID: "AKID", secretAccessKey: "SECRET")
        }
        let error = try await networkError { try await signature.presignedURL(for: "https://h/", expiresIn: time) }
        #expect(error.kind == .invalidRequest)
    }

    @Test(arguments: [forever, longest]) func longestEventSourceDelayIsAccepted(_ time: Duration) async throws {
        let reconnection = EventSource.Reconnection(delay: time, longest: time, jitter: { 100 })
        #expect(reconnection.wait(after: 9, retry: nil, retryAfter: time) == time)
        let clock = RecordingClock()
        try await EventSource.Reconnection(clock: clock).pause(for: time)
        #expect(await clock.notes.all() == [.seconds(1_000_000_000)])
    }

    @Test(arguments: [forever, longest]) func longestPauseGraceIsAccepted(_ time: Duration) async throws {
        let folder = try Folder()
        let gate = Gate()
        let server = try MockServer { request in
            RangeResource(.usual).response(to: request).fault(.stall(gate), at: .body(100_000))
        }
        var options = DownloadOptions()
        options.pauseGrace = time
        let transfer = Session().downloadTransfer(Request(server.url("/")), to: .file(folder("a")), options: options)
            .start()
        for await progress in transfer.progress where progress.received >= 100_000 { break }
        transfer.pause()
        gate.open()
        transfer.resume()
        #expect(try await transfer.value.bytes == 1_234_567)
        #expect(server.requestCount == 1)
    }

    @Test(arguments: [forever, longest]) func longestDurationsCanBeDescribed(_ time: Duration) {
        let error = NetworkError(.cannotConnect, phase: .connecting, "Away.", duration: time, retryAfter: time)
        #expect(error.retriability == .safe(after: time))
        #expect(error.detailedDescription.contains("retry: safe after "))
        #expect(!time.clock.isEmpty && !(Duration.zero - time).brief.isEmpty && time.inSeconds > 1e9)
    }

    @Test func waitsAreClamped() async throws {
        #expect(Self.longest.asWait == .seconds(1_000_000_000) && (Duration.zero - Self.longest).asWait == .zero)
        #expect(Duration.milliseconds(5).asWait == .milliseconds(5))
        #expect(Self.longest.engineTime == 1_000_000_000_000_000_000 && Duration.seconds(-1).engineTime == 0)
        try await ContinuousClock().wait(for: .seconds(Int64.min))
        let wait = Task { try await ContinuousClock().wait(for: Self.longest) }
        wait.cancel()
        await #expect(throws: CancellationError.self) { try await wait.value }
    }
}
