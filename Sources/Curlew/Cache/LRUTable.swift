// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The entries of a store in memory by key and id, and the order of their use.
///
/// The order is a doubly linked list in an array, so that each operation on one entry takes constant time.
struct LRUTable {
    private struct Node {
        var entry: HTTPCache.Entry
        /// The size with which the entry counts.
        var bytes: Int64
        /// The neighbours in the order of use; -1 at either end.
        var older = -1
        var newer = -1
    }

    private var nodes: [Node?] = []
    private var free: [Int] = []
    private var positions: [HTTPCache.Entry.ID: Int] = [:]
    private var keys: [String: [HTTPCache.Entry.ID]] = [:]
    /// The entries with the field `Use-As-Dictionary`.
    private var dictionaries: Set<HTTPCache.Entry.ID> = []
    private var oldest = -1
    private var newest = -1
    /// The size of all entries with their bodies.
    private(set) var bytes: Int64 = 0

    var count: Int { positions.count }

    func entries(_ selection: HTTPCache.Selection) -> [HTTPCache.Entry] {
        switch selection {
        case .key(let key): keys[key]?.compactMap { entry($0) } ?? []
        case .dictionaries: dictionaries.compactMap { entry($0) }.filter { selection.contains($0) }
        case .all, .origin, .group, .tag: nodes.compactMap { $0?.entry }.filter { selection.contains($0) }
        }
    }

    private func entry(_ id: HTTPCache.Entry.ID) -> HTTPCache.Entry? { positions[id].flatMap { nodes[$0]?.entry } }

    /// Adds an entry as the most recently used one.
    mutating func add(_ entry: HTTPCache.Entry) {
        remove(entry.id)
        let node = Node(entry: entry, bytes: entry.size + entry.overhead)
        let position: Int
        if let last = free.popLast() {
            position = last
            nodes[position] = node
        } else {
            position = nodes.count
            nodes.append(node)
        }
        positions[entry.id] = position
        keys[entry.key, default: []].append(entry.id)
        if entry.isDictionary { dictionaries.insert(entry.id) }
        bytes += node.bytes
        link(position)
    }

    /// Replaces an entry by one with the same id and key.
    mutating func update(_ entry: HTTPCache.Entry) {
        guard let position = positions[entry.id], let old = nodes[position] else { return }
        let size = entry.size + entry.overhead
        nodes[position]?.entry = entry
        nodes[position]?.bytes = size
        bytes += size - old.bytes
        if entry.isDictionary { dictionaries.insert(entry.id) } else { dictionaries.remove(entry.id) }
    }

    /// Makes an entry the most recently used one.
    mutating func use(_ id: HTTPCache.Entry.ID) {
        guard let position = positions[id], position != newest else { return }
        unlink(position)
        link(position)
    }

    /// Removes an entry; returns whether it was there.
    @discardableResult
    mutating func remove(_ id: HTTPCache.Entry.ID) -> Bool {
        guard let position = positions.removeValue(forKey: id), let node = nodes[position] else { return false }
        unlink(position)
        nodes[position] = nil
        free.append(position)
        keys[node.entry.key]?.removeAll { $0 == id }
        if keys[node.entry.key]?.isEmpty == true { keys[node.entry.key] = nil }
        dictionaries.remove(id)
        bytes -= node.bytes
        return true
    }

    /// Removes the least recently used entries until the rest is at most `limit` bytes; returns their ids.
    mutating func evict(above limit: Int64) -> [HTTPCache.Entry.ID] {
        var removed: [HTTPCache.Entry.ID] = []
        while bytes > limit, oldest >= 0, let id = nodes[oldest]?.entry.id {
            remove(id)
            removed.append(id)
        }
        return removed
    }

    /// Puts a node at the end of the order.
    private mutating func link(_ position: Int) {
        nodes[position]?.older = newest
        nodes[position]?.newer = -1
        if newest >= 0 { nodes[newest]?.newer = position } else { oldest = position }
        newest = position
    }

    private mutating func unlink(_ position: Int) {
        guard let node = nodes[position] else { return }
        if node.older >= 0 { nodes[node.older]?.newer = node.newer } else { oldest = node.newer }
        if node.newer >= 0 { nodes[node.newer]?.older = node.older } else { newest = node.older }
    }
}
