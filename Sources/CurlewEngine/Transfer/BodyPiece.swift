// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// One of the pieces a body is made of, which are sent one after the other.
package struct BodyPiece: Sendable {
    package enum Source: Sendable {
        case bytes([UInt8])
        /// A regular file, from its start.
        case file(String)
        case descriptor(OwnedDescriptor, length: Int64?)
        /// A producer that pushes into the feed it is given; what it gives back ends it.
        case producer(length: Int64?, open: @Sendable (UploadPipe.Feed) -> @Sendable () -> Void)
    }

    package let source: Source
    /// What errors call the piece, such as "the part “image”"; nil for one that needs no name.
    package let label: String?
    /// Whether the piece gives the same bytes again.
    package let canReplay: Bool
    /// Of a source that can be read only once, shared by all bodies that have it.
    package let use: SourceUse?

    package init(_ source: Source, label: String? = nil, canReplay: Bool = true, use: SourceUse? = nil) {
        self.source = source
        self.label = label
        self.canReplay = canReplay
        self.use = use
    }

    /// How many bytes the piece has, when that is known; a file is asked.
    ///
    /// - Throws: `SourceFailure` when there is no such regular file.
    func length() throws(SourceFailure) -> Int64? {
        switch source {
        case .bytes(let bytes): return Int64(bytes.count)
        case .file(let path):
            do throws(SourceFailure) { return try Self.lengthOfFile(path) } catch { throw error.of(label) }
        case .descriptor(let owner, let length): return length ?? owner.rest
        case .producer(let length, _): return length
        }
    }

    /// The directory of a file.
    var directory: String? { if case .file(let path) = source { DiskFile.directory(of: path) } else { nil } }

    private static func lengthOfFile(_ path: String) throws(SourceFailure) -> Int64 {
        var facts = stat()
        // C would read the path up to the NUL, and send another file than the one that is named.
        guard !path.utf8.contains(0) else { throw SourceFailure(what: "a file's path contains a NUL", errno: 0) }
        guard stat(path, &facts) == 0 else { throw SourceFailure(what: "cannot read \(path)", errno: errno) }
        guard facts.st_mode & S_IFMT == S_IFREG else {
            throw SourceFailure(what: "\(path) is not a regular file", errno: 0)
        }
        guard access(path, R_OK) == 0 else { throw SourceFailure(what: "cannot read \(path)", errno: errno) }
        return Int64(facts.st_size)
    }
}

/// How long the pieces of a body are, as far as that is known by now; for those who watch the body being sent.
package final class PieceLengths: Sendable {
    private let lengths = Lock<[Int64?]>([])

    package init() {}

    /// In the order of the pieces; empty before the body is first asked for.
    package var all: [Int64?] { lengths.withLock { $0 } }

    package func begin(_ known: [Int64?]) { lengths.withLock { $0 = known } }

    func set(_ length: Int64, at index: Int) {
        lengths.withLock { if $0.indices.contains(index) { $0[index] = length } }
    }
}

/// The hold of a producer that gives one piece of a body: what it gives is counted and kept to what was declared, and
/// when it ends, the next piece begins.
final class BodySection: Sendable {
    private struct State {
        var taken: Int64 = 0
        var isOver = false
    }

    private let declared: Int64?
    private let state = Lock(State())
    /// Called once, on the producer's thread, with the number of bytes or why there are no more.
    private let ended: @Sendable (Result<Int64, SourceFailure>) -> Void

    init(declared: Int64?, ended: @escaping @Sendable (Result<Int64, SourceFailure>) -> Void) {
        self.declared = declared
        self.ended = ended
    }

    /// Whether so many bytes more belong to the piece; one with too many has failed.
    func takes(_ count: Int) -> Bool {
        let (takes, isTooLong) = state.withLock { state in
            guard !state.isOver else { return (false, false) }
            state.taken += Int64(count)
            guard let declared, state.taken > declared else { return (true, false) }
            state.isOver = true
            return (false, true)
        }
        if isTooLong, let declared {
            ended(.failure(SourceFailure(what: "it has more than the \(declared) bytes declared", errno: 0)))
        }
        return takes
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
