// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

extension DownloadProcess {
    /// The maximum number of connections for one file.
    private static let maximumConnections = 32

    /// Starts workers that fetch chunks from the end, if the options request it, the server supports ranges and at
    /// least two chunks are missing.
    ///
    /// A part file that already has chunks always gets a plan, even without workers.
    ///
    /// - Parameter head: The head of the main download's response; nil before the response.
    mutating func startFetcher(_ head: ResponseHead? = nil) async throws {
        guard fetcher == nil, let part, let note = part.note, let total = part.total else { return }
        let options = plan.options
        let missing = total - part.stored
        let isWanted = options.segments > 1 && request.options.bandwidth == nil && missing >= 2 * options.minimumChunk
        let isPossible = head.map { $0[.acceptRanges]?.lowercased() != "none" } ?? false
        guard note.pieces != nil || isWanted && isPossible else { return }
        let count = isWanted ? min(options.segments, Self.maximumConnections) : 1
        let plan = SegmentPlan(
            of: total, piece: SegmentPlan.piece(of: total, for: count, smallest: options.minimumChunk),
            front: part.stored, storedRanges: note.pieces ?? [])
        // Write the note before the first worker writes: from then on, the file's size is not the number of stored
        // bytes.
        if note.pieces == nil { try await self.part?.recordChunks([]) }
        download.begin(at: part.stored + plan.storedBehindFront, of: total)
        let fetcher = RangeFetcher(
            plan, into: part.file, note.validator, request, download, context, policy, stopwatch)
        self.fetcher = fetcher
        download.setFetcher(fetcher)
        fetcher.begin(count - 1)
    }

    /// Skips chunks that workers have stored, and waits for chunks that they are fetching directly behind the front.
    ///
    /// - Returns: Whether the file is complete.
    mutating func skipFetchedChunks(of fetcher: RangeFetcher) async throws -> Bool {
        while true {
            let seen = fetcher.signal.count
            try await waitWhilePaused()
            switch fetcher.next {
            case .nothing: return true
            case .there(let end):
                try await part?.skip(to: end)
                fetcher.advance(to: end)
                try await part?.recordChunks(fetcher.storedRanges)
            case .awaited:
                if let pieces = fetcher.takeChangedRanges() { try await part?.recordChunks(pieces) }
                guard await fetcher.signal.wait(after: seen) else { throw CancellationError() }
            case .missing: return false
            }
        }
    }

    /// Stops the workers, and waits until they have stopped writing.
    mutating func stopFetcher() async {
        guard let fetcher else { return }
        await fetcher.stop()
        download.setFetcher(nil)
        // If this write fails, the note lists fewer chunks than are stored, which is harmless.
        if let part, part.note != nil, part.stored != part.total {
            try? await self.part?.recordChunks(fetcher.storedRanges)
        }
        self.fetcher = nil
    }
}
