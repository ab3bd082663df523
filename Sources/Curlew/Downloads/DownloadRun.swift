// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import FoundationEssentials

/// What a download is to do.
struct DownloadPlan: Sendable {
    var destination: DownloadDestination
    var overwrite: DownloadOverwrite
    var checksum: Checksum?
    var options: DownloadOptions
    /// The part to go on with.
    var token: ResumeToken?
    /// The URL by which the part is known, where a request goes to another one.
    var source: String?
    var witness: (any DownloadWitness)?
}

/// One download as all see it who have to do with it: how far it is, where it can be read, and what it gave.
final class DownloadRun: TransferKeeper {
    private struct State {
        var received: Int64 = 0
        var transferred: Int64 = 0
        var expected: Int64?
        var head: ResponseHead?
        var request: Request?
        /// What is written, for those who read it meanwhile.
        var file: PartFile?
        var written: Int64 = 0
        /// How often it has begun at the start.
        var generation = 0
        var end: Result<DownloadedFile, NetworkError>?
        var token: ResumeToken?
        /// Whether the part is of no use any more.
        var isDiscarded = false
        /// Whether the attempt on the wire was given up, since the pause takes long.
        var isDropped = false
        /// Whether it can be asked again, or go on, over another connection.
        var canGoOn = false
        /// Whether it waits for a place in its queue.
        var isQueued = false
        var grace: Task<Void, Never>?
        /// Those who fetch from the end.
        weak var crew: SegmentCrew?
    }

    let plan: DownloadPlan
    let bell = Bell()
    private let state = Lock(State())

    init(_ plan: DownloadPlan) { self.plan = plan }

    // MARK: Seen from the transfer

    var progress: TransferProgress {
        state.withLock {
            TransferProgress(received: min($0.received, $0.expected ?? .max), expectedToReceive: $0.expected)
        }
    }

    var transferred: Int64 { state.withLock { $0.transferred } }

    var copy: IncomingResponse? {
        let (head, request) = state.withLock { ($0.head, $0.request) }
        guard let head, let request else { return nil }
        return IncomingResponse(head, IncomingBody(FollowedFile(self), carrier: nil), request, nil)
    }

    /// The file.
    ///
    /// - Throws: Why there is none.
    func file() throws(NetworkError) -> DownloadedFile {
        guard let end = state.withLock({ $0.end }) else {
            throw NetworkError(.internal, phase: .saving, "A download has ended without a file.")
        }
        return try end.get()
    }

    /// What a download that has ended left behind.
    var token: ResumeToken? { state.withLock { $0.token } }

    /// Has the part removed when the download ends without a file.
    func discard() { state.withLock { $0.isDiscarded = true } }

    var isDiscarded: Bool { state.withLock { $0.isDiscarded } }

    func priorityChanged(_ run: TransferRun) { plan.options.queue?.standingChanged(run) }

    func pauseChanged(_ run: TransferRun) {
        plan.options.queue?.standingChanged(run)
        if !run.isPaused { plan.options.queue?.advance() }
        state.withLock { $0.crew }?.pauseChanged()
        let grace = plan.options.boundedGrace
        state.withLock { state in
            state.grace?.cancel()
            state.grace = nil
            // Asked here, so that of two who change it the last to come knows what it is.
            guard run.isPaused, state.end == nil else { return }
            state.grace = Task { [weak self, weak run] in
                // Again and again: what cannot be gone on with now may be later.
                var wait = grace
                repeat {
                    do { try await ContinuousClock().wait(for: wait) } catch { return }
                    wait = max(grace, .seconds(1))
                } while self?.giveUpConnection(of: run) == false
            }
        }
    }

    /// Whether there is nothing more to give up.
    private func giveUpConnection(of run: TransferRun?) -> Bool {
        guard let run else { return true }
        let gives = state.withLock { state -> Bool? in
            guard state.end == nil, run.isPaused else { return nil }
            state.isDropped = state.canGoOn
            return state.canGoOn
        }
        if gives == true {
            state.withLock { $0.crew }?.drop()
            run.dropAttempt()
        }
        return gives ?? true
    }

    // MARK: Seen from the task that downloads

    /// Whether the connection was given up because of a pause, since this was asked last.
    func takeDrop() -> Bool {
        state.withLock { state in
            defer { state.isDropped = false }
            return state.isDropped
        }
    }

    func begins(at offset: Int64, of total: Int64?) {
        state.withLock { ($0.received, $0.expected) = (offset, total) }
    }

    var isQueued: Bool {
        get { state.withLock { $0.isQueued } }
        set { state.withLock { $0.isQueued = newValue } }
    }

    /// Takes note that a request is sent now: until its response has come, whether it can be sent again.
    func asks(canAskAgain: Bool) { state.withLock { $0.canGoOn = canAskAgain } }

    /// Takes note of those who fetch from the end, if there are any.
    func employs(_ crew: SegmentCrew?) { state.withLock { $0.crew = crew } }

    func received(_ count: Int) {
        state.withLock { state in
            state.received += Int64(count)
            state.transferred += Int64(count)
        }
    }

    /// Takes note of the response whose body is written to a file now, which has so many bytes.
    func reads(_ response: IncomingResponse, into file: PartFile, at offset: Int64, canGoOn: Bool) {
        state.withLock { state in
            let isAnew = offset == 0
            // Who has read nothing yet can go on with it.
            if isAnew, state.file != nil, state.written > 0 { state.generation += 1 }
            (state.file, state.written, state.canGoOn) = (file, offset, canGoOn)
            if state.head == nil || isAnew { (state.head, state.request) = (response.head, response.request) }
        }
        bell.ring()
    }

    func wrote(_ size: Int64) {
        state.withLock { $0.written = size }
        bell.ring()
    }

    func end(_ result: Result<DownloadedFile, NetworkError>, token: ResumeToken? = nil) {
        let grace = state.withLock { state in
            state.end = result
            state.token = token
            // Whoever reads it meanwhile has it, and who comes later opens it.
            state.file = nil
            if case .success(let file) = result { (state.received, state.expected) = (file.bytes, file.bytes) }
            defer { state.grace = nil }
            return state.grace
        }
        grace?.cancel()
        bell.ring()
    }

    // MARK: Seen from those who read along

    struct Standing {
        let file: PartFile?
        let written: Int64
        let generation: Int
        let end: Result<DownloadedFile, NetworkError>?
    }

    var standing: Standing {
        state.withLock {
            Standing(file: $0.file, written: $0.written, generation: $0.generation, end: $0.end)
        }
    }
}

/// Reads the file of a download from its start while it grows.
private final class FollowedFile: ChunkSource {
    private static let piece = 64 << 10

    private let run: DownloadRun
    private let generation: Int
    private let file: Lock<PartFile?>
    private let position = Lock<Int64>(0)

    init(_ run: DownloadRun) {
        self.run = run
        let now = run.standing
        generation = now.generation
        file = Lock(now.file)
    }

    var trailers: HeaderFields? { nil }

    func next() async throws -> ByteChunk? {
        while true {
            let rings = run.bell.rings
            let (now, position) = (run.standing, position.withLock { $0 })
            guard now.generation == generation else {
                throw Self.changed("The download began again, with another state of the resource.")
            }
            if position < now.written, let chunk = try await piece(at: position, now) {
                self.position.withLock { $0 += Int64(chunk.count) }
                return chunk
            }
            if let end = now.end {
                guard try position >= end.get().bytes else { throw Self.changed("Somebody has cut the file off.") }
                return nil
            }
            if await !run.bell.wait(after: rings) { throw CancellationError() }
        }
    }

    private static func changed(_ message: String) -> NetworkError {
        NetworkError(
            .contentChanged, phase: .receiving, message,
            hint: "What was read so far is not part of the file; read it again from its start.")
    }

    /// What is there from a position on; nil when it is not there any more.
    private func piece(at position: Int64, _ now: DownloadRun.Standing) async throws(NetworkError) -> ByteChunk? {
        do throws(DiskFailure) {
            if file.withLock({ $0 }) == nil, case .success(let whole) = now.end {
                let opened = try await Self.open(whole.path)
                file.withLock { $0 = opened }
            }
            guard let file = file.withLock({ $0 }) ?? now.file else { return nil }
            // What is beyond may be a gap, before pieces that others have fetched.
            let most = Int(min(Int64(Self.piece), now.written - position))
            let chunk = try await Self.read(file, at: position, upTo: most)
            // It may be of what has come since it began again.
            return chunk.isEmpty || run.standing.generation != generation ? nil : chunk
        } catch {
            throw NetworkError(error, request: nil)
        }
    }

    /// A file to be read.
    private static func open(_ path: String) async throws(DiskFailure) -> PartFile {
        try await DiskThread.saving.result(at: path) { () throws(DiskFailure) in try PartFile.reading(path) }
    }

    /// A piece of what is written.
    private static func read(
        _ file: PartFile, at position: Int64, upTo most: Int
    ) async throws(DiskFailure) -> ByteChunk {
        let chunk = try await DiskThread.saving.result(at: file.path) { () throws(DiskFailure) in
            try file.read(at: position, upTo: most)
        }
        return ByteChunk(chunk)
    }
}
