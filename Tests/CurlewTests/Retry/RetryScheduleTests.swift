// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Curlew

@Suite("RetrySchedule")
struct RetryScheduleTests {
    private let request: Request = "https://example.com/"
    private let policy = RetryPolicy(limit: 2, backoff: RetryPolicy.Backoff(first: .seconds(1)))

    private func step(
        _ schedule: inout RetrySchedule, _ kind: NetworkError.Kind = .connectionLost,
        _ phase: NetworkError.Phase = .connecting, _ method: Method = .get,
        at time: RetrySchedule.Time = RetrySchedule.Time(elapsed: .zero, remaining: nil)
    ) -> RetrySchedule.Step {
        var request = request
        request.method = method
        let error = NetworkError(kind, phase: phase, "It failed.", request: request)
        return schedule.step(after: error, of: request, at: time, chance: 1)
    }

    @Test func waitsGrowUntilTheLimitIsReached() {
        var schedule = RetrySchedule(policy)
        #expect(step(&schedule) == .retry(after: .seconds(1)))
        #expect(step(&schedule) == .retry(after: .seconds(2)))
        #expect(step(&schedule) == .stop(nil))
    }

    @Test func progressStartsTheCountAgain() {
        var schedule = RetrySchedule(policy)
        #expect(step(&schedule) == .retry(after: .seconds(1)))
        schedule.recordProgress()
        #expect(schedule.failures == 0)
        #expect(step(&schedule) == .retry(after: .seconds(1)))
    }

    @Test(arguments: [NetworkError.Kind.untrusted, .circuitOpen, .cancelled])
    func permanentErrorsStopAtOnce(kind: NetworkError.Kind) {
        var schedule = RetrySchedule(policy)
        #expect(step(&schedule, kind, .securing) == .stop(nil))
    }

    @Test func sentRequestsNeedAnIdempotentMethod() {
        var schedule = RetrySchedule(policy)
        #expect(step(&schedule, .connectionLost, .waiting) == .retry(after: .seconds(1)))
        guard case .stop(let reason?) = step(&schedule, .connectionLost, .waiting, .post) else {
            Issue.record("A POST that the server may have processed is sent again.")
            return
        }
        #expect(reason.contains("Idempotency-Key"))
    }

    @Test func deadlineAndTotalTimeoutStopRetries() {
        var policy = policy
        policy.deadline = .seconds(10)
        var schedule = RetrySchedule(policy)
        let late = RetrySchedule.Time(elapsed: .seconds(9.5), remaining: nil)
        guard case .stop(let reason?) = step(&schedule, at: late) else {
            Issue.record("A retry starts after the deadline.")
            return
        }
        #expect(reason.contains("deadline"))
        schedule = RetrySchedule(policy)
        let short = RetrySchedule.Time(elapsed: .zero, remaining: .seconds(0.5))
        guard case .stop(let reason?) = step(&schedule, at: short) else {
            Issue.record("A retry starts after the total timeout.")
            return
        }
        #expect(reason.contains("timeouts.total"))
        #expect(RetrySchedule(policy).left(with: .seconds(1), at: late) == .zero)
        #expect(RetrySchedule(policy).left(with: .seconds(1), at: short) == .zero)
    }

    @Test func onlyListedStatusesAreRefused() {
        let schedule = RetrySchedule(policy)
        let busy = schedule.refusal(
            by: ResponseHead(status: 503, fields: ["Retry-After": "7"]), of: request, after: nil)
        #expect(busy?.retryAfter == .seconds(7))
        #expect(schedule.refusal(by: ResponseHead(status: 404), of: request, after: nil) == nil)
    }

    @Test func requestedWaitsAboveTheLimitStopRetries() {
        var schedule = RetrySchedule(policy)
        let head = ResponseHead(status: 503, fields: ["Retry-After": "61"])
        let error = schedule.refusal(by: head, of: request, after: nil)
        let time = RetrySchedule.Time(elapsed: .zero, remaining: nil)
        guard let error, case .stop(let reason?) = schedule.step(after: error, of: request, at: time, chance: 0) else {
            Issue.record("The schedule waits longer than longestWait.")
            return
        }
        #expect(reason.contains("longestWait"))
    }
}
