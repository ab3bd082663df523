// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A value that is made when it is first asked for and then kept, safe to ask from any thread.
///
/// Lock-free: threads that ask at the same first moment may each make the value, and all get the one that was stored
/// first. So what makes it must be pure. It lives inside of whoever owns it and allocates nothing until it is asked.
struct Once<Value: Sendable>: ~Copyable, Sendable {
    private final class Kept: Sendable {
        let value: Value

        init(_ value: Value) {
            self.value = value
        }
    }

    /// The address of the kept object, which is retained once for it; 0 before there is one.
    private let kept = Atomic<UInt>(0)

    init() {}

    deinit { Once.object(at: kept.load(ordering: .acquiring))?.release() }

    private static func object(at address: UInt) -> Unmanaged<Kept>? {
        UnsafeRawPointer(bitPattern: address).map { Unmanaged<Kept>.fromOpaque($0) }
    }

    /// The value if it was made already.
    var current: Value? { Once.object(at: kept.load(ordering: .acquiring))?.takeUnretainedValue().value }

    /// The value, made now if it was not.
    func value(or make: () -> Value) -> Value {
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

/// A `Once` to be shared.
final class OnceBox<Value: Sendable>: Sendable {
    private let once = Once<Value>()

    /// The value if it was made already.
    var current: Value? { once.current }

    /// The value, made now if it was not.
    func value(or make: () -> Value) -> Value { once.value(or: make) }
}
