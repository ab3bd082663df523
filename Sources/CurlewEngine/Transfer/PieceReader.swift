// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import CurlewSupport

extension UploadPipe {
    /// Creates a pipe that sends pieces one after the other; each file is opened, and each producer started, when its
    /// turn comes.
    ///
    /// - Parameter lengths: Receives the known lengths of the pieces now, and the other lengths when they are known.
    /// - Throws: `SourceFailure` if a piece is a file that cannot be read.
    package static func pieces(
        _ pieces: [BodyPiece], lengths: PieceLengths = PieceLengths()
    ) throws(SourceFailure) -> UploadPipe {
        var known: [Int64?] = []
        var length: Int64? = 0
        for piece in pieces {
            let own = try piece.length()
            known.append(own)
            guard let sum = length, let own else {
                length = nil
                continue
            }
            let (total, isTooLong) = sum.addingReportingOverflow(own)
            guard !isTooLong else { throw SourceFailure(what: "the total length of its pieces is too large", errno: 0) }
            length = total
        }
        lengths.begin(known)
        let current = Lock<PieceReader?>(nil)
        let measured = known
        return UploadPipe(
            length: length, canReplay: pieces.allSatisfy(\.canReplay),
            wantsMore: { current.withLock { $0 }?.continueReading() },
            open: { feed in
                let reader = PieceReader(pieces, measured, feed, lengths)
                current.withLock { $0 = reader }
                reader.continueReading()
                return {
                    current.withLock { $0 = nil }
                    reader.stop()
                }
            })
    }
}

/// Reads the pieces of a body, in order and as far ahead as the queue of the pipe allows: bytes and files on the disk
/// thread, producers in their own tasks or threads.
private final class PieceReader: @unchecked Sendable {
    // Safe because the producer is locked, and all other mutable state is touched only by jobs of one disk queue, which
    // run one after the other.

    /// A producer that delivers the bytes of a piece in its own task or thread.
    private struct Producer {
        var isRunning = false
        var poke: (@Sendable () -> Void)?
        var stop: (@Sendable () -> Void)?
        var isStopped = false

        /// Removes and returns the closure that stops the producer.
        mutating func end() -> (@Sendable () -> Void)? {
            defer {
                isRunning = false
                poke = nil
                stop = nil
            }
            return stop
        }
    }

    private enum Advance { case finished, waits, closed }

    /// The number of chunks read from a file before other bodies continue.
    private static let turn = 16

    private let pieces: [BodyPiece]
    private let known: [Int64?]
    private let feed: UploadPipe.Feed
    private let lengths: PieceLengths
    /// The directories of the files, which identify the disk queue: its jobs run one after the other.
    private let diskKey: String
    private let producer = Lock(Producer())
    private var index = 0
    private var offset: Int64 = 0
    private var file: OwnedDescriptor?
    private var isDone = false
    /// A producer delivers the current piece, and reports its end.
    private var waitsForProducer = false

    init(_ pieces: [BodyPiece], _ known: [Int64?], _ feed: UploadPipe.Feed, _ lengths: PieceLengths) {
        self.pieces = pieces
        self.known = known
        self.feed = feed
        self.lengths = lengths
        diskKey = Set(pieces.compactMap(\.directory)).sorted().joined(separator: "\0")
    }

    /// Continues reading, because the queue of the pipe has free capacity.
    func continueReading() {
        let (isRunning, poke) = producer.withLock { ($0.isRunning, $0.poke) }
        if isRunning { poke?() } else { run { $0.work() } }
    }

    func stop() {
        let stop = producer.withLock { producer in
            producer.isStopped = true
            return producer.end()
        }
        stop?()
    }

    private func run(_ job: @escaping @Sendable (PieceReader) -> Void) {
        if !DiskThread.shared.run(in: diskKey, { job(self) }) {
            feed.finish(SourceFailure(what: "no thread to read the body", errno: EAGAIN))
        }
    }

    private func work() {
        guard !isDone, !waitsForProducer else { return }
        do throws(SourceFailure) {
            while index < pieces.count {
                switch try advance(pieces[index]) {
                case .finished: next()
                case .waits: return
                case .closed: return end(nil)
                }
            }
            end(nil)
        } catch {
            end(error.of(pieces[index].label))
        }
    }

    private func next() {
        index += 1
        offset = 0
        file = nil
    }

    private func end(_ error: SourceFailure?) {
        isDone = true
        file = nil
        feed.finish(error)
    }

    private func advance(_ piece: BodyPiece) throws(SourceFailure) -> Advance {
        switch piece.source {
        case .bytes(let bytes): return give(bytes)
        case .file(let path): return try give(fileAt: path, of: known[index] ?? 0)
        case .descriptor(let owner, _):
            return try begin(piece) { feed in
                let reader = UploadPipe.DescriptorReader(owner, feed: feed)
                reader.start()
                return ({ reader.poke() }, { reader.stop() })
            }
        case .producer(_, let open): return try begin(piece) { (nil, open($0)) }
        }
    }

    // MARK: Bytes and files

    private func give(_ bytes: [UInt8]) -> Advance {
        while offset < bytes.count {
            guard feed.hasCapacity else { return .waits }
            let start = Int(offset)
            let end = min(bytes.count, start + UploadPipe.piece)
            offset = Int64(end)
            if !feed.offer(start == 0 && end == bytes.count ? bytes : Array(bytes[start..<end])) { return .closed }
        }
        return .finished
    }

    private func give(fileAt path: String, of length: Int64) throws(SourceFailure) -> Advance {
        let file = try open(path, length)
        var given = 0
        while offset < length {
            // One thread serves all bodies of a directory, so a long file must let other bodies continue.
            if given == Self.turn {
                run { $0.work() }
                return .waits
            }
            given += 1
            // With a full queue, the reader stops; the pipe calls `continueReading()` when there is capacity.
            guard feed.hasCapacity else { return .waits }
            let bytes = try bytes(of: file, path, length)
            offset += Int64(bytes.count)
            if offset == length, pieces.count > 1 { try check(file, path, length) }
            if !feed.offer(bytes) { return .closed }
        }
        return .finished
    }

    private func open(_ path: String, _ length: Int64) throws(SourceFailure) -> OwnedDescriptor {
        if let file { return file }
        let number = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard number >= 0 else { throw SourceFailure(what: "cannot open \(path)", errno: errno) }
        let opened = OwnedDescriptor(number)
        try check(opened, path, length, "before it was sent")
        posix_fadvise(number, 0, 0, POSIX_FADV_SEQUENTIAL)
        file = opened
        return opened
    }

    /// Checks that a file still has its length; in a body of several pieces this also happens before the last bytes are
    /// sent.
    private func check(
        _ file: OwnedDescriptor, _ path: String, _ length: Int64, _ when: String = "while it was sent"
    ) throws(SourceFailure) {
        var facts = stat()
        guard fstat(file.number, &facts) == 0, Int64(facts.st_size) == length else {
            throw SourceFailure(what: "\(path) changed its size \(when)", errno: 0)
        }
    }

    private func bytes(of file: OwnedDescriptor, _ path: String, _ length: Int64) throws(SourceFailure) -> [UInt8] {
        var failure: CInt = 0
        let wanted = Int(min(Int64(UploadPipe.piece), length - offset))
        let bytes = [UInt8](unsafeUninitializedCapacity: wanted) { buffer, count in
            let result = pread(file.number, buffer.baseAddress, wanted, off_t(offset))
            failure = result < 0 ? errno : 0
            count = max(0, result)
        }
        if failure != 0 { throw SourceFailure(what: "cannot read \(path)", errno: failure) }
        if bytes.isEmpty { throw SourceFailure(what: "\(path) changed its size while it was sent", errno: 0) }
        return bytes
    }

    // MARK: Pieces with a producer

    private func begin(
        _ piece: BodyPiece,
        _ open: (UploadPipe.Feed) -> (poke: (@Sendable () -> Void)?, stop: @Sendable () -> Void)
    ) throws(SourceFailure) -> Advance {
        // A producer that is declared empty is not started.
        if known[index] == 0 { return .finished }
        waitsForProducer = true
        let mayBegin = producer.withLock { producer in
            producer.isRunning = !producer.isStopped
            return producer.isRunning
        }
        guard mayBegin else { return .waits }
        if let use = piece.use, !use.begin() {
            _ = producer.withLock { $0.end() }
            throw SourceUse.isOver
        }
        let section = BodySection(declared: known[index]) { self.ended($0) }
        let (poke, stop) = open(feed.limited(to: section))
        let isOver = producer.withLock { producer in
            guard producer.isRunning else { return true }
            (producer.poke, producer.stop) = (poke, stop)
            return false
        }
        // A stop or a request for more bytes may have arrived before the producer existed.
        if isOver { stop() } else { poke?() }
        return .waits
    }

    /// Handles the end of a producer, on the producer's thread.
    private func ended(_ result: Result<Int64, SourceFailure>) {
        let stop = producer.withLock { $0.end() }
        // A producer that delivered too many bytes may still run.
        if case .failure = result { stop?() }
        run { reader in
            switch result {
            case .success(let length):
                reader.lengths.set(length, at: reader.index)
                reader.waitsForProducer = false
                reader.next()
                reader.work()
            case .failure(let failure): reader.end(failure.of(reader.pieces[reader.index].label))
            }
        }
    }
}
