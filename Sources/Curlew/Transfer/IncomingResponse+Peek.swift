// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
public import FoundationEssentials
internal import CurlewSupport

extension IncomingResponse {
    /// Reads the start of the body, and returns it with a response whose whole body can still be read, with its
    /// trailers.
    ///
    /// This method takes the body of the response, and keeps only the chunks that it has read.
    ///
    /// ```swift
    /// let (start, response) = try await next(request).peek(.kibibytes(1))
    /// if start.starts(with: "<".utf8) { print("markup") }
    /// return response
    /// ```
    ///
    /// - Parameter count: The number of bytes to read, 4 KiB by default; a shorter body gives fewer bytes.
    /// - Returns: The decoded start, and the response to use instead of this one.
    /// - Throws: `NetworkError`: `.invalidRequest` when the body was read before, or the error that ended the transfer.
    public func peek(
        _ count: ByteCount = .kibibytes(4)
    ) async throws(NetworkError) -> (start: Data, response: IncomingResponse) {
        let source = PeekedSource(BodyReader(body, of: request))
        let start = try await source.start(Int(clamping: count.bytes))
        return (
            start,
            IncomingResponse(
                head, body.passing(through: source), request, attempt)
        )
    }
}

/// A body whose first chunks have been read already.
private final class PeekedSource: ChunkSource {
    private let reader: BodyReader
    /// The chunks that were read and not delivered yet.
    private let pieces = Lock<[ByteChunk]>([])

    init(_ reader: BodyReader) { self.reader = reader }

    /// Reads the first bytes; it must be called before `next()`.
    func start(_ count: Int) async throws(NetworkError) -> Data {
        var start = Data()
        while start.count < count, let piece = try await reader.next() {
            pieces.withLock { $0.append(piece) }
            start.append(contentsOf: piece.prefix(count - start.count))
        }
        return start
    }

    func next() async throws -> ByteChunk? {
        let piece = pieces.withLock { $0.isEmpty ? nil : $0.removeFirst() }
        if let piece { return piece }
        return try await reader.next()
    }

    var trailers: HeaderFields? { reader.trailers }
}
