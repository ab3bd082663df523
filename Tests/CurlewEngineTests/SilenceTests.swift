// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CurlewEngine

/// How often libcurl is made to look at a connection that says nothing.
@Suite("Silence")
struct SilenceTests {
    @Test(arguments: [UInt64(10_000_000), 50_000_000])
    func looksBecomeSeldomAndNeverEnd(first: UInt64) {
        let start: UInt64 = 1_000
        var looks: [UInt64] = []
        var last: UInt64 = 0
        while looks.last ?? 0 < start + 60_000_000_000 {
            // It is never on time.
            last = CurlTransport.nudgeAt(after: first, silentSince: start, last: last) + 1_000_000
            looks.append(last)
        }
        #expect(looks[0] == start + first + 1_000_000)
        #expect(looks.count < 30, "in a minute")
        for (earlier, later) in zip(looks, looks.dropFirst()) {
            #expect((first...5_001_000_000).contains(later - earlier))
        }
    }

    @Test func activityBeginsAnew() {
        #expect(CurlTransport.nudgeAt(after: 10, silentSince: 500, last: 400) == 510)
    }
}
