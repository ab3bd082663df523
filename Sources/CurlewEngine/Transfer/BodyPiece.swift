// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import CurlewSupport

/// One of the pieces of a body, which are sent one after the other.
package struct BodyPiece: Sendable {
    package enum Source: Sendable {
        case bytes([UInt8])
        /// A regular file, sent from its start.
        case file(String)
        case descriptor(OwnedDescriptor, length: Int64?)
        /// A producer that pushes into the given feed; the returned closure stops it.
        case producer(length: Int64?, open: @Sendable (UploadPipe.Feed) -> @Sendable () -> Void)
    }

    package let source: Source
    /// The name of the piece in errors, such as "the part “image”"; nil if it needs no name.
    package let label: String?
    /// Whether the piece can be read again with the same bytes.
    package let canReplay: Bool
    /// The use of a source that can be read only once, shared by all bodies with this source.
    package let use: SourceUse?

    package init(_ source: Source, label: String? = nil, canReplay: Bool = true, use: SourceUse? = nil) {
        self.source = source
        self.label = label
        self.canReplay = canReplay
        self.use = use
    }

    /// Returns the piece with a name for errors.
    package func labeled(_ label: String?) -> BodyPiece {
        BodyPiece(source, label: label, canReplay: canReplay, use: use)
    }

    /// Converts the piece to a whole body.
    ///
    /// - Throws: `SourceFailure` if it is a file that cannot be read.
    package func upload() throws(SourceFailure) -> TransferPlan.Upload {
        switch source {
        case .bytes(let bytes): .bytes(bytes)
        case .file(let path): .pipe(try .file(path))
        case .descriptor(let owner, let length): .pipe(.descriptor(owner, length: length, use: use))
        case .producer(let length, let open):
            .pipe(UploadPipe(length: length, canReplay: canReplay, use: use, open: open))
        }
    }

    /// Returns the number of bytes of the piece, if known; for a file, this queries the file system.
    ///
    /// - Throws: `SourceFailure` if there is no such regular file.
    func length() throws(SourceFailure) -> Int64? {
        switch source {
        case .bytes(let bytes): return Int64(bytes.count)
        case .file(let path):
            do throws(SourceFailure) { return try Self.lengthOfFile(path) } catch { throw error.of(label) }
        case .descriptor(let owner, let length): return length ?? owner.rest
        case .producer(let length, _): return length
        }
    }

    /// The directory of a file; nil for other pieces.
    var directory: String? { if case .file(let path) = source { DiskFile.directory(of: path) } else { nil } }

    private static func lengthOfFile(_ path: String) throws(SourceFailure) -> Int64 {
        var facts = stat()
        // C reads a path only up to the NUL, so another file than the named one would be sent.
        guard !path.utf8.contains(0) else { throw SourceFailure(what: "a file's path contains a NUL", errno: 0) }
        guard stat(path, &facts) == 0 else { throw SourceFailure(what: "cannot read \(path)", errno: errno) }
        guard facts.st_mode & S_IFMT == S_IFREG else {
            throw SourceFailure(what: "\(path) is not a regular file", errno: 0)
        }
        guard access(path, R_OK) == 0 else { throw SourceFailure(what: "cannot read \(path)", errno: errno) }
        return Int64(facts.st_size)
    }
}

/// The known lengths of the pieces of a body, for observers of its progress.
package final class PieceLengths: Sendable {
    private let lengths = Lock<[Int64?]>([])

    package init() {}

    /// The lengths in the order of the pieces; empty before the body is first read.
    package var all: [Int64?] { lengths.withLock { $0 } }

    package func begin(_ known: [Int64?]) { lengths.withLock { $0 = known } }

    func set(_ length: Int64, at index: Int) {
        lengths.withLock { if $0.indices.contains(index) { $0[index] = length } }
    }
}

/// The share of one producer in a body of several pieces: it counts the producer's bytes, compares them with the
/// declared length, and starts the next piece at the end.
final class BodySection: Sendable {
    private struct State {
        var taken: Int64 = 0
        var isOver = false
    }

    private let declared: Int64?
    private let state = Lock(State())
    /// Called once, on the producer's thread, with the number of bytes or the reason of a failure.
    private let ended: @Sendable (Result<Int64, SourceFailure>) -> Void

    init(declared: Int64?, ended: @escaping @Sendable (Result<Int64, SourceFailure>) -> Void) {
        self.declared = declared
        self.ended = ended
    }

    /// Returns whether so many more bytes fit into the piece; a piece with too many bytes fails.
    func accept(_ count: Int) -> Bool {
        let (isAccepted, isTooLong) = state.withLock { state in
            guard !state.isOver else { return (false, false) }
            state.taken += Int64(count)
            guard let declared, state.taken > declared else { return (true, false) }
            state.isOver = true
            return (false, true)
        }
        if isTooLong, let declared {
            ended(.failure(SourceFailure(what: "it has more than the \(declared) bytes declared", errno: 0)))
        }
        return isAccepted
    }

    func finish(_ error: (any Error)?) {
        let taken = state.withLock { state -> Int64? in
            if state.isOver { return nil }
            state.isOver = true
            return state.taken
        }
        guard let taken else { return }
        if let error {
            ended(.failure(error as? SourceFailure ?? SourceFailure(what: "\(error)", errno: 0, cause: error)))
        } else if let declared, taken < declared {
            ended(
                .failure(SourceFailure(what: "it ended after \(taken) of the \(declared) bytes declared", errno: 0)))
        } else {
            ended(.success(taken))
        }
    }
}
