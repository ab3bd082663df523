// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
public import FoundationEssentials

/// A response on its way through interceptors: its head is there, its body is not read yet.
///
/// The body is read once, by whoever takes it first: an interceptor, with `bytes` or `collect`, or, when the response
/// comes out of the chain unread, the transfer. An interceptor that has read it and passes the response on gives it a
/// new body, with ``with(body:)-(some_Sequence<UInt8>)``.
///
/// ```swift
/// let cached = IncomingResponse(ResponseHead(status: .ok), body: Data("{}".utf8), to: request)
/// ```
public struct IncomingResponse: Sendable {
    /// Status, version and fields; what was true of an encoded body alone (`Content-Encoding`) is gone after decoding.
    public var head: ResponseHead
    /// The request that got it, the last one after redirects.
    public let request: Request
    let body: IncomingBody
    /// The attempt that brought it, also when its body was exchanged; nil for one made by hand.
    let attempt: Attempt?

    init(_ head: ResponseHead, _ body: IncomingBody, _ request: Request, _ attempt: Attempt?) {
        self.head = head
        self.body = body
        self.request = request
        self.attempt = attempt
    }

    /// A response made by hand, with a body at hand; the network is not asked.
    ///
    /// - Parameters:
    ///   - head: Status and fields.
    ///   - body: The body, decoded; empty unless given.
    ///   - request: The request it answers.
    public init(_ head: ResponseHead, body: some Sequence<UInt8> = [], to request: Request) {
        self.init(head, IncomingBody(Data(body)), request, nil)
    }

    /// A response made by hand, with a body that is pulled from a sequence as it is read.
    ///
    /// - Parameters:
    ///   - head: Status and fields.
    ///   - chunks: The body, decoded, in pieces; an error it throws becomes the cause of `.interceptorFailed`.
    ///   - request: The request it answers.
    public init<Pieces: AsyncSequence & Sendable>(_ head: ResponseHead, chunks: Pieces, to request: Request)
    where Pieces.Element == ByteChunk {
        self.init(head, IncomingBody(SequenceSource(chunks), carrier: nil), request, nil)
    }

    // MARK: Reading

    /// The body's bytes, decoded: one reader, back-pressure.
    ///
    /// Leaving the loop early ends the attempt.
    public var bytes: TransferBytes { TransferBytes(body, of: request) }

    /// Reads the whole body.
    ///
    /// - Parameter limit: The most bytes to take, where that is less than the request's `responseLimit`, else the
    ///   session's; 64 MiB at most of a sequence in a response made by hand.
    /// - Returns: The body, decoded.
    /// - Throws: `NetworkError`: `.bodyTooLarge`, `.invalidRequest` when the body was read before, or whatever ended the
    ///   transfer.
    public func collect(upTo limit: ByteCount? = nil) async throws(NetworkError) -> Data {
        try await body.collect(upTo: limit, of: request, from: attempt)
    }

    /// Lets go of the body: a short rest is read, so that the connection can be used again, a long one is broken off.
    ///
    /// For an interceptor that sends another request in its place; the body cannot be read afterwards.
    public func discard() async { if let attempt { await body.discard(attempt, expecting: head.contentLength) } }

    /// Waits until a body that is collected is there, without taking it, or until somebody reads it step by step.
    func complete() async throws(NetworkError) {
        guard let attempt = body.untouched, let outcome = await attempt.engine.endingOrLed() else { return }
        if let failure = outcome.failure { throw attempt.error(failure, outcome) }
    }

    /// How the attempt went; nil while it runs, and for a response made by hand.
    public var metrics: TransferMetrics? { attempt?.metrics }

    // MARK: Changing

    /// The same response with another body, which is at hand, and without trailers.
    ///
    /// - Parameter body: The new body, decoded.
    public func with(body: some Sequence<UInt8>) -> IncomingResponse {
        // Of the old body nothing is wanted any more.
        attempt?.engine.letGo()
        return IncomingResponse(head, IncomingBody(Data(body)), request, attempt)
    }

    /// The same response with a body that is pulled from a sequence as it is read, and without trailers.
    ///
    /// - Parameter chunks: The new body, decoded, in pieces; an error it throws becomes the cause of
    ///   `.interceptorFailed`.
    public func with<Pieces: AsyncSequence & Sendable>(chunks: Pieces) -> IncomingResponse
    where Pieces.Element == ByteChunk {
        IncomingResponse(head, IncomingBody(SequenceSource(chunks), carrier: attempt), request, attempt)
    }

    /// The same response with a body that passes through a closure, piece by piece, as it is read; its trailers stay.
    ///
    /// It takes the body: `bytes` of the old response cannot be read any more once the new one is.
    /// - Parameter transform: Gets each piece and gives what takes its place, nothing for nil. Called with nil once, at
    ///   the end of the body, for a last piece; not called when the body breaks off. An error it throws becomes the
    ///   cause of `.interceptorFailed`.
    public func mapBytes(
        _ transform: @escaping @Sendable (ByteChunk?) async throws -> ByteChunk?
    ) -> IncomingResponse {
        IncomingResponse(
            head, IncomingBody(MappedSource(body, request, transform), carrier: body.carrier), request, attempt)
    }
}
