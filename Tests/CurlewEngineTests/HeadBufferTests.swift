// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CurlewEngine

@Suite("HeadBuffer")
struct HeadBufferTests {
    @Test func linesOfAnyLengthAreCollected() {
        let buffer = HeadBuffer()
        defer { buffer.free() }
        #expect(buffer.isEmpty)
        #expect(buffer.bytes == [])
        var expected: [UInt8] = []
        for length in [0, 1, 511, 1, 3000, 40_000, 7] {
            let line = [UInt8](repeating: UInt8(truncatingIfNeeded: length), count: length)
            #expect(line.withUnsafeBytes { buffer.append($0) })
            expected += line
        }
        let isWhole = buffer.bytes == expected
        #expect(isWhole)
        buffer.clear()
        #expect(buffer.isEmpty)
        #expect([1, 2].withUnsafeBytes { buffer.append(UnsafeRawBufferPointer(rebasing: $0.prefix(1))) })
        #expect(buffer.bytes == [1])
    }
}
