// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The plan that divides a file among several connections.
///
/// The main download proceeds from the front to the end. The workers take chunks from the end towards the front, until
/// both meet. Therefore the main download needs only one response, and can complete the file alone.
struct SegmentPlan: Sendable, Hashable {
    /// The state of the bytes at the front.
    enum Next: Sendable, Hashable {
        /// The file is complete.
        case nothing
        /// The bytes up to the given offset are stored.
        case there(Int64)
        /// A worker is fetching the bytes.
        case awaited
        /// The bytes are missing, and no worker is fetching them.
        case missing
    }

    /// The size of the whole file in bytes.
    let total: Int64
    /// The size of a worker's chunk in bytes.
    let piece: Int64
    /// The offset up to which all bytes are stored.
    private(set) var front: Int64
    /// The stored ranges behind the front, in order; no two ranges touch.
    private(set) var storedRanges: [Range<Int64>]
    /// The missing rest of each worker's chunk.
    private(set) var claims: [Int: Range<Int64>] = [:]
    /// The workers that have a usable response.
    private var answered: Set<Int> = []

    /// Creates a plan.
    ///
    /// - Parameters:
    ///   - front: The offset up to which all bytes are stored.
    ///   - storedRanges: The stored ranges behind the front.
    init(of total: Int64, piece: Int64, front: Int64, storedRanges: [Range<Int64>] = []) {
        (self.total, self.piece, self.front) = (total, max(piece, 1), min(front, total))
        self.storedRanges = []
        for range in storedRanges where range.lowerBound >= 0 && range.upperBound <= total { add(range) }
    }

    /// Returns the size of chunks for a number of connections; at least `smallest`.
    static func piece(of total: Int64, for count: Int, smallest: Int64) -> Int64 {
        min(max(total / Int64(max(count, 1) * 8), smallest), max(32 << 20, smallest))
    }

    var next: Next {
        if front >= total { return .nothing }
        if let first = storedRanges.first, first.lowerBound <= front { return .there(first.upperBound) }
        return claims.values.contains { $0.lowerBound <= front && !$0.isEmpty } ? .awaited : .missing
    }

    /// The offset at which the main download stops, given the current chunks.
    ///
    /// A chunk without a response does not stop it: if the server refused that chunk, the main download would have to
    /// send another request for the rest.
    var border: Int64 {
        let starts = claims.filter { answered.contains($0.key) && !$0.value.isEmpty }.map(\.value.lowerBound)
        return min(starts.min() ?? total, storedRanges.first?.lowerBound ?? total)
    }

    /// The number of stored bytes behind the front.
    var storedBehindFront: Int64 { storedRanges.reduce(0) { $0 + Int64($1.count) } }

    /// Assigns the last missing chunk to a worker; nil when the rest is left to the main download.
    mutating func claim(by worker: Int) -> Range<Int64>? {
        var end = total
        for range in (storedRanges + claims.values.filter { !$0.isEmpty }).sorted(by: { $0.lowerBound > $1.lowerBound })
        {
            if range.upperBound < end, let claim = claim(in: range.upperBound..<end, by: worker) { return claim }
            end = min(end, range.lowerBound)
        }
        return front < end ? claim(in: front..<end, by: worker) : nil
    }

    private mutating func claim(in gap: Range<Int64>, by worker: Int) -> Range<Int64>? {
        // Do not split a gap that the main download will reach soon unless it is worth two chunks.
        if gap.lowerBound <= front, Int64(gap.count) < 2 * piece { return nil }
        let claim = max(gap.lowerBound, gap.upperBound - piece)..<gap.upperBound
        claims[worker] = claim
        return claim
    }

    /// Records that a worker has a usable response.
    ///
    /// - Returns: Whether the chunk is still wanted; false when the main download has reached it already.
    mutating func answered(_ worker: Int) -> Bool {
        guard claims[worker] != nil else { return false }
        answered.insert(worker)
        return true
    }

    /// Records that a worker has stored its chunk up to an offset.
    mutating func fetched(_ worker: Int, upTo end: Int64) {
        // An offset outside the chunk belongs to an earlier chunk of the worker.
        guard let claim = claims[worker], end > claim.lowerBound, end <= claim.upperBound else { return }
        add(claim.lowerBound..<end)
        claims[worker] = end..<claim.upperBound
    }

    /// Records that a worker has stopped; other connections can fetch the rest of its chunk.
    mutating func release(_ worker: Int) {
        claims[worker] = nil
        answered.remove(worker)
    }

    /// Advances the front to an offset, and withdraws chunks without a response that the front has reached.
    mutating func advance(to place: Int64) {
        front = max(front, min(place, total))
        storedRanges.removeAll { $0.upperBound <= front }
        claims = claims.filter { answered.contains($0.key) || $0.value.lowerBound >= front }
    }

    private mutating func add(_ range: Range<Int64>) {
        guard !range.isEmpty, range.upperBound > front else { return }
        var joined = range
        storedRanges.removeAll { other in
            guard other.lowerBound <= joined.upperBound, joined.lowerBound <= other.upperBound else { return false }
            joined = min(joined.lowerBound, other.lowerBound)..<max(joined.upperBound, other.upperBound)
            return true
        }
        storedRanges.append(joined)
        storedRanges.sort { $0.lowerBound < $1.lowerBound }
    }
}
