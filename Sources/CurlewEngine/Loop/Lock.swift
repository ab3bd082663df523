// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import Glibc

/// A value that only one thread at a time can touch: a pthread mutex and the value in one allocation.
///
/// `Synchronization.Mutex` would do the same, but ThreadSanitizer cannot see into it and reports false races, and a
/// report must always mean something here. Never call out or resume a continuation inside `withLock`.
package struct Lock<Value>: @unchecked Sendable {
    // Safe because the value is reached through `withLock` alone, which holds the mutex.
    private let storage: LockStorage<Value>

    package init(_ value: Value) {
        let buffer = LockStorage<Value>.create(minimumCapacity: 1) { buffer in
            buffer.withUnsafeMutablePointerToElements { mutex in
                mutex.initialize(to: pthread_mutex_t())
                pthread_mutex_init(mutex, nil)
            }
            return value
        }
        storage = unsafeDowncast(buffer, to: LockStorage<Value>.self)
    }

    @inline(__always)
    package func withLock<Result, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        storage.withUnsafeMutablePointerToElements { _ = pthread_mutex_lock($0) }
        defer { storage.withUnsafeMutablePointerToElements { _ = pthread_mutex_unlock($0) } }
        return try body(&storage.header)
    }
}

private final class LockStorage<Value>: ManagedBuffer<Value, pthread_mutex_t> {
    deinit {
        withUnsafeMutablePointerToElements { mutex in
            pthread_mutex_destroy(mutex)
            mutex.deinitialize(count: 1)
        }
    }
}
