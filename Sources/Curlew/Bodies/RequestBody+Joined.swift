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

    /// The lengths of the pieces, as far as known for the current or latest sending; empty before the body is first
    /// sent.
    var knownLengths: [Int64?] { lengths.all }

    private func mapped<Failure: Error>(
        _ change: (RequestBody) throws(Failure) -> RequestBody
    ) throws(Failure) -> JoinedBody {
        var changed: [Piece] = []
        for piece in pieces { changed.append(Piece(body: try change(piece.body), label: piece.label)) }
        return JoinedBody(changed, flaw: flaw, lengths: lengths)
    }
}

extension JoinedBody: BodySource {
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

    var canReplay: Bool { pieces.allSatisfy(\.body.canReplay) }
    var isConsumed: Bool { pieces.contains(where: \.body.isConsumed) }
    var needsOwnDescriptor: Bool { pieces.contains(where: \.body.needsOwnDescriptor) }

    /// The whole body, or nil unless every piece is bytes in memory or empty.
    var joinedBytes: [UInt8]? {
        var bytes: [UInt8] = []
        for piece in pieces where !piece.body.isNone {
            guard let own = piece.body.bytes else { return nil }
            bytes += own
        }
        return bytes
    }

    var shellInput: ShellInput {
        if let joinedBytes { return .bytes(joinedBytes) }
        return .sequence(pieces.map { $0.body.source?.shellInput ?? .bytes([]) }, length: length)
    }

    /// An empty piece: a joined body inside of another one is flattened before it is opened.
    func open() -> BodyPiece { BodyPiece(.bytes([])) }

    func upload() throws(SourceFailure) -> TransferPlan.Upload {
        if let length, length < Self.small, let bytes = joinedBytes {
            lengths.begin(pieces.map(\.body.length))
            return .bytes(bytes)
        }
        var opened: [BodyPiece] = []
        for piece in pieces {
            let body = if let source = piece.body.source { try source.open() } else { BodyPiece(.bytes([])) }
            opened.append(body.labeled(piece.label))
        }
        return .pipe(try .pieces(opened, lengths: lengths))
    }

    func measuredLength() throws(SourceFailure) -> Int64? {
        if let length { length } else { try upload().declaredLength }
    }

    func withOwnDescriptor() throws(SourceFailure) -> any BodySource {
        try mapped { body throws(SourceFailure) in try body.withOwnDescriptor() }
    }

    func withoutDescriptor() -> any BodySource { mapped { $0.withoutDescriptor() } }
}

extension RequestBody {
    /// The reason why a joined body cannot be sent; nil for every other body.
    var flaw: JoinedBody.Flaw? { source?.flaw }

    /// The name of the first part that can be read only once; nil for a body without parts.
    package var nonReplayablePart: String? {
        (source as? JoinedBody)?.pieces.first { !$0.body.canReplay }?.label
    }

    /// Returns a hint for an error about a body that must be sent a second time but can be read only once.
    ///
    /// - Parameter otherwise: An alternative remedy, which completes the sentence.
    package func replayHint(or otherwise: String) -> String {
        let part = nonReplayablePart.map { " Replace \($0), which can be read only once." } ?? ""
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
    var flattenedPieces: [JoinedBody.Piece] {
        guard let source = body.source else { return [] }
        guard let joined = source as? JoinedBody else { return [self] }
        return joined.pieces.map { JoinedBody.Piece(body: $0.body, label: label ?? $0.label) }
    }
}
