// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A body in chunks that are signed each, as S3 takes them ("aws-chunked"): what goes before and after the bytes of a
/// chunk is part of the body.
struct SignedChunks: AsyncSequence, Sendable {
    typealias Element = [UInt8]
    typealias Failure = NetworkError

    /// How the payload is called in the request's own signature.
    static let payload = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
    /// What a chunk may have, in bytes; S3 takes none shorter but for the last.
    static let sizes = 8 << 10...16 << 20

    let body: RequestBody
    let size: Int
    let scope: SigV4Scope
    let key: [UInt8]
    /// The signature of the request.
    let seed: String

    /// How many bytes a body of so many becomes; nil when it is too long to count.
    static func length(of body: Int64, size: Int) -> Int64? {
        let (whole, rest) = body.quotientAndRemainder(dividingBy: Int64(size))
        let (chunks, isTooLong) = whole.multipliedReportingOverflow(by: framed(size))
        let (sum, isTooLongToo) = chunks.addingReportingOverflow((rest > 0 ? framed(Int(rest)) : 0) + framed(0))
        return isTooLong || isTooLongToo ? nil : sum
    }

    /// How long a chunk is with what surrounds it.
    private static func framed(_ count: Int) -> Int64 { Int64(frame(count, "").utf8.count + 64 + count + 2) }

    private static func frame(_ count: Int, _ signature: String) -> String {
        "\(String(count, radix: 16));chunk-signature=\(signature)\r\n"
    }

    func makeAsyncIterator() -> Iterator { Iterator(self) }

    struct Iterator: AsyncIteratorProtocol {
        private let chunks: SignedChunks
        private var pieces: BodyPieces.Iterator
        private var pending: [UInt8] = []
        private var previous: String
        private var isAtEnd = false
        private var isOver = false

        init(_ chunks: SignedChunks) {
            self.chunks = chunks
            pieces = BodyPieces(body: chunks.body).makeAsyncIterator()
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
