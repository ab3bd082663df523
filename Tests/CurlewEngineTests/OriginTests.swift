// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CurlewEngine

/// How many connections an origin's transfers are counted to need.
@Suite("Origin")
struct OriginTests {
    @Test(arguments: [
        (false, 0, 0, 0), (false, 7, 2, 7), (true, 0, 0, 0), (true, 1, 0, 1), (true, 100, 0, 1), (true, 101, 0, 2),
        (true, 5, 5, 5), (true, 105, 5, 6), (true, 106, 5, 7),
    ])
    func connections(isShared: Bool, active: Int, alone: Int, expected: Int) {
        let origin = Origin(host: "a.example", port: 443, isSecure: true)
        origin.isShared = isShared
        origin.active = active
        origin.alone = alone
        #expect(origin.connections == expected)
    }
}
