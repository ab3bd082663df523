// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// A body that consists of several bodies, sent one after the other.
struct JoinedBody: Sendable {
    struct Piece: Sendable {
        let body: RequestBody
        /// The name of the piece in error messages, such as "the part “image”"; nil for the bytes between named pieces.
        let label: String?
    }

    /// The reason why a joined body cannot be sent; the validation of the request reports it.
    struct Flaw: Sendable {
        let message: String
        let hint: String
    }

    let pieces: [Piece]
    let flaw: Flaw?
    /// The lengths of the pieces, as far as known once the body is being sent; shared by all copies.
    let lengths: PieceLengths

    init(_ pieces: [Piece], flaw: Flaw? = nil, lengths: PieceLengths = PieceLengths()) {
        self.pieces = pieces
        self.flaw = flaw
        self.lengths = lengths
    }

    /// Shorter bodies of known bytes are passed to libcurl in one go, so that they leave together with the head.
    private static let small: Int64 = 64 << 10

    /// The sum of the pieces' lengths; nil while the length of a piece is unknown, or when the sum overflows.
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

    /// The lengths of the pieces, as far as known for the current or latest sending; empty before the body is first
    /// sent.
    var knownLengths: [Int64?] { lengths.all }

    /// The whole body, or nil unless every piece is bytes in memory or empty.
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

    /// Converts the body to the engine's upload type.
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
    /// Converts the piece to the engine's type; a joined body inside a piece must have been flattened before.
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
    /// The reason why a joined body cannot be sent; nil for every other body.
    var flaw: JoinedBody.Flaw? { if case .joined(let joined) = content { joined.flaw } else { nil } }

    /// The name of the first part that can be read only once; nil for a body without parts.
    var onceOnlyPart: String? {
        guard case .joined(let joined) = content else { return nil }
        return joined.pieces.first { !$0.body.canReplay }?.label
    }

    /// Returns a hint for an error about a body that must be sent a second time but can be read only once.
    ///
    /// - Parameter otherwise: An alternative remedy, which completes the sentence.
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
    /// The pieces of a joined body, or the piece itself; no pieces if there is no body.
    var parted: [JoinedBody.Piece] {
        switch body.content {
        case .none: []
        case .joined(let joined): joined.pieces.map { JoinedBody.Piece(body: $0.body, label: label ?? $0.label) }
        default: [self]
        }
    }
}
