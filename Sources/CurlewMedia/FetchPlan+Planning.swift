// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension FetchPlan {
    /// The position up to which a transfer may run: some way ahead of the readers that need it.
    func limit(of id: Int) -> Int64 {
        var limit: Int64 = 0
        for reader in readers.values where reader.source == id {
            if reader.isGreedy { return .max }
            let (sum, isOverflow) = reader.position.addingReportingOverflow(limits.ahead)
            limit = max(limit, min(isOverflow ? .max : sum, reader.end))
        }
        return limit
    }

    /// Returns the reader's next byte that is not stored; nil if it needs no further byte.
    private func missing(_ reader: Reader) -> Int64? {
        if reader.hasBegun, reader.generation != generation { return nil }
        let gap = cached.firstGap(from: reader.position)
        return gap < min(reader.end, length ?? .max) ? gap : nil
    }

    /// Whether the reader has not taken all of its bytes.
    private func isReading(_ reader: Reader) -> Bool {
        !(reader.hasBegun && reader.generation != generation) && reader.position < min(reader.end, length ?? .max)
    }

    /// Assigns a transfer to each reader, starts and stops transfers, and releases those that were held.
    mutating func replan() -> [Action] {
        if isShutDown || isComplete && transfers.isEmpty { return [] }
        var actions: [Action] = []
        // Waiting readers first, in the order in which they began to wait.
        let order = readers.keys.sorted { one, other in
            let (first, second) = (readers[one]?.waitsSince ?? .max, readers[other]?.waitsSince ?? .max)
            return first == second ? one < other : first < second
        }
        for id in order { readers[id]?.source = nil }
        var unserved: [(reader: Int, place: Int64)] = []
        for id in order {
            guard let reader = readers[id] else { continue }
            guard let place = missing(reader) else {
                // Without ranges, the stored bytes are lost if the transfer stops before the reader has taken them.
                if mode != .ranged, isReading(reader) { readers[id]?.source = transfers.keys.min() }
                continue
            }
            if let near = transfer(for: place) { readers[id]?.source = near } else { unserved.append((id, place)) }
        }
        for (id, place) in unserved { actions += serve(id, at: place) }
        if awaitsFacts, transfers.isEmpty { actions.append(start(from: 0, to: nil)) }
        actions += stopUnneeded()
        for id in transfers.keys.sorted() {
            guard let transfer = transfers[id], transfer.isHeld, transfer.position < limit(of: id) else { continue }
            transfers[id]?.isHeld = false
            actions.append(.resume(id))
        }
        // The rest of this file can never be joined to the stored bytes.
        if mode == .unverified, transfers.isEmpty, !isComplete { actions += changed(keeping: nil) }
        return actions
    }

    /// Returns the transfer that will reach a position soon, or at all if ranges cannot be requested.
    private func transfer(for place: Int64) -> Int? {
        if mode != .ranged { return transfers.keys.min() }
        return nearest(place, within: limits.join)
    }

    private func nearest(_ place: Int64, within distance: Int64) -> Int? {
        transfers.filter { $0.value.covers(place) && place - $0.value.position <= distance }
            .max { ($0.value.position, $1.key) < ($1.value.position, $0.key) }?.key
    }

    /// Finds a transfer for a reader that no near transfer serves.
    private mutating func serve(_ id: Int, at place: Int64) -> [Action] {
        guard let reader = readers[id] else { return [] }
        // A transfer that started for another reader a moment ago.
        if let near = transfer(for: place) {
            readers[id]?.source = near
            return []
        }
        guard mode == .ranged else {
            let isNeeded = reader.waitsSince != nil || reader.isGreedy
            if !isNeeded { return [] }
            let action = start(from: 0, to: nil)
            readers[id]?.source = lastID
            return [action]
        }
        let isUrgent = reader.isGreedy || place - reader.position < limits.ahead
        var actions: [Action] = []
        if transfers.count >= limits.transfers, reader.waitsSince != nil, let victim = victim() {
            transfers[victim] = nil
            for (other, state) in readers where state.source == victim { readers[other]?.source = nil }
            actions.append(.stop(victim))
        }
        guard transfers.count < limits.transfers, isUrgent else {
            let far = nearest(place, within: .max)
            readers[id]?.source = far
            return actions
        }
        // The end of the gap: stored bytes, or those that another transfer delivers.
        let next = transfers.values.map(\.position).filter { $0 > place }.min()
        let own = reader.end < length ?? .max ? reader.end : nil
        let end = [cached.nextStart(after: place), next, own].compactMap { $0 }.min()
        for (other, transfer) in transfers where transfer.covers(place) { transfers[other]?.end = place }
        actions.append(start(from: place, to: end))
        readers[id]?.source = lastID
        return actions
    }

    private mutating func start(from place: Int64, to end: Int64?) -> Action {
        lastID += 1
        transfers[lastID] = Transfer(position: place, end: end ?? (mode == .ranged ? length : nil))
        return .start(lastID, from: place, to: end)
    }

    /// Returns a transfer to stop in favour of a waiting reader: one that has no waiting reader, or else one that has
    /// delivered its share while others wait.
    private func victim() -> Int? {
        func isAwaited(_ id: Int) -> Bool { readers.values.contains { $0.source == id && $0.waitsSince != nil } }
        let candidates = transfers.keys.sorted().filter { !isAwaited($0) }
        if let first = candidates.max(by: { delivered($0) < delivered($1) }) { return first }
        return transfers.keys.sorted().filter { delivered($0) >= limits.ahead }
            .max { delivered($0) < delivered($1) }
    }

    private func delivered(_ id: Int) -> Int64 { transfers[id]?.delivered ?? 0 }

    /// Stops the transfers that no reader needs, except one that a first reader will need.
    private mutating func stopUnneeded() -> [Action] {
        let needed = Set(readers.values.compactMap(\.source))
        var actions: [Action] = []
        for id in transfers.keys.sorted() where !needed.contains(id) {
            if awaitsFacts || readers.isEmpty && keepsOpening { continue }
            transfers[id] = nil
            actions.append(.stop(id))
        }
        return actions
    }
}
