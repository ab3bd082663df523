// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The sockets of an origin by key, sorted by it.
///
/// For the connections of one origin, a binary search is faster than a dictionary. A dictionary would also cost the
/// first request of a program a tenth of a millisecond, because the runtime searches all its tables for the conformance
/// of the key.
struct DescriptorMap {
    private var entries: [(key: Int, descriptor: CInt)] = []

    var count: Int { entries.count }
    var isEmpty: Bool { entries.isEmpty }
    var descriptors: [CInt] { entries.map(\.descriptor) }

    subscript(key: Int) -> CInt? {
        get {
            let index = index(of: key)
            return index < entries.count && entries[index].key == key ? entries[index].descriptor : nil
        }
        set {
            let index = index(of: key)
            let isKnown = index < entries.count && entries[index].key == key
            switch newValue {
            case let descriptor? where isKnown: entries[index].descriptor = descriptor
            case let descriptor?: entries.insert((key, descriptor), at: index)
            case nil: if isKnown { entries.remove(at: index) }
            }
        }
    }

    /// Returns the index of a key, or the index at which to insert it.
    private func index(of key: Int) -> Int {
        var (low, high) = (0, entries.count)
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].key < key { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
