// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

// The import is public, because code of this file is inlined into other modules.
public import Synchronization

/// An integer that threads read without a lock.
package final class AtomicCounter: Sendable {
    @usableFromInline let value = Atomic<UInt64>(0)

    package init() {}

    @inlinable package var current: UInt64 {
        get { value.load(ordering: .acquiring) }
        set { value.store(newValue, ordering: .releasing) }
    }

    package func increment() { value.add(1, ordering: .acquiringAndReleasing) }
}
