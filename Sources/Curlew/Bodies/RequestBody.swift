// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// The content that a request sends after its head.
///
/// A body knows its length where possible, and whether it can be sent again when a reused connection turns out to be
/// closed. Reading starts only when the request is sent on its connection, and never runs more than 512 KiB ahead of
/// the peer.
public struct RequestBody: Sendable {
    private final class Content: Sendable {
        let source: any BodySource

        init(_ source: any BodySource) { self.source = source }
    }

    /// The content, which is an object because requests are copied often; nil without a body.
    private let content: Content?

    init(source: (any BodySource)?) { content = source.map { Content($0) } }

    /// The source of the content; nil without a body.
    var source: (any BodySource)? { content?.source }

    /// No body: nothing is sent, except `Content-Length: 0` with POST, PUT and PATCH (RFC 9110 §8.6).
    public static let none = RequestBody(source: nil)

    /// Bytes in memory; the body can be sent again.
    ///
    /// - Parameter bytes: Any bytes, such as `Data`, `[UInt8]` or a `ByteChunk`.
    public static func bytes(_ bytes: some Sequence<UInt8>) -> RequestBody {
        RequestBody(source: BytesBody(content: Array(bytes)))
    }

    /// Text in UTF-8; the body can be sent again.
    ///
    /// - Parameter text: The text; its bytes are sent as they are, with no content type added.
    public static func text(_ text: String) -> RequestBody { .bytes(text.utf8) }

    /// A regular file, opened when the body is sent and read ahead on a separate thread; the body can be sent again.
    ///
    /// A missing file fails with `.invalidRequest`; a file whose size changes before it is sent fails with
    /// `.bodyFailed`.
    /// - Parameter path: The path of the file.
    public static func file(_ path: String) -> RequestBody { RequestBody(source: FileBody(path: path)) }

    /// The bytes of an open descriptor until its end: a file from its current position, a pipe, a socket, standard
    /// input.
    ///
    /// The descriptor is duplicated when the transfer is made, so its owner may close it afterwards. The body cannot be
    /// sent again.
    /// - Parameters:
    ///   - descriptor: An open descriptor.
    ///   - length: The number of bytes; nil uses the size of the file, or sends chunks of unknown total length.
    public static func descriptor(_ descriptor: Int32, length: Int64? = nil) -> RequestBody {
        RequestBody(source: DescriptorBody(descriptor: descriptor, length: length))
    }

    /// The chunks of an asynchronous sequence, iterated in a separate task as fast as the peer reads them.
    ///
    /// Fewer bytes than declared fail with `.bodyFailed`, as does an error that the sequence throws. Bytes beyond the
    /// declared length are never sent; they fail with `.bodyFailed` if they arrive before the response. A sequence with
    /// a declared length of zero is not iterated.
    /// - Parameters:
    ///   - sequence: Chunks of bytes; iterated when the connection is ready, cancelled when the transfer ends early.
    ///   - length: The number of bytes; nil sends chunks (HTTP/1.1) or frames (HTTP/2) of unknown total length.
    ///   - canReplay: Whether iterating the sequence again yields the same bytes; false unless given. A sequence that
    ///     cannot be replayed fails with `.bodyNotReplayable` when it must be sent a second time.
    public static func stream<S: AsyncSequence & Sendable>(
        _ sequence: S, length: Int64? = nil, canReplay: Bool = false
    ) -> RequestBody where S.Element: Sequence, S.Element.Element == UInt8 {
        let source = StreamBody(length: length, canReplay: canReplay, use: canReplay ? nil : SourceUse()) { feed in
            let producer = Task {
                do {
                    for try await chunk in sequence where await !feed.push(Array(chunk)) { return }
                    feed.finish()
                } catch {
                    feed.finish(error)
                }
            }
            return { producer.cancel() }
        }
        return RequestBody(source: source)
    }

    /// The number of bytes of the body; nil when it is unknown before the body ends, and for a file, whose size is read
    /// when its transfer is made.
    public var length: Int64? { if let source { source.length } else { 0 } }

    /// Whether the same bytes can be sent a second time.
    public var canReplay: Bool { source?.canReplay ?? true }

    /// Whether the body can be read only once and reading has begun, so that a request with it cannot be sent any more.
    ///
    /// For a descriptor this is false outside of its transfer and the interceptors of the transfer.
    public var isConsumed: Bool { content?.source.isConsumed ?? false }

    /// Whether there is no body at all; a body of zero bytes is a body.
    public var isNone: Bool { content == nil }
}

extension RequestBody {
    /// The bytes of a body in memory; nil for other bodies, and without a body.
    package var bytes: [UInt8]? { source?.bytes }

    /// Converts the body to the engine's upload type.
    /// - Throws: `SourceFailure` when the file or descriptor cannot be read.
    func upload() throws(SourceFailure) -> TransferPlan.Upload {
        if let content { try content.source.upload() } else { .none }
    }

    /// Whether the body refers to a descriptor that the caller owns.
    var needsOwnDescriptor: Bool { content?.source.needsOwnDescriptor ?? false }

    /// Returns the body with a duplicated descriptor, for a request that is sent later, or sent again before it was
    /// read.
    /// - Throws: `SourceFailure` when the descriptor is not open for reading.
    func withOwnDescriptor() throws(SourceFailure) -> RequestBody {
        guard let source, source.needsOwnDescriptor else { return self }
        return RequestBody(source: try source.withOwnDescriptor())
    }

    /// Returns the body without its duplicated descriptor, for errors, which may outlive the transfer by far.
    func withoutDescriptor() -> RequestBody { RequestBody(source: source?.withoutDescriptor()) }
}
