// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Curlew

/// The digests of "abc" are those of RFC 1321 §A.5 and of NIST's examples for FIPS 180-4.
@Suite("Message digests")
struct MessageDigestTests {
    @Test(arguments: [
        (MessageDigest.Algorithm.md5, "900150983cd24fb0d6963f7d28e17f72"),
        (.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (.sha512t256, "53048e2681941ef99b2e29b76b4c7dabe4c2d0c634fc6d46e0e2f13107e7af23"),
    ])
    func publishedVectorsAreReproduced(_ algorithm: MessageDigest.Algorithm, _ hexadecimal: String) throws {
        #expect(algorithm.isAvailable)
        #expect(MessageDigest.digest(algorithm, of: "abc".utf8)?.hexadecimal == hexadecimal)
    }

    @Test func chunksGiveTheSameDigestAsTheWhole() throws {
        let bytes = (0..<10_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let digest = try #require(MessageDigest(.sha256))
        digest.update([])
        digest.update(bytes[..<1])
        digest.update(ByteChunk(bytes[1..<777]))
        digest.update(AnySequence(bytes[777...]))
        #expect(digest.finish() == MessageDigest.digest(.sha256, of: bytes))
    }

    @Test func unknownAlgorithmIsUnavailable() {
        let unknown = MessageDigest.Algorithm(name: "NO-SUCH-DIGEST")
        #expect(!unknown.isAvailable)
        #expect(MessageDigest.digest(unknown, of: []) == nil)
    }
}
