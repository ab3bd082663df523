// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

// The import is not internal, because code of this file is inlined into other modules.
package import Synchronization

/// The number of the changes of a collection, and whether it has entries; readable without the lock of the collection.
package final class Revision: Sendable {
    @usableFromInline let changeCount = Atomic<UInt64>(0)
    @usableFromInline let entryCount = Atomic<Int>(0)

    package init() {}

    /// The number of changes so far.
    @inlinable package var changes: UInt64 { changeCount.load(ordering: .acquiring) }

    /// Whether the collection has no entries.
    @inlinable package var isEmpty: Bool { entryCount.load(ordering: .acquiring) == 0 }

    /// Counts a change, and sets the number of entries; the caller holds the lock of the collection.
    package func advance(entries: Int) {
        entryCount.store(entries, ordering: .releasing)
        changeCount.add(1, ordering: .acquiringAndReleasing)
    }
}
