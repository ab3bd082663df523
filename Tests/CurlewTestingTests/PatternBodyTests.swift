// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import Testing

struct PatternBodyTests {
    @Test func bytesDependOnSeedAndPosition() {
        let body = PatternBody(seed: 42, length: 1000)
        #expect(body.bytes == PatternBody(seed: 42, length: 2000).bytes(in: 0..<1000))
        #expect(body.bytes != PatternBody(seed: 43, length: 1000).bytes)
        #expect((0..<1000).map(body.byte) == body.bytes)
        for range in [0..<0, 3..<8, 1..<999, 990..<1000, 500..<501] {
            #expect(body[range].bytes == Array(body.bytes[range]))
            #expect(body[range].length == range.count)
        }
        #expect(body[100..<900][50..<60].bytes == Array(body.bytes[150..<160]))
    }

    @Test func firstBytesMatchSplitMix64() {
        // The first output of SplitMix64 for seed 0 is e220a8397b1dcdaf; here its lowest byte is the first one.
        #expect(PatternBody(seed: 0, length: 8).bytes == [0xAF, 0xCD, 0x1D, 0x7B, 0x39, 0xA8, 0x20, 0xE2])
    }

    @Test(arguments: [0, 1, 262_144, 600_001])
    func sha256MatchesTheBytes(length: Int) {
        let body = PatternBody(seed: 7, length: length)
        #expect(body.sha256 == SHA256Stream.hex(of: body.bytes))
    }
}

struct SHA256StreamTests {
    @Test func digestCoversSeveralUpdates() {
        var stream = SHA256Stream()
        #expect(stream.hex == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
        stream.update([97])
        stream.update("bc".utf8)
        stream.update(Set<UInt8>())
        #expect(stream.hex == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
        #expect(stream.digest.prefix(2) == [0xBA, 0x78])
    }

    @Test func copiesAreIndependent() {
        var first = SHA256Stream()
        first.update([1, 2])
        var second = first
        second.update([3])
        first.update([4])
        #expect(first.hex == SHA256Stream.hex(of: [1, 2, 4]))
        #expect(second.hex == SHA256Stream.hex(of: [1, 2, 3]))
    }
}
