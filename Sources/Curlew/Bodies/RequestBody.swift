// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// The content that a request sends after its head.
///
/// A body knows its length where possible, and whether it can be sent again when a reused connection turns out to be
/// closed. Reading starts only when the request is sent on its connection, and never runs more than 512 KiB ahead of
/// the peer.
public struct RequestBody: Sendable {
    enum Content: Sendable {
        case none
        case bytes([UInt8])
        case file(String)
        case descriptor(Int32, length: Int64?)
        case kept(OwnedDescriptor, length: Int64?, SourceUse)
        case stream(Stream)
        case joined(JoinedBody)
    }

    struct Stream: Sendable {
        var length: Int64?
        var canReplay: Bool
        /// Records whether the stream was read; shared by all copies of a body that can be read only once, otherwise
        /// nil.
        var use: SourceUse?
        var open: @Sendable (UploadPipe.Feed) -> @Sendable () -> Void
    }

    let content: Content

    /// No body: nothing is sent, except `Content-Length: 0` with POST, PUT and PATCH (RFC 9110 §8.6).
    public static let none = RequestBody(content: .none)

    /// Bytes in memory; the body can be sent again.
    ///
    /// - Parameter bytes: Any bytes, such as `Data`, `[UInt8]` or a `ByteChunk`.
    public static func bytes(_ bytes: some Sequence<UInt8>) -> RequestBody {
        RequestBody(content: .bytes(Array(bytes)))
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
    public static func file(_ path: String) -> RequestBody { RequestBody(content: .file(path)) }

    /// The bytes of an open descriptor until its end: a file from its current position, a pipe, a socket, standard
    /// input.
    ///
    /// The descriptor is duplicated when the transfer is made, so its owner may close it afterwards. The body cannot be
    /// sent again.
    /// - Parameters:
    ///   - descriptor: An open descriptor.
    ///   - length: The number of bytes; nil uses the size of the file, or sends chunks of unknown total length.
    public static func descriptor(_ descriptor: Int32, length: Int64? = nil) -> RequestBody {
        RequestBody(content: .descriptor(descriptor, length: length))
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
        let stream = Stream(length: length, canReplay: canReplay, use: canReplay ? nil : SourceUse()) { feed in
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
        return RequestBody(content: .stream(stream))
    }

    /// The number of bytes of the body; nil when it is unknown before the body ends, and for a file, whose size is read
    /// when its transfer is made.
    public var length: Int64? {
        switch content {
        case .none: 0
        case .bytes(let bytes): Int64(bytes.count)
        case .file: nil
        case .descriptor(_, let length), .kept(_, let length, _): length
        case .stream(let stream): stream.length
        case .joined(let joined): joined.length
        }
    }

    /// Whether the same bytes can be sent a second time.
    public var canReplay: Bool {
        switch content {
        case .none, .bytes, .file: true
        case .descriptor, .kept: false
        case .stream(let stream): stream.canReplay
        case .joined(let joined): joined.pieces.allSatisfy(\.body.canReplay)
        }
    }

    /// Whether the body can be read only once and reading has begun, so that a request with it cannot be sent any more.
    ///
    /// For a descriptor this is false outside of its transfer and the interceptors of the transfer.
    public var isSpent: Bool {
        switch content {
        case .none, .bytes, .file, .descriptor: false
        case .kept(_, _, let use): use.isSpent
        case .stream(let stream): stream.use?.isSpent == true
        case .joined(let joined): joined.pieces.contains(where: \.body.isSpent)
        }
    }

    /// Whether there is no body at all; a body of zero bytes is a body.
    public var isNone: Bool { if case .none = content { true } else { false } }
}

extension RequestBody {
    /// Converts the body to the engine's upload type.
    /// - Throws: `SourceFailure` when the file or descriptor cannot be read.
    func upload() throws(SourceFailure) -> TransferPlan.Upload {
        switch content {
        case .none: .none
        case .bytes(let bytes): .bytes(bytes)
        case .file(let path): .pipe(try UploadPipe.file(path))
        case .descriptor(let number, let length):
            .pipe(.descriptor(try OwnedDescriptor(duplicating: number), length: length))
        case .kept(let owner, let length, let use): .pipe(.descriptor(owner, length: length, use: use))
        case .stream(let stream):
            .pipe(
                UploadPipe(length: stream.length, canReplay: stream.canReplay, use: stream.use, open: stream.open))
        case .joined(let joined): try joined.upload()
        }
    }

    /// The body without its duplicated descriptor, for errors, which may outlive the transfer by far.
    var released: RequestBody {
        switch content {
        case .kept(_, let length, _): RequestBody(content: .descriptor(-1, length: length))
        case .joined(let joined) where joined.pieces.contains(where: \.body.isKept):
            RequestBody(content: .joined(joined.mapped(\.released)))
        default: self
        }
    }

    private var isKept: Bool { if case .kept = content { true } else { false } }

    /// Whether the body refers to a descriptor that the caller owns.
    var mustBeKept: Bool {
        switch content {
        case .descriptor: true
        case .joined(let joined): joined.pieces.contains(where: \.body.mustBeKept)
        default: false
        }
    }

    /// Returns the body with a duplicated descriptor, for a request that is sent later, or sent again before it was
    /// read.
    /// - Throws: `SourceFailure` when the descriptor is not open for reading.
    func kept() throws(SourceFailure) -> RequestBody {
        switch content {
        case .descriptor(let number, let length):
            RequestBody(content: .kept(try OwnedDescriptor(duplicating: number), length: length, SourceUse()))
        case .joined(let joined) where mustBeKept:
            RequestBody(content: .joined(try joined.mapped { body throws(SourceFailure) in try body.kept() }))
        default: self
        }
    }
}
