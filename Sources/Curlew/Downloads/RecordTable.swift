// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The records of a store in the order in which they were added, with constant-time lookup by id.
struct RecordTable {
    /// The number of empty slots below which the table is never compacted.
    private static let slack = 64

    /// The records; nil marks the slot of a removed record.
    private var slots: [TransferStore.Download?]
    private var places: [TransferStore.Download.ID: Int] = [:]
    /// The slots of the records that are over, in ascending order.
    private var over: [Int] = []
    /// How many records were visited so far; tests use it.
    private(set) var visits = 0

    init(_ records: [TransferStore.Download]) {
        slots = records
        index()
    }

    private mutating func index() {
        (places, over) = ([:], [])
        for (place, record) in slots.enumerated() {
            guard let record else { continue }
            places[record.id] = place
            if record.isOver { over.append(place) }
        }
    }

    var count: Int { places.count }

    /// Returns all records, the oldest first.
    mutating func all() -> [TransferStore.Download] {
        visits += slots.count
        return slots.compactMap(\.self)
    }

    /// The number of slots, including empty ones.
    var slotCount: Int { slots.count }

    /// Returns the records in up to `most` slots.
    func slots(from start: Int, atMost most: Int) -> [TransferStore.Download] {
        slots[start..<min(start + most, slots.count)].compactMap(\.self)
    }

    mutating func find(_ id: TransferStore.Download.ID) -> TransferStore.Download? {
        visits += 1
        return places[id].flatMap { slots[$0] }
    }

    /// Adds a new record, or replaces the record of the same id.
    mutating func put(_ record: TransferStore.Download) {
        visits += 1
        guard let place = places[record.id] else {
            places[record.id] = slots.count
            if record.isOver { over.append(slots.count) }
            return slots.append(record)
        }
        let wasOver = slots[place]?.isOver ?? false
        slots[place] = record
        if record.isOver == wasOver { return }
        if wasOver { removeFromOver(place) } else { over.insert(place, at: overIndex(of: place)) }
    }

    mutating func remove(_ id: TransferStore.Download.ID) {
        visits += 1
        guard let place = places.removeValue(forKey: id) else { return }
        if slots[place]?.isOver == true { removeFromOver(place) }
        slots[place] = nil
        guard slots.count > 2 * places.count + Self.slack else { return }
        visits += slots.count
        slots.removeAll { $0 == nil }
        index()
    }

    /// Returns the oldest record that is over, leaving out those with the given ids.
    mutating func firstOver(except ids: Set<TransferStore.Download.ID>) -> TransferStore.Download? {
        for place in over {
            visits += 1
            if let record = slots[place], !ids.contains(record.id) { return record }
        }
        return nil
    }

    private mutating func removeFromOver(_ place: Int) { over.remove(at: overIndex(of: place)) }

    /// Returns the index of a slot in `over`, or the index at which to insert it (binary search).
    private func overIndex(of place: Int) -> Int {
        var range = over.startIndex..<over.endIndex
        while !range.isEmpty {
            let middle = range.lowerBound + range.count / 2
            range = over[middle] < place ? (middle + 1)..<range.upperBound : range.lowerBound..<middle
        }
        return range.lowerBound
    }
}
