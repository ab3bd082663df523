// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting

/// A body as an asynchronous sequence of chunks.
///
/// Any sequence of bytes can be uploaded in this form, such as the output of a camera, a compressor or another
/// download.
struct PatternChunks: AsyncSequence, Sendable {
    let body: PatternBody

    func makeAsyncIterator() -> Iterator { Iterator(body: body) }

    struct Iterator: AsyncIteratorProtocol {
        let body: PatternBody
        private var offset = 0

        init(body: PatternBody) { self.body = body }

        mutating func next() async -> [UInt8]? {
            guard offset < body.length else { return nil }
            let end = Swift.min(offset + 64 << 10, body.length)
            defer { offset = end }
            return body.bytes(in: offset..<end)
        }
    }
}
