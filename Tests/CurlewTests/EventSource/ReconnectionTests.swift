// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import Testing

@testable import Curlew

struct ReconnectionTests {
    private func waits(_ reconnection: EventSource.Reconnection, retry: Duration? = nil, after: Duration? = nil)
        -> [Duration]
    {
        (0..<6).map { reconnection.wait(after: $0, retry: retry, retryAfter: after) }
    }

    private func reconnection(_ jitter: Double = 1) -> EventSource.Reconnection {
        EventSource.Reconnection(delay: .seconds(1), longest: .seconds(5), jitter: { jitter })
    }

    @Test func waitsDoubleUpToTheMaximum() {
        let seconds: [Duration] = [1, 1, 2, 4, 5, 5].map { .seconds($0) }
        #expect(waits(reconnection()) == seconds)
        #expect(waits(reconnection(1.5)) == seconds.map { $0 * 1.5 })
        #expect(waits(reconnection(0)) == seconds && waits(reconnection(.nan)) == seconds)
        #expect(waits(reconnection(.infinity)) == seconds.map { $0 * 100 }, "the jitter is limited")
    }

    @Test func serversRetryAndRetryAfterAreHonoured() {
        #expect(waits(reconnection(), retry: .seconds(9)) == Array(repeating: .seconds(9), count: 6))
        #expect(waits(reconnection(), after: .seconds(3)) == [3, 3, 3, 4, 5, 5].map { .seconds($0) })
        let none: [Duration] = [10, 10, 200, 400, 800, 1600].map { .milliseconds($0) }
        #expect(waits(reconnection(), retry: .zero) == none, "at least 10 ms, doubled from 100 ms")
    }

    @Test func extremeWaitsAreClamped() {
        let patient = EventSource.Reconnection(delay: .seconds(1 << 40), longest: .seconds(1 << 50), jitter: { 1 })
        #expect(patient.wait(after: .max, retry: nil, retryAfter: nil) == .seconds(1_000_000_000), "31 years")
        #expect(
            EventSource.Reconnection(delay: .seconds(-1), jitter: { 1 }).wait(after: 0, retry: nil, retryAfter: nil)
                == .zero)
        for _ in 0..<100 {
            let wait = EventSource.Reconnection(delay: .seconds(2)).wait(after: 0, retry: nil, retryAfter: nil)
            #expect(wait >= .seconds(2) && wait <= .seconds(3))
        }
    }
}
