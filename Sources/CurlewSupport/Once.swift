// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

// The import is public, because code of this file is inlined into other modules.
public import Synchronization

/// A value that is made at its first use and then kept; any thread may use it.
///
/// It takes no lock: threads that use it for the first time at once may each make the value, and all of them get the
/// value that was stored first. So the closure that makes the value must be pure. It allocates nothing before its first
/// use.
@usableFromInline
package struct Once<Value: Sendable>: ~Copyable, Sendable {
    @usableFromInline
    final class Kept: Sendable {
        @usableFromInline let value: Value

        @inlinable
        init(_ value: Value) { self.value = value }
    }

    /// The address of the kept object, which is retained once for it; 0 before the first use.
    @usableFromInline let kept = Atomic<UInt>(0)

    @inlinable package init() {}

    @inlinable
    deinit {
        // `AnyObject`, because code that is not specialised would have to look up the type `Kept<Value>`.
        if let object = UnsafeRawPointer(bitPattern: kept.load(ordering: .acquiring)) {
            Unmanaged<AnyObject>.fromOpaque(object).release()
        }
    }

    @inlinable
    static func object(at address: UInt) -> Unmanaged<Kept>? {
        UnsafeRawPointer(bitPattern: address).map { Unmanaged<Kept>.fromOpaque($0) }
    }

    /// The value, or nil before it was made.
    @inlinable package var current: Value? {
        Once.object(at: kept.load(ordering: .acquiring))?.takeUnretainedValue().value
    }

    /// Returns the value, and makes it first if necessary.
    @inlinable
    package func value(or make: () -> Value) -> Value {
        if let current { return current }
        let made = Unmanaged.passRetained(Kept(make()))
        let (isStored, first) = kept.compareExchange(
            expected: 0, desired: UInt(bitPattern: made.toOpaque()), ordering: .acquiringAndReleasing)
        if !isStored, let first = Once.object(at: first) {
            made.release()
            return first.takeUnretainedValue().value
        }
        return made.takeUnretainedValue().value
    }
}

/// A `Once` that several owners share.
@usableFromInline
package final class OnceBox<Value: Sendable>: Sendable {
    @usableFromInline let once = Once<Value>()

    @inlinable package init() {}

    /// The value, or nil before it was made.
    @inlinable package var current: Value? { once.current }

    /// Returns the value, and makes it first if necessary.
    @inlinable
    package func value(or make: () -> Value) -> Value { once.value(or: make) }
}
