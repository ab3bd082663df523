// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// What a request sends after its head.
///
/// A body knows its length where that can be known, and whether it can be sent again when a connection turns out to
/// be stale. Nothing is read before the request is on the wire, and never more than 512 KiB ahead of the peer.
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
        /// Shared by all copies of a body that can be read only once.
        var use: SourceUse?
        var open: @Sendable (UploadPipe.Feed) -> @Sendable () -> Void
    }

    let content: Content

    /// No body: nothing is sent, except `Content-Length: 0` with POST, PUT and PATCH (RFC 9110 §8.6).
    public static let none = RequestBody(content: .none)

    /// Bytes at hand, which can be sent again.
    ///
    /// - Parameter bytes: Any bytes, such as `Data`, `[UInt8]` or a `ByteChunk`.
    public static func bytes(_ bytes: some Sequence<UInt8>) -> RequestBody {
        RequestBody(content: .bytes(Array(bytes)))
    }

    /// Text in UTF-8, which can be sent again.
    ///
    /// - Parameter text: The text; its bytes are sent as they are, with no content type added.
    public static func text(_ text: String) -> RequestBody { .bytes(text.utf8) }

    /// A regular file, opened when it is sent and read ahead on a thread of its own; it can be sent again.
    ///
    /// A missing file is `.invalidRequest`; one whose size changes before it was sent is `.bodyFailed`.
    /// - Parameter path: Where the file is.
    public static func file(_ path: String) -> RequestBody { RequestBody(content: .file(path)) }

    /// What an open descriptor yields until its end: a file from its current place, a pipe, a socket, standard input.
    ///
    /// The descriptor is duplicated when the transfer is made, so its owner may close it; it cannot be sent again.
    /// - Parameters:
    ///   - descriptor: An open descriptor.
    ///   - length: How many bytes will come; nil asks the file, or sends in chunks.
    public static func descriptor(_ descriptor: Int32, length: Int64? = nil) -> RequestBody {
        RequestBody(content: .descriptor(descriptor, length: length))
    }

    /// What an asynchronous sequence yields, pulled in a task of its own as fast as the peer takes it.
    ///
    /// Fewer bytes than declared is `.bodyFailed`, and so is an error the sequence throws. More are never sent, and are
    /// `.bodyFailed` when they come before the response; a sequence declared empty is not asked at all.
    /// - Parameters:
    ///   - sequence: Chunks of bytes; iterated when the connection is ready, cancelled when the transfer ends early.
    ///   - length: How many bytes will come; nil sends in chunks (HTTP/1.1) or frames (HTTP/2).
    ///   - canReplay: Whether iterating the sequence again yields the same bytes; defaults to no, and then sending it a
    ///     second time is `.bodyNotReplayable`.
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

    /// Bytes the body has, nil when that is not known before it ends; a file is asked when its transfer is made.
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

    /// Whether the body can be read only once, and that was done or begun: a request with it cannot be sent any more.
    ///
    /// Of a descriptor only its transfer, and what intercepts it, knows.
    public var isSpent: Bool {
        switch content {
        case .none, .bytes, .file, .descriptor: false
        case .kept(_, _, let use): use.isSpent
        case .stream(let stream): stream.use?.isSpent == true
        case .joined(let joined): joined.pieces.contains(where: \.body.isSpent)
        }
    }

    /// Whether there is no body at all; one of zero bytes is a body.
    public var isNone: Bool { if case .none = content { true } else { false } }
}

extension RequestBody {
    /// The body in the engine's words.
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

    /// The body without the descriptor that was kept for it: for an error, which may live for long.
    var released: RequestBody {
        switch content {
        case .kept(_, let length, _): RequestBody(content: .descriptor(-1, length: length))
        case .joined(let joined) where joined.pieces.contains(where: \.body.isKept):
            RequestBody(content: .joined(joined.mapped(\.released)))
        default: self
        }
    }

    private var isKept: Bool { if case .kept = content { true } else { false } }

    /// Whether it is bound to a descriptor of somebody else.
    var mustBeKept: Bool {
        switch content {
        case .descriptor: true
        case .joined(let joined): joined.pieces.contains(where: \.body.mustBeKept)
        default: false
        }
    }

    /// The body with a descriptor of its own, for a request that is sent later, or sent again before it was read.
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
