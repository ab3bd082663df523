// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew

/// The entries of keys that were read recently, as a copy of the index in memory.
struct KnownEntries {
    private static let maximum = 512

    private var entries: [String: [HTTPCache.Entry]] = [:]
    /// The number of changes of the index at which the entries were read.
    private var changes: UInt64 = 0

    /// Returns the entries of a key; nil if they are unknown or the index has changed.
    func entries(_ key: String, at changes: UInt64) -> [HTTPCache.Entry]? {
        changes == self.changes ? entries[key] : nil
    }

    /// Keeps the entries of a key.
    ///
    /// - Parameter changes: The number of changes before the entries were read.
    mutating func keep(_ found: [HTTPCache.Entry], for key: String, at changes: UInt64) {
        if changes != self.changes || entries.count >= Self.maximum { entries = [:] }
        self.changes = changes
        entries[key] = found
    }
}
