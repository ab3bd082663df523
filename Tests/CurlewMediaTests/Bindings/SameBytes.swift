// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import Glibc

extension PatternBody {
    /// Returns whether a chunk has the bytes at a position; faster in a debug build than a comparison of collections.
    func matches(_ chunk: ByteChunk, at position: Int) -> Bool {
        guard position + chunk.count <= length else { return false }
        let expected = bytes(in: position..<position + chunk.count)
        return chunk.withUnsafeBytes { own in
            expected.withUnsafeBytes { other in
                guard let own = own.baseAddress, let other = other.baseAddress else { return chunk.isEmpty }
                return memcmp(own, other, chunk.count) == 0
            }
        }
    }
}
