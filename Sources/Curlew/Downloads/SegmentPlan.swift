// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Who fetches what of a whole that several fetch at once.
///
/// One goes from the front to the end, the others take pieces from the end towards the front, until they meet. So the one in
/// front needs no more than one response, and can do it all alone.
struct SegmentPlan: Sendable, Hashable {
    /// What is at the front now.
    enum Next: Sendable, Hashable {
        /// Nothing is missing.
        case nothing
        /// Bytes that are there, up to an end.
        case there(Int64)
        /// Bytes that somebody else fetches.
        case awaited
        /// Bytes that nobody has and nobody fetches.
        case missing
    }

    /// How many bytes the whole has.
    let total: Int64
    /// How many bytes are taken at once.
    let piece: Int64
    /// Up to where all is there.
    private(set) var front: Int64
    /// What is there behind the front, in order and without touching.
    private(set) var done: [Range<Int64>]
    /// What the others fetch: what is missing of it.
    private(set) var claims: [Int: Range<Int64>] = [:]
    /// Those of them who are getting it.
    private var answered: Set<Int> = []

    /// - Parameters:
    ///   - front: Up to where all is there.
    ///   - done: What is there behind it.
    init(of total: Int64, piece: Int64, front: Int64, done: [Range<Int64>] = []) {
        (self.total, self.piece, self.front) = (total, max(piece, 1), min(front, total))
        self.done = []
        for range in done where range.lowerBound >= 0 && range.upperBound <= total { add(range) }
    }

    /// The size of pieces for so many at once, at least `smallest`.
    static func piece(of total: Int64, for count: Int, smallest: Int64) -> Int64 {
        min(max(total / Int64(max(count, 1) * 8), smallest), max(32 << 20, smallest))
    }

    var next: Next {
        if front >= total { return .nothing }
        if let first = done.first, first.lowerBound <= front { return .there(first.upperBound) }
        return claims.values.contains { $0.lowerBound <= front && !$0.isEmpty } ? .awaited : .missing
    }

    /// Up to where the one in front goes, unless more is taken from the others.
    ///
    /// For what somebody has only asked for it does not stop: a refusal would make it ask for the rest again.
    var border: Int64 {
        let starts = claims.filter { answered.contains($0.key) && !$0.value.isEmpty }.map(\.value.lowerBound)
        return min(starts.min() ?? total, done.first?.lowerBound ?? total)
    }

    /// How many bytes are there behind the front.
    var behind: Int64 { done.reduce(0) { $0 + Int64($1.count) } }

    /// Takes a piece, the last one that is missing; nil when what is missing is for the one in front.
    mutating func claim(by worker: Int) -> Range<Int64>? {
        var end = total
        for range in (done + claims.values.filter { !$0.isEmpty }).sorted(by: { $0.lowerBound > $1.lowerBound }) {
            if range.upperBound < end, let claim = claim(in: range.upperBound..<end, by: worker) { return claim }
            end = min(end, range.lowerBound)
        }
        return front < end ? claim(in: front..<end, by: worker) : nil
    }

    private mutating func claim(in gap: Range<Int64>, by worker: Int) -> Range<Int64>? {
        // Right in front of somebody who comes along anyway there has to be enough for two.
        if gap.lowerBound <= front, Int64(gap.count) < 2 * piece { return nil }
        let claim = max(gap.lowerBound, gap.upperBound - piece)..<gap.upperBound
        claims[worker] = claim
        return claim
    }

    /// Takes note that a worker gets what it has asked for.
    ///
    /// - Returns: Whether it is still wanted; else the one in front has it.
    mutating func answered(_ worker: Int) -> Bool {
        guard claims[worker] != nil else { return false }
        answered.insert(worker)
        return true
    }

    /// Takes note that a worker has fetched up to a place.
    mutating func fetched(_ worker: Int, upTo end: Int64) {
        // What is beyond it can only be about an earlier one.
        guard let claim = claims[worker], end > claim.lowerBound, end <= claim.upperBound else { return }
        add(claim.lowerBound..<end)
        claims[worker] = end..<claim.upperBound
    }

    /// Takes note that a worker does no more; what is missing of its piece is for others.
    mutating func release(_ worker: Int) {
        claims[worker] = nil
        answered.remove(worker)
    }

    /// Takes note that all is there up to a place; pieces that were only asked for are not wanted any more where it is in them.
    mutating func moved(to place: Int64) {
        front = max(front, min(place, total))
        done.removeAll { $0.upperBound <= front }
        claims = claims.filter { answered.contains($0.key) || $0.value.lowerBound >= front }
    }

    private mutating func add(_ range: Range<Int64>) {
        guard !range.isEmpty, range.upperBound > front else { return }
        var joined = range
        done.removeAll { other in
            guard other.lowerBound <= joined.upperBound, joined.lowerBound <= other.upperBound else { return false }
            joined = min(joined.lowerBound, other.lowerBound)..<max(joined.upperBound, other.upperBound)
            return true
        }
        done.append(joined)
        done.sort { $0.lowerBound < $1.lowerBound }
    }
}
