// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The stored files of a cache with their sizes, and which of them are in use.
struct MediaTable: Sendable {
    struct Item: Sendable, Hashable {
        var bytes: Int64
        var usedAt: Int64
        var length: Int64?
        var contentType: String?
    }

    /// The space that counts for a record and the inodes, in bytes.
    static let overhead: Int64 = 8192

    private(set) var items: [MediaKey: Item] = [:]
    private(set) var uses: [MediaKey: Int] = [:]
    /// The time of the last use, in microseconds since 1970.
    private var lastUse: Int64 = 0

    /// The size of all stored bytes and their records.
    private(set) var bytes: Int64 = 0

    /// Returns a time that is later than all others.
    mutating func nextUse(now: Int64) -> Int64 {
        lastUse = max(now, lastUse + 1)
        return lastUse
    }

    mutating func set(_ item: Item, for key: MediaKey) {
        remove(key)
        items[key] = item
        bytes += item.bytes + Self.overhead
        lastUse = max(lastUse, item.usedAt)
    }

    mutating func touch(_ key: MediaKey, at time: Int64) { items[key]?.usedAt = time }

    /// Changes the size of a file that is in use, even if it has no record yet.
    mutating func grow(_ key: MediaKey, to bytes: Int64, length: Int64? = nil, contentType: String? = nil) {
        guard isInUse(key) else { return }
        let usedAt = items[key]?.usedAt ?? lastUse
        set(Item(bytes: bytes, usedAt: usedAt, length: length, contentType: contentType), for: key)
    }

    mutating func remove(_ key: MediaKey) {
        if let old = items.removeValue(forKey: key) { bytes -= old.bytes + Self.overhead }
    }

    mutating func acquire(_ key: MediaKey) { uses[key, default: 0] += 1 }

    /// Ends a use; returns whether it was the last one.
    mutating func release(_ key: MediaKey) -> Bool {
        guard let count = uses[key] else { return false }
        uses[key] = count > 1 ? count - 1 : nil
        return count <= 1
    }

    func isInUse(_ key: MediaKey) -> Bool { uses[key] != nil }

    /// Removes the least recently used files that are not in use until the rest has at most `limit` bytes.
    ///
    /// - Parameters:
    ///   - limit: The size in bytes.
    ///   - isBusy: Returns whether a file is still being saved.
    /// - Returns: The keys of the removed files.
    mutating func evict(above limit: Int64, isBusy: (MediaKey) -> Bool = { _ in false }) -> [MediaKey] {
        guard bytes > limit else { return [] }
        var removed: [MediaKey] = []
        let idle = items.filter { !isInUse($0.key) && !isBusy($0.key) }
            .sorted { ($0.value.usedAt, $0.key.text) < ($1.value.usedAt, $1.key.text) }
        for (key, _) in idle {
            if bytes <= limit { break }
            remove(key)
            removed.append(key)
        }
        return removed
    }
}
