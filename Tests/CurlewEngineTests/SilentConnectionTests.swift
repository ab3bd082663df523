// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CurlewEngine

/// The times at which the transport makes libcurl check a silent connection.
@Suite("Checks of silent connections")
struct SilentConnectionTests {
    @Test(arguments: [UInt64(10_000_000), 50_000_000])
    func pokesOfASilentConnectionBecomeRare(first: UInt64) {
        let start: UInt64 = 1_000
        var looks: [UInt64] = []
        var last: UInt64 = 0
        while looks.last ?? 0 < start + 60_000_000_000 {
            // Each check is a millisecond late.
            last = CurlTransport.pokeAt(after: first, silentSince: start, last: last) + 1_000_000
            looks.append(last)
        }
        #expect(looks[0] == start + first + 1_000_000)
        #expect(looks.count < 30, "in a minute")
        for (earlier, later) in zip(looks, looks.dropFirst()) {
            #expect((first...5_001_000_000).contains(later - earlier))
        }
    }

    @Test func activityRestartsThePokeInterval() {
        #expect(CurlTransport.pokeAt(after: 10, silentSince: 500, last: 400) == 510)
    }
}
