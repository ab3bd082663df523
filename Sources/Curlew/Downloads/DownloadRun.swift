// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import FoundationEssentials
internal import CurlewSupport

/// The parameters of a download.
struct DownloadPlan: Sendable {
    var destination: DownloadDestination
    var overwrite: DownloadDestination.Overwrite
    var checksum: Checksum?
    var options: DownloadOptions
    /// The token of the part file to resume from.
    var token: ResumeToken?
    /// The URL in the part file's note, if the request has another URL.
    var source: String?
    var observer: (any DownloadObserver)?
}

/// The shared state of one download: its progress, its file for readers, and its result.
final class DownloadRun: Sendable {
    private struct State {
        var received: Int64 = 0
        var transferred: Int64 = 0
        var expected: Int64?
        var head: ResponseHead?
        var request: Request?
        /// The file being written, for concurrent readers.
        var file: PartialFile?
        var written: Int64 = 0
        /// The number of restarts at the first byte after readers could see bytes.
        var generation = 0
        var end: Result<DownloadedFile, NetworkError>?
        var token: ResumeToken?
        /// Whether to delete the part file when the download ends without a file.
        var isDiscarded = false
        /// Whether the current attempt was dropped because of a long pause.
        var wasDropped = false
        /// Whether the request can be sent again, or the download resumed, over another connection.
        var canResume = false
        /// Whether the download waits for a slot in its queue.
        var isQueued = false
        var grace: Task<Void, Never>?
        /// The additional connections that fetch chunks from the end.
        weak var fetcher: RangeFetcher?
    }

    let plan: DownloadPlan
    let signal = Signal()
    private let state = Lock(State())

    init(_ plan: DownloadPlan) { self.plan = plan }

    // MARK: For the transfer

    var progress: TransferProgress {
        state.withLock {
            TransferProgress(received: min($0.received, $0.expected ?? .max), expectedToReceive: $0.expected)
        }
    }

    var transferred: Int64 { state.withLock { $0.transferred } }

    var copy: IncomingResponse? {
        let (head, request) = state.withLock { ($0.head, $0.request) }
        guard let head, let request else { return nil }
        return IncomingResponse(head, IncomingBody(GrowingFileSource(self), carrier: nil), request, nil)
    }

    /// Returns the downloaded file.
    ///
    /// - Throws: The error that ended the download.
    func file() throws(NetworkError) -> DownloadedFile {
        guard let end = state.withLock({ $0.end }) else {
            throw NetworkError(.internal, phase: .saving, "The download ended without a file.")
        }
        return try end.get()
    }

    /// The token for resuming the download, once it has ended.
    var token: ResumeToken? { state.withLock { $0.token } }

    /// Makes the download delete its part file when it ends without a file.
    func discard() { state.withLock { $0.isDiscarded = true } }

    var isDiscarded: Bool { state.withLock { $0.isDiscarded } }

    func priorityChanged(_ run: TransferRun) { plan.options.queue?.priorityOrPauseChanged(run) }

    func pauseChanged(_ run: TransferRun) {
        plan.options.queue?.priorityOrPauseChanged(run)
        if !run.isPaused { plan.options.queue?.advance() }
        fetcher?.pauseChanged()
        let grace = plan.options.boundedGrace
        state.withLock { state in
            state.grace?.cancel()
            state.grace = nil
            // Read the pause state under the lock, so that the last of several concurrent calls acts on the current
            // state.
            guard run.isPaused, state.end == nil else { return }
            state.grace = Task { [weak self, weak run, clock = run.session.clock] in
                // Repeat the attempt: a download that cannot be resumed now may become resumable later.
                var wait = grace
                repeat {
                    do { try await clock.wait(for: wait) } catch { return }
                    wait = max(grace, .seconds(1))
                } while self?.dropConnectionIfResumable(of: run) == false
            }
        }
    }

    /// Drops the connection of a paused download if the download can be resumed.
    ///
    /// - Returns: Whether the caller can stop: the connection was dropped, or the download is not paused any more.
    private func dropConnectionIfResumable(of run: TransferRun?) -> Bool {
        guard let run else { return true }
        let gives = state.withLock { state -> Bool? in
            guard state.end == nil, run.isPaused else { return nil }
            state.wasDropped = state.canResume
            return state.canResume
        }
        if gives == true {
            fetcher?.cancelTransfers()
            run.cancelAttempts()
        }
        return gives ?? true
    }

    // MARK: For the task that downloads

    /// Returns whether the connection was dropped because of a pause, and clears the flag.
    func clearDropped() -> Bool {
        state.withLock { state in
            defer { state.wasDropped = false }
            return state.wasDropped
        }
    }

    func begin(at offset: Int64, of total: Int64?) {
        state.withLock { ($0.received, $0.expected) = (offset, total) }
    }

    var isQueued: Bool {
        get { state.withLock { $0.isQueued } }
        set { state.withLock { $0.isQueued = newValue } }
    }

    /// Records that a request is being sent, and whether it can be sent again before its response arrives.
    func willSend(canSendAgain: Bool) { state.withLock { $0.canResume = canSendAgain } }

    /// Sets the additional connections that fetch chunks from the end; nil when there are no more.
    var fetcher: RangeFetcher? { state.withLock { $0.fetcher } }

    func setFetcher(_ fetcher: RangeFetcher?) { state.withLock { $0.fetcher = fetcher } }

    func received(_ count: Int) {
        state.withLock { state in
            state.received += Int64(count)
            state.transferred += Int64(count)
        }
    }

    /// Records the response whose body is being written to the file from `offset` on.
    func willReceive(_ response: IncomingResponse, into file: PartialFile, at offset: Int64, canResume: Bool) {
        state.withLock { state in
            let isAnew = offset == 0
            // Readers that have read no byte yet can continue, so the generation stays when nothing was written.
            if isAnew, state.file != nil, state.written > 0 { state.generation += 1 }
            (state.file, state.written, state.canResume) = (file, offset, canResume)
            if state.head == nil || isAnew { (state.head, state.request) = (response.head, response.request) }
        }
        signal.send()
    }

    func didWrite(_ size: Int64) {
        state.withLock { $0.written = size }
        signal.send()
    }

    func end(_ result: Result<DownloadedFile, NetworkError>, token: ResumeToken? = nil) {
        let grace = state.withLock { state in
            state.end = result
            state.token = token
            // Current readers hold the file themselves, and later readers open the finished file by its path.
            state.file = nil
            if case .success(let file) = result { (state.received, state.expected) = (file.bytes, file.bytes) }
            defer { state.grace = nil }
            return state.grace
        }
        grace?.cancel()
        signal.send()
    }

    // MARK: For concurrent readers

    struct Standing {
        let file: PartialFile?
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

/// A source that reads the file of a download from its start while the file grows.
private final class GrowingFileSource: ChunkSource {
    private static let piece = 64 << 10

    private let run: DownloadRun
    private let generation: Int
    private let file: Lock<PartialFile?>
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
            let seen = run.signal.count
            let (now, position) = (run.standing, position.withLock { $0 })
            guard now.generation == generation else {
                throw Self.changed("The download restarted because the resource has changed.")
            }
            if position < now.written, let chunk = try await piece(at: position, now) {
                self.position.withLock { $0 += Int64(chunk.count) }
                return chunk
            }
            if let end = now.end {
                guard try position >= end.get().bytes else { throw Self.changed("The file was truncated.") }
                return nil
            }
            if await !run.signal.wait(after: seen) { throw CancellationError() }
        }
    }

    private static func changed(_ message: String) -> NetworkError {
        NetworkError(
            .contentChanged, phase: .receiving, message,
            hint: "The bytes read so far do not belong to the file; read it again from its start.")
    }

    /// Reads the next chunk from a position; nil when the file or these bytes are not available any more.
    private func piece(at position: Int64, _ now: DownloadRun.Standing) async throws(NetworkError) -> ByteChunk? {
        do throws(DiskFailure) {
            if file.withLock({ $0 }) == nil, case .success(let whole) = now.end {
                let opened = try await Self.open(whole.path)
                file.withLock { $0 = opened }
            }
            guard let file = file.withLock({ $0 }) ?? now.file else { return nil }
            // Bytes beyond `written` may be a gap in front of chunks that other connections have fetched.
            let limit = Int(min(Int64(Self.piece), now.written - position))
            let chunk = try await Self.read(file, at: position, upTo: limit)
            // If the download restarted meanwhile, the chunk may have bytes of the new content: discard it.
            return chunk.isEmpty || run.standing.generation != generation ? nil : chunk
        } catch {
            throw NetworkError(error, request: nil)
        }
    }

    /// Opens a file for reading.
    private static func open(_ path: String) async throws(DiskFailure) -> PartialFile {
        try await DiskThread.saving.result(at: path) { () throws(DiskFailure) in try PartialFile.reading(path) }
    }

    /// Reads a chunk of a file.
    private static func read(
        _ file: PartialFile, at position: Int64, upTo limit: Int
    ) async throws(DiskFailure) -> ByteChunk {
        let chunk = try await DiskThread.saving.result(at: file.path) { () throws(DiskFailure) in
            try file.read(at: position, upTo: limit)
        }
        return ByteChunk(chunk)
    }
}
