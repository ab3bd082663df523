// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import Testing

@testable import Curlew
@testable import CurlewEngine

/// A clock whose time advances only by sleeps, which return at once.
private final class PassingClock: Clock {
    typealias Instant = RecordingClock.Instant
    private let state = Lock((now: Duration.zero, waits: [Duration]()))

    var now: Instant { Instant(offset: state.withLock { $0.now }) }
    var minimumResolution: Duration { .nanoseconds(1) }
    var waits: [Duration] { state.withLock { $0.waits } }

    func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        state.withLock { state in
            state.waits.append(deadline.offset - state.now)
            state.now = deadline.offset
        }
    }
}

/// Runs the table of `RetryDecisions` with the real interceptor and a scripted network.
@Suite(.timeLimit(.minutes(5)))
struct RetryDecisionTests {
    /// One parsed row.
    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let policy: RetryPolicy
        let request: Request
        let isRead: Bool
        let meets: Meeting
        let waits: [Duration]

        init(_ line: Substring) throws {
            testDescription = String(line)
            let columns = line.split(separator: " ").map(String.init)
            try #require(columns.count >= 7)
            policy = try #require(RetryDecisionTests.policies[columns[0]])
            let (body, isRead) = try #require(RetryDecisionTests.bodies[columns[2]])
            self.isRead = isRead
            var request = Request(Method(columns[1]), "http://127.0.0.1:1/", body: body())
            if columns[3] == "yes" { request.fields[.idempotencyKey] = "\"k\"" }
            if columns[0] == "total" { request.options = .timeout(.seconds(15)) }
            self.request = request
            meets = try Meeting(columns[4], advice: Self.advice(columns[5]))
            waits = columns[6] == "-" ? [] : try columns[6...].map { .seconds(try #require(Int($0))) }
        }

        /// The response fields with the wait that a server asks for.
        private static func advice(_ text: String) -> HeaderFields {
            let sent = HTTPDate(seconds: 784_111_777)
            if text == "-" { return [:] }
            if text.hasPrefix("r=") { return ["RateLimit": "\"default\";\(text)"] }
            if text.hasPrefix("X:") {
                let parts = text.dropFirst(2).split(separator: ";").map(String.init)
                return ["X-RateLimit-Remaining": parts[0], "X-RateLimit-Reset": parts[1]]
            }
            guard text.hasPrefix("date"), let offset = Int64(text.dropFirst(4)) else { return ["Retry-After": text] }
            return ["Date": "\(sent)", "Retry-After": "\(HTTPDate(seconds: sent.seconds + offset))"]
        }
    }

    /// The outcome of each attempt.
    enum Meeting: Sendable {
        case answer(ResponseHead)
        case failure(NetworkError)
        case ownError

        init(_ text: String, advice: HeaderFields) throws {
            if let status = Int(text) {
                self = .answer(ResponseHead(status: Status(status), fields: advice))
                return
            }
            let parts = text.split(separator: "@").map(String.init)
            let phase = try #require(NetworkError.Phase.allCases.first { "\($0)" == parts[1] })
            if parts[0] == "ownError" {
                self = .ownError
            } else if let status = Int(parts[0].drop { !$0.isNumber }) {
                let head = ResponseHead(status: Status(status), fields: advice)
                self = .failure(NetworkError(.unacceptableStatus, phase: phase, "", response: head))
            } else {
                // The raw values of the kinds are their names in snake case.
                let name = parts[0].map { $0.isUppercase ? "_\($0.lowercased())" : "\($0)" }.joined()
                self = .failure(NetworkError(NetworkError.Kind(rawValue: name), phase: phase, ""))
            }
        }

        func response(to request: Request) throws -> IncomingResponse {
            switch self {
            case .answer(let head): return IncomingResponse(head, to: request)
            case .failure(let error): throw error
            case .ownError: throw Odd()
            }
        }

        var kind: NetworkError.Kind? {
            switch self {
            case .answer: nil
            case .failure(let error): error.kind
            case .ownError: .interceptorFailed
            }
        }
    }

    private struct Odd: Error {}

    private static let usual = RetryPolicy.Backoff(first: .seconds(1))
    private static let slow = RetryPolicy.Backoff(first: .seconds(10), longest: .seconds(100))

    static let policies: [String: RetryPolicy] = [
        "none": .never, "one": RetryPolicy(limit: 1, backoff: usual), "two": RetryPolicy(limit: 2, backoff: usual),
        "four": RetryPolicy(limit: 4, backoff: RetryPolicy.Backoff(first: .seconds(1), longest: .seconds(5))),
        "now": RetryPolicy(limit: 2, backoff: .none),
        "brief": RetryPolicy(limit: 2, backoff: usual, longestWait: .seconds(5)),
        "due": RetryPolicy(limit: 4, backoff: slow, deadline: .seconds(35)),
        "total": RetryPolicy(limit: 4, backoff: slow),
        "named": RetryPolicy(limit: 2, statuses: [.notFound, 418, .misdirectedRequest, .tooEarly], backoff: usual),
        "posts": RetryPolicy(limit: 2, methods: RetryPolicy.idempotent.union([.post]), backoff: usual),
        "keys": RetryPolicy(limit: 2, backoff: usual, addsIdempotencyKey: true),
    ]

    static let bodies: [String: (body: @Sendable () -> RequestBody, isRead: Bool)] = [
        "none": ({ .none }, false), "bytes": ({ .text("x") }, false), "file": ({ .file("/dev/null") }, false),
        "stream+": ({ stream(canReplay: true) }, true), "once": ({ stream(canReplay: false) }, true),
        "unread": ({ stream(canReplay: false) }, false),
    ]

    private static func stream(canReplay: Bool) -> RequestBody {
        .stream(AsyncStream<[UInt8]> { $0.finish() }, canReplay: canReplay)
    }

    static let rows = Result {
        try RetryDecisions.table.split(separator: "\n").filter { !$0.hasPrefix("#") }.map { try Row($0) }
    }

    @Test func retryDecisionTableIsConsistent() throws {
        let rows = try Self.rows.get()
        #expect(rows.count >= 150)
        #expect(Set(rows.map(\.testDescription)).count == rows.count, "every row is unique")
        #expect(Set(rows.map(\.waits)).count > 10 && rows.contains { $0.waits.isEmpty })
    }

    @Test func retriesAndWaitsMatchTheTable() async throws {
        for row in try Self.rows.get() { try await check(row) }
    }

    private func check(_ row: Row) async throws {
        let clock = PassingClock()
        let sent = Lock<[String?]>([])
        var request = row.request
        request.interceptors = [
            RetryInterceptor(row.policy, clock: clock, chance: { 1 }),
            .intercept { request, _, _ in
                sent.withLock { $0.append(request.fields[.idempotencyKey]) }
                if row.isRead, let stream = request.body.source as? StreamBody { _ = stream.use?.begin() }
                return try row.meets.response(to: request)
            },
        ]
        let session = Session()
        var failure: NetworkError?
        do throws(NetworkError) { _ = try await session.data(for: request) } catch { failure = error }

        let keys = sent.withLock { $0 }
        #expect(keys.count == row.waits.count + 1, "\(row.testDescription): \(keys.count) times")
        #expect(Set(keys).count == 1, "\(row.testDescription): one key for all attempts")
        #expect(clock.waits == row.waits.filter { $0 > .zero }, "\(row.testDescription)")
        #expect(failure?.kind == row.meets.kind, "\(row.testDescription): \(failure?.detailedDescription ?? "none")")
        if let failure { #expect(failure.earlier.count == row.waits.count && failure.attempts == keys.count) }
    }
}
