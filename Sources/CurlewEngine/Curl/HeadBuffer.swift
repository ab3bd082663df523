// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// A buffer for the lines of a head, whose memory its owner reuses for the next head and frees.
///
/// The state is behind a pointer, so that accesses need no exclusivity checks at run time.
struct HeadBuffer {
    private struct State {
        var memory: UnsafeMutableRawPointer?
        var capacity = 0
        var count = 0
    }

    private let state: UnsafeMutablePointer<State>

    init() {
        state = .allocate(capacity: 1)
        state.initialize(to: State())
    }

    var isEmpty: Bool { state.pointee.count == 0 }

    /// Appends a line; returns false if no memory is left.
    @inline(__always)
    func append(_ line: UnsafeRawBufferPointer) -> Bool {
        guard let bytes = line.baseAddress else { return true }
        let count = state.pointee.count + line.count
        if count > state.pointee.capacity {
            let wanted = max(512, count, 2 * state.pointee.capacity)
            guard let grown = realloc(state.pointee.memory, wanted) else { return false }
            state.pointee.memory = grown
            state.pointee.capacity = wanted
        }
        if let memory = state.pointee.memory { memcpy(memory + state.pointee.count, bytes, line.count) }
        state.pointee.count = count
        return true
    }

    var bytes: [UInt8] {
        [UInt8](UnsafeRawBufferPointer(start: state.pointee.memory, count: state.pointee.count))
    }

    /// Removes the lines, and frees the memory of a large head.
    func clear() {
        state.pointee.count = 0
        guard state.pointee.capacity > 16 << 10 else { return }
        Glibc.free(state.pointee.memory)
        state.pointee.memory = nil
        state.pointee.capacity = 0
    }

    func free() {
        Glibc.free(state.pointee.memory)
        state.deallocate()
    }
}
