// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

// The import is public, because code of this file is inlined into other modules.
public import Glibc

/// A value that only one thread at a time can touch: a pthread mutex and the value in one allocation.
///
/// `Synchronization.Mutex` would do the same, but ThreadSanitizer cannot see into it and reports false races. The lock
/// is inlined into its users, in other modules too, because a generic call would cost more than the guarded code. Code
/// inside `withLock` must not call user code or resume a continuation. The value must not be empty: ThreadSanitizer
/// takes the access to an empty value for one to the lock itself.
@usableFromInline
package struct Lock<Value>: @unchecked Sendable {
    // Safe because the value is reached through `withLock` alone, which holds the mutex.
    @usableFromInline let storage: LockStorage<Value>

    @inlinable
    package init(_ value: @autoclosure () -> Value) {
        assert(MemoryLayout<Value>.size > 0, "a lock needs a value")
        let buffer = LockStorage<Value>.create(minimumCapacity: 1) { buffer in
            buffer.withUnsafeMutablePointerToElements { mutex in
                mutex.initialize(to: pthread_mutex_t())
                pthread_mutex_init(mutex, nil)
            }
            return value()
        }
        storage = unsafeDowncast(buffer, to: LockStorage<Value>.self)
    }

    @inlinable
    @inline(__always)
    package func withLock<Result, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        // Pointers avoid exclusivity checks at run time; the mutex already excludes overlapping accesses.
        try storage.withUnsafeMutablePointers { value, mutex throws(Failure) -> Result in
            pthread_mutex_lock(mutex)
            defer { pthread_mutex_unlock(mutex) }
            return try body(&value.pointee)
        }
    }
}

@usableFromInline
final class LockStorage<Value>: ManagedBuffer<Value, pthread_mutex_t> {
    @inlinable
    deinit {
        withUnsafeMutablePointerToElements { mutex in
            pthread_mutex_destroy(mutex)
            mutex.deinitialize(count: 1)
        }
    }
}
