// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// Bodies that are sent as one, one after the other.
struct JoinedBody: Sendable {
    struct Piece: Sendable {
        let body: RequestBody
        /// What errors call it, such as "the part “image”"; nil for what stands between those with names.
        let label: String?
    }

    /// Why a body that was put together cannot be sent; told when its request is checked.
    struct Flaw: Sendable {
        let message: String
        let hint: String
    }

    let pieces: [Piece]
    let flaw: Flaw?
    /// What is known of the pieces' lengths once the body is sent; shared by all copies.
    let lengths: PieceLengths

    init(_ pieces: [Piece], flaw: Flaw? = nil, lengths: PieceLengths = PieceLengths()) {
        self.pieces = pieces
        self.flaw = flaw
        self.lengths = lengths
    }

    /// Bodies below this are handed to libcurl in one go, which then leave with the head.
    private static let small: Int64 = 64 << 10

    /// Nil while a piece's length is not known, or when the sum is none.
    var length: Int64? {
        var sum: Int64 = 0
        for piece in pieces {
            guard let length = piece.body.length else { return nil }
            let (total, isTooLong) = sum.addingReportingOverflow(length)
            if isTooLong { return nil }
            sum = total
        }
        return sum
    }

    /// The pieces' lengths, as far as the one that is sent, or was sent last, knows them; empty before the first.
    var knownLengths: [Int64?] { lengths.all }

    /// All of it, when there are only bytes at hand.
    var bytesAtHand: [UInt8]? {
        var bytes: [UInt8] = []
        for piece in pieces {
            switch piece.body.content {
            case .none: continue
            case .bytes(let own): bytes += own
            default: return nil
            }
        }
        return bytes
    }

    func mapped<Failure: Error>(_ change: (RequestBody) throws(Failure) -> RequestBody) throws(Failure) -> JoinedBody {
        var changed: [Piece] = []
        for piece in pieces { changed.append(Piece(body: try change(piece.body), label: piece.label)) }
        return JoinedBody(changed, flaw: flaw, lengths: lengths)
    }

    /// The body in the engine's words.
    /// - Throws: `SourceFailure` when a file or descriptor cannot be read.
    func upload() throws(SourceFailure) -> TransferPlan.Upload {
        if let length, length < Self.small, let bytes = bytesAtHand {
            lengths.begin(pieces.map(\.body.length))
            return .bytes(bytes)
        }
        var made: [BodyPiece] = []
        for piece in pieces { made.append(try piece.made()) }
        return .pipe(try .pieces(made, lengths: lengths))
    }
}

extension JoinedBody.Piece {
    /// The piece in the engine's words; what is joined itself must have been taken apart.
    fileprivate func made() throws(SourceFailure) -> BodyPiece {
        switch body.content {
        case .none, .joined: BodyPiece(.bytes([]), label: label)
        case .bytes(let bytes): BodyPiece(.bytes(bytes), label: label)
        case .file(let path): BodyPiece(.file(path), label: label)
        case .descriptor(let number, let length):
            BodyPiece(
                .descriptor(try OwnedDescriptor(duplicating: number), length: length), label: label, canReplay: false)
        case .kept(let owner, let length, let use):
            BodyPiece(.descriptor(owner, length: length), label: label, canReplay: false, use: use)
        case .stream(let stream):
            BodyPiece(
                .producer(length: stream.length, open: stream.open), label: label, canReplay: stream.canReplay,
                use: stream.use)
        }
    }
}

extension RequestBody {
    /// Why a body that was put together cannot be sent.
    var flaw: JoinedBody.Flaw? { if case .joined(let joined) = content { joined.flaw } else { nil } }

    /// What errors call the part of the body that keeps it from being sent a second time; nil for a body without parts.
    var onceOnlyPart: String? {
        guard case .joined(let joined) = content else { return nil }
        return joined.pieces.first { !$0.body.canReplay }?.label
    }

    /// What to do about a body that is wanted a second time and can be read only once.
    ///
    /// - Parameter otherwise: What else would help.
    func replayHint(or otherwise: String) -> String {
        let part = onceOnlyPart.map { " It is \($0) that can be read only once." } ?? ""
        return "Give a body that can be replayed, or \(otherwise)." + part
    }

    /// Writes the body to a new file.
    /// - Throws: `NetworkError` of kind `invalidRequest`, `bodyFailed` or `cancelled`.
    func write(to path: String) async throws(NetworkError) {
        let upload: TransferPlan.Upload
        do throws(SourceFailure) {
            upload = try self.upload()
        } catch {
            throw NetworkError(invalid: .body, "The request body is unusable: \(error).", cause: error)
        }
        do throws(BodySpool.Failure) {
            try await BodySpool.write(upload, to: path)
        } catch {
            throw NetworkError(error)
        }
    }
}

extension JoinedBody.Piece {
    /// The pieces it consists of, without those that are empty for certain.
    var parted: [JoinedBody.Piece] {
        switch body.content {
        case .none: []
        case .joined(let joined): joined.pieces.map { JoinedBody.Piece(body: $0.body, label: label ?? $0.label) }
        default: [self]
        }
    }
}
