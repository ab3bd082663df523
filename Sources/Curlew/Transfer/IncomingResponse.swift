// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
public import FoundationEssentials

/// A response in the chain of interceptors: its head has been received, its body has not been read yet.
///
/// The body is read once, by the first reader: an interceptor, with `bytes` or `collect`, or the transfer, if the
/// response leaves the chain unread. An interceptor that has read the body and returns the response gives it a new body
/// with ``with(body:)-(some_Sequence<UInt8>)``.
///
/// ```swift
/// let cached = IncomingResponse(ResponseHead(status: .ok), body: Data("{}".utf8), to: request)
/// ```
public struct IncomingResponse: Sendable {
    /// The status, version and fields; fields of the encoded body such as `Content-Encoding` are removed after
    /// decoding.
    public var head: ResponseHead
    /// The request of this response, which is the last one after redirects.
    public let request: Request
    let body: IncomingBody
    /// The attempt that received the response, even if its body was replaced; nil for a response made by hand.
    let attempt: Attempt?

    init(_ head: ResponseHead, _ body: IncomingBody, _ request: Request, _ attempt: Attempt?) {
        self.head = head
        self.body = body
        self.request = request
        self.attempt = attempt
    }

    /// Creates a response by hand, with a body in memory, without using the network.
    ///
    /// - Parameters:
    ///   - head: Status and fields.
    ///   - body: The decoded body; empty by default.
    ///   - request: The request of the response.
    public init(_ head: ResponseHead, body: some Sequence<UInt8> = [], to request: Request) {
        self.init(head, IncomingBody(Data(body)), request, nil)
    }

    /// Creates a response by hand, with a body that is pulled from a sequence as it is read.
    ///
    /// A streamed transfer with such a response is `finished` as soon as the interceptors return it, even while its
    /// reader still pulls the chunks; its ``Transfer/currentProgress`` counts no bytes, and `timeouts.total` does not
    /// apply to the reader.
    /// - Parameters:
    ///   - head: Status and fields.
    ///   - chunks: The decoded body in chunks; an error that it throws becomes the cause of `.interceptorFailed`.
    ///   - request: The request of the response.
    public init<Pieces: AsyncSequence & Sendable>(_ head: ResponseHead, chunks: Pieces, to request: Request)
    where Pieces.Element == ByteChunk {
        self.init(head, IncomingBody(SequenceSource(chunks), carrier: nil), request, nil)
    }

    // MARK: Reading

    /// The decoded bytes of the body, for one reader with back-pressure.
    ///
    /// Leaving the loop early cancels the attempt.
    public var bytes: TransferBytes { TransferBytes { [body, request] in BodyReader(body, of: request) } }

    /// Reads the whole body.
    ///
    /// - Parameter limit: The maximum number of bytes. The request's `responseLimit`, or else the session's limit,
    ///   applies as well; for a response made by hand from a sequence, 64 MiB applies instead. A body in memory has no
    ///   further limit.
    /// - Returns: The decoded body.
    /// - Throws: `NetworkError`: `.bodyTooLarge`, `.invalidRequest` when the body was read before, or the error that
    ///   ended the transfer.
    public func collect(upTo limit: ByteCount? = nil) async throws(NetworkError) -> Data {
        try await body.collect(upTo: limit, of: request, from: attempt)
    }

    /// Discards the body: a short rest is read so that the connection can be reused, a long rest is cancelled.
    ///
    /// Use this method in an interceptor that sends another request instead; the body cannot be read afterwards.
    public func discard() async { if let attempt { await body.discard(attempt, expecting: head.contentLength) } }

    /// The metrics of the attempt; nil while it runs, and for a response made by hand.
    public var metrics: TransferMetrics? {
        attempt.map { $0.metrics.map { marking($0) } }
            ?? head.cache.map { _ in marking(TransferMetrics(version: head.version)) }
    }

    /// Returns metrics with the report of the session's cache.
    func marking(_ metrics: TransferMetrics) -> TransferMetrics {
        var metrics = metrics
        metrics.cache = head.cache
        return metrics
    }

    // MARK: Changing

    /// Returns the same response with another body in memory, and without trailers.
    ///
    /// The rest of the old body is not read, which closes its HTTP/1.1 connection; call ``discard()`` first to keep it.
    /// - Parameter body: The new decoded body.
    public func with(body: some Sequence<UInt8>) -> IncomingResponse {
        self.body.markTaken()
        attempt?.engine.discardBody()
        return IncomingResponse(head, IncomingBody(Data(body)), request, attempt)
    }

    /// Returns the same response with a body that is pulled from a sequence as it is read, and without trailers.
    ///
    /// Chunks that come from ``bytes`` of this response read the old body as they are pulled. An old body that nothing
    /// reads keeps its attempt running, at most until the end of the new body.
    /// - Parameter chunks: The new decoded body in chunks; an error that it throws becomes the cause of
    ///   `.interceptorFailed`.
    public func with<Pieces: AsyncSequence & Sendable>(chunks: Pieces) -> IncomingResponse
    where Pieces.Element == ByteChunk {
        IncomingResponse(head, IncomingBody(SequenceSource(chunks), carrier: attempt), request, attempt)
    }

    /// Returns the same response with a body that a closure transforms chunk by chunk as it is read; its trailers stay.
    ///
    /// Reading the new response takes the body: `bytes` of the old response cannot be read afterwards.
    /// - Parameter transform: Receives each chunk and returns its replacement; nil removes the chunk. It is called with
    ///   nil once, at the end of the body, for a last chunk, but not when the body ends with an error. An error that it
    ///   throws becomes the cause of `.interceptorFailed`.
    public func mapBytes(
        _ transform: @escaping @Sendable (ByteChunk?) async throws -> ByteChunk?
    ) -> IncomingResponse {
        IncomingResponse(
            head, IncomingBody(MappedSource(body, request, transform), carrier: body.carrier), request, attempt)
    }
}

extension IncomingResponse {
    /// Returns the response of a transfer whose body is in memory.
    ///
    /// - Throws: An error when a reader has taken the body.
    func inMemory() throws(NetworkError) -> Response<Data> {
        guard case .bytes(let data, let trailers) = body.source else { throw .takenBody(request) }
        return Response(head: head, value: data, metrics: metrics ?? TransferMetrics(), trailers: trailers)
    }

    /// Returns the error of the attempt that delivers the body; nil for a success, and for a body without an attempt.
    func failure(_ outcome: EngineTransfer.Outcome?) -> NetworkError? {
        guard let failure = outcome?.failure else { return nil }
        return body.carrier?.error(failure, outcome)
    }

    /// Returns the response without its body, which may hold the transfer.
    func withoutBody() -> IncomingResponse {
        IncomingResponse(head, IncomingBody(TakenSource(), carrier: body.carrier), request, attempt)
    }
}
