// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import CurlewSupport

/// A mutex and the value it guards, stored in memory that another object owns: a `Lock` without an allocation of its
/// own.
struct LockedMemory<Value> {
    fileprivate var mutex = pthread_mutex_t()
    fileprivate var value: Value

    /// Initializes memory, which `deinitialize` clears.
    static func initialize(_ memory: UnsafeMutablePointer<LockedMemory>, to value: consuming Value) {
        memory.initialize(to: LockedMemory(value: value))
        pthread_mutex_init(&memory.pointee.mutex, nil)
    }

    private init(value: consuming Value) { self.value = value }

    /// - Parameter release: Releases what the value does not release by itself.
    static func deinitialize(_ memory: UnsafeMutablePointer<LockedMemory>, release: (inout Value) -> Void = { _ in }) {
        pthread_mutex_destroy(&memory.pointee.mutex)
        release(&memory.pointee.value)
        memory.deinitialize(count: 1)
    }
}

/// A pointer to a locked value.
struct LockedPointer<Value> {
    let memory: UnsafeMutablePointer<LockedMemory<Value>>

    init(memory: UnsafeMutablePointer<LockedMemory<Value>>) { self.memory = memory }

    /// Allocates memory for a value, which `deallocate` frees.
    init(allocating value: consuming Value) {
        memory = .allocate(capacity: 1)
        LockedMemory.initialize(memory, to: value)
    }

    func deallocate() {
        LockedMemory.deinitialize(memory)
        memory.deallocate()
    }

    @inline(__always)
    func withLock<Result, Failure: Error>(_ body: (inout Value) throws(Failure) -> Result) throws(Failure) -> Result {
        pthread_mutex_lock(&memory.pointee.mutex)
        defer { pthread_mutex_unlock(&memory.pointee.mutex) }
        return try body(&memory.pointee.value)
    }
}
