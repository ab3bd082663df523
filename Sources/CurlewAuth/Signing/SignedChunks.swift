// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew

/// A body in individually signed chunks, the format of S3 ("aws-chunked").
///
/// The bytes before and after each chunk are part of the body that is sent.
struct SignedChunks: AsyncSequence, Sendable {
    typealias Element = [UInt8]
    typealias Failure = NetworkError

    /// The name of this payload in the signature of the request.
    static let payload = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
    /// The allowed lengths of a chunk in bytes; S3 accepts a shorter one only as the last chunk.
    static let sizes = 8 << 10...16 << 20

    let body: RequestBody
    let size: Int
    let scope: SigV4Scope
    let key: [UInt8]
    /// The signature of the request.
    let seed: String

    /// Returns the number of bytes that a body of the given length becomes; nil when the number overflows.
    static func length(of body: Int64, size: Int) -> Int64? {
        let (whole, rest) = body.quotientAndRemainder(dividingBy: Int64(size))
        let (chunks, isTooLong) = whole.multipliedReportingOverflow(by: framed(size))
        let (sum, isTooLongToo) = chunks.addingReportingOverflow((rest > 0 ? framed(Int(rest)) : 0) + framed(0))
        return isTooLong || isTooLongToo ? nil : sum
    }

    /// Returns the length of a chunk together with its frame.
    private static func framed(_ count: Int) -> Int64 { Int64(frame(count, "").utf8.count + 64 + count + 2) }

    private static func frame(_ count: Int, _ signature: String) -> String {
        "\(String(count, radix: 16));chunk-signature=\(signature)\r\n"
    }

    func makeAsyncIterator() -> Iterator { Iterator(self) }

    struct Iterator: AsyncIteratorProtocol {
        private let chunks: SignedChunks
        private var pieces: BodyChunks.Iterator
        private var pending: [UInt8] = []
        private var previous: String
        private var isAtEnd = false
        private var isOver = false

        init(_ chunks: SignedChunks) {
            self.chunks = chunks
            pieces = BodyChunks(body: chunks.body).makeAsyncIterator()
            previous = chunks.seed
        }

        mutating func next() async throws -> [UInt8]? { try await next(isolation: nil) }

        mutating func next(isolation actor: isolated (any Actor)?) async throws(NetworkError) -> [UInt8]? {
            if isOver { return nil }
            while !isAtEnd, pending.count < chunks.size {
                if let piece = try await pieces.next(isolation: actor) { pending += piece } else { isAtEnd = true }
            }
            let chunk = Array(pending.prefix(chunks.size))
            pending.removeFirst(chunk.count)
            isOver = chunk.isEmpty
            previous = try chunks.scope.signature(of: chunk, after: previous, key: chunks.key)
            return SignedChunks.frame(chunk.count, previous).utf8 + chunk + "\r\n".utf8
        }
    }
}
