// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

extension DownloadCourse {
    /// The most connections for one file.
    private static let most = 32

    /// Has others fetch from the end, where that is wanted, possible and worth it.
    ///
    /// A part that others have fetched of goes on the same way, if with nobody else.
    ///
    /// - Parameter head: The response that the front comes with; nil before there is one.
    mutating func employ(_ head: ResponseHead? = nil) async throws {
        guard crew == nil, let part, let note = part.note, let total = part.total,
            let core = context.run.host as? SessionCore
        else { return }
        let options = plan.options
        let missing = total - part.stored
        let isWanted = options.segments > 1 && request.options.bandwidth == nil && missing >= 2 * options.smallestPiece
        let isPossible = head.map { $0[.acceptRanges]?.lowercased() != "none" } ?? false
        guard note.pieces != nil || isWanted && isPossible else { return }
        let count = isWanted ? min(options.segments, Self.most) : 1
        let plan = SegmentPlan(
            of: total, piece: SegmentPlan.piece(of: total, for: count, smallest: options.smallestPiece),
            front: part.stored, done: note.pieces ?? [])
        // Before the first of them writes: the part is no beginning any more.
        if note.pieces == nil { try await self.part?.takeDown([]) }
        download.begins(at: part.stored + plan.behind, of: total)
        let crew = SegmentCrew(plan, into: part.file, note.validator, request, download, context.run, core, policy)
        self.crew = crew
        download.employs(crew)
        crew.begin(count - 1)
    }

    /// Goes on over what others have fetched, and waits for what they fetch right in front.
    ///
    /// - Returns: Whether nothing is missing then.
    mutating func meet(_ crew: SegmentCrew) async throws -> Bool {
        while true {
            let rings = crew.bell.rings
            try await waitWhilePaused()
            switch crew.next {
            case .nothing: return true
            case .there(let end):
                try await part?.skip(to: end)
                crew.moved(to: end)
                try await part?.takeDown(crew.done)
            case .awaited:
                if let pieces = crew.news() { try await part?.takeDown(pieces) }
                guard await crew.bell.wait(after: rings) else { throw CancellationError() }
            case .missing: return false
            }
        }
    }

    /// Sends the others away, and waits until they write no more.
    mutating func dismiss() async {
        guard let crew else { return }
        await crew.stop()
        download.employs(nil)
        // Where it fails, less is known to be there than is.
        if let part, part.note != nil, part.stored != part.total { try? await self.part?.takeDown(crew.done) }
        self.crew = nil
    }
}
