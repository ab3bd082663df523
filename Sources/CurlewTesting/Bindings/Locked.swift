// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Bindings wraps the APIs that need pointers or C: locks, threads, sockets and OpenSSL. The rest of CurlewTesting calls
// it; only SHA256Stream is public.

import CurlewShims
import Glibc

/// A value that is accessible only while a pthread mutex is held.
// Safe because `value` is accessed only inside `withLock`, which holds the mutex.
final class Locked<Value: Sendable>: @unchecked Sendable {
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private var value: Value

    init(_ value: Value) {
        self.value = value
        mutex = .allocate(capacity: 1)
        pthread_mutex_init(mutex, nil)
    }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body(&value)
    }
}
