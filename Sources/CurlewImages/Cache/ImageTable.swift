// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Values with costs, of which the least recently used ones are removed when all costs exceed a capacity.
///
/// The rule is that of AFNetworking: a purge starts above the capacity, and removes values until the rest costs at most
/// the preferred cost. The value that was just added is never removed; a value that costs more than the capacity is
/// not added.
struct ImageTable<Key: Hashable, Value> {
    private struct Entry {
        let value: Value
        let cost: Int64
        var lastUse: UInt64
    }

    /// The costs between which a purge happens.
    struct Limits: Equatable {
        /// The cost above which values are removed.
        var capacity: Int64
        /// The cost that remains at most after a purge.
        var preferred: Int64
    }

    private(set) var limits: Limits
    private var entries: [Key: Entry] = [:]
    private var uses: UInt64 = 0
    /// The cost of all values.
    private(set) var cost: Int64 = 0

    init(_ limits: Limits) { self.limits = limits }

    /// The number of values.
    var count: Int { entries.count }

    /// Returns a value, which becomes the most recently used one.
    mutating func value(for key: Key) -> Value? {
        guard let value = entries[key]?.value else { return nil }
        uses += 1
        entries[key]?.lastUse = uses
        return value
    }

    /// Adds or replaces a value.
    ///
    /// - Returns: Whether the value was added, and the removed values.
    mutating func add(_ value: Value, cost: Int64, for key: Key) -> (isAdded: Bool, removed: [Value]) {
        var removed: [Value] = []
        if let old = remove(key) { removed.append(old) }
        guard cost <= limits.capacity else { return (false, removed) }
        uses += 1
        entries[key] = Entry(value: value, cost: cost, lastUse: uses)
        self.cost += cost
        return (true, removed + purge())
    }

    /// Removes a value.
    mutating func remove(_ key: Key) -> Value? {
        guard let entry = entries.removeValue(forKey: key) else { return nil }
        cost -= entry.cost
        return entry.value
    }

    /// Removes all values.
    mutating func removeAll() -> [Value] {
        defer { (entries, cost) = ([:], 0) }
        return entries.values.map(\.value)
    }

    /// Changes the limits, and removes the values above them.
    mutating func adapt(to limits: Limits) -> [Value] {
        self.limits = limits
        return limits.capacity == 0 ? removeAll() : purge()
    }

    private mutating func purge() -> [Value] {
        guard cost > limits.capacity else { return [] }
        var removed: [Value] = []
        for (key, entry) in entries.sorted(by: { $0.value.lastUse < $1.value.lastUse }) {
            if cost <= limits.preferred || entry.lastUse == uses { break }
            if let value = remove(key) { removed.append(value) }
        }
        return removed
    }
}
