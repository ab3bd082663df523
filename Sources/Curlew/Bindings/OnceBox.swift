// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A value that is made when it is first asked for and then kept, safe to ask from any thread.
///
/// Lock-free: threads that ask at the same first moment may each make the value, and all get the one that was stored
/// first. So what makes it must be pure.
final class OnceBox<Value: Sendable>: Sendable {
    private final class Kept: Sendable {
        let value: Value

        init(_ value: Value) {
            self.value = value
        }
    }

    private let kept = AtomicLazyReference<Kept>()

    /// The value if it was made already.
    var current: Value? { kept.load()?.value }

    /// The value, made now if it was not.
    func value(or make: () -> Value) -> Value {
        if let current { return current }
        return kept.storeIfNil(Kept(make())).value
    }
}
