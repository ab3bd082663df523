// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
// This folder holds all unsafe code of the JSON coder. The reasons why it is sound:
//
// - *Text.* `JSONIndex.text` points to `count` bytes that stay alive: the caller's buffer during one call, or a copy
//   that the index owns (`adopt`). The index pass reads a byte only after it compared its offset with `count`.
// - *Entries.* Each entry is written once, after the pass has seen all bytes it spans, so offset + length ≤ `count` for
//   every entry. Readers read only the bytes that an entry spans.
// - *Order.* Indices come from the root and from `behind(_:)`, which both return written entries.

internal import Glibc

/// A checked text of JSON (RFC 8259) and the flat index of its values.
///
/// The index is a handle to allocated memory, which `free` releases, because Swift would check each access to a class
/// or an array. It is not thread-safe and belongs to one decode at a time.
struct JSONIndex {
    private struct Storage {
        var text: UnsafePointer<UInt8>
        var byteCount = 0
        /// The memory of the entries; initialised up to `count`.
        var entries: UnsafeMutablePointer<UInt64>
        var count = 0
        var capacity = JSONIndex.smallest
        /// The copy of the text, if the index owns one.
        var owned: UnsafeMutablePointer<UInt8>?
    }

    private let storage: UnsafeMutablePointer<Storage>

    private static let smallest = 128
    /// The greatest capacity of an idle index, in entries: 256 KiB.
    private static let kept = 1 << 15

    init() {
        let entries = JSONIndex.allocate(JSONIndex.smallest)
        storage = .allocate(capacity: 1)
        storage.initialize(to: Storage(text: JSONIndex.nothing(entries), entries: entries))
    }

    func free() {
        Glibc.free(storage.pointee.entries)
        storage.pointee.owned?.deallocate()
        storage.deallocate()
    }

    var text: UnsafePointer<UInt8> {
        @inline(__always) get { storage.pointee.text }
    }

    var byteCount: Int {
        @inline(__always) get { storage.pointee.byteCount }
    }

    var count: Int {
        @inline(__always) get { storage.pointee.count }
    }

    private static func allocate(_ count: Int, _ old: UnsafeMutableRawPointer? = nil) -> UnsafeMutablePointer<UInt64> {
        guard let memory = realloc(old, count * MemoryLayout<UInt64>.stride) else {
            preconditionFailure("out of memory")
        }
        return memory.bindMemory(to: UInt64.self, capacity: count)
    }

    /// Returns the address of an empty text; never read.
    private static func nothing(_ entries: UnsafeMutablePointer<UInt64>) -> UnsafePointer<UInt8> {
        UnsafeRawPointer(entries).assumingMemoryBound(to: UInt8.self)
    }

    /// Clears the text and shrinks the memory to the idle capacity.
    func clear() {
        storage.pointee.owned?.deallocate()
        storage.pointee.owned = nil
        storage.pointee.byteCount = 0
        storage.pointee.count = 0
        if storage.pointee.capacity > JSONIndex.kept {
            Glibc.free(storage.pointee.entries)
            storage.pointee.capacity = JSONIndex.smallest
            storage.pointee.entries = JSONIndex.allocate(JSONIndex.smallest)
        }
        storage.pointee.text = JSONIndex.nothing(storage.pointee.entries)
    }

    /// Copies the text, so that readers may outlive the caller's buffer.
    func adopt() {
        guard storage.pointee.owned == nil else { return }
        let copy = UnsafeMutablePointer<UInt8>.allocate(capacity: max(byteCount, 1))
        copy.initialize(from: text, count: byteCount)
        storage.pointee.owned = copy
        storage.pointee.text = UnsafePointer(copy)
    }

    /// Checks a whole text and writes its index, or throws the first flaw.
    ///
    /// - Parameter bytes: UTF-8 without a byte order mark; they must stay valid until `clear` or `adopt`.
    func read(_ bytes: UnsafeBufferPointer<UInt8>) throws(JSONFlaw) {
        clear()
        guard let base = bytes.baseAddress, !bytes.isEmpty else { throw JSONFlaw(.empty, at: 0) }
        guard bytes.count <= JSONLimits.bytes else { throw JSONFlaw(.size, at: JSONLimits.bytes) }
        storage.pointee.text = base
        storage.pointee.byteCount = bytes.count
        // Most texts have fewer values; larger ones grow the memory.
        grow(to: bytes.count / 8 + 16)
        try JSONIndexPass.run(JSONText(bytes: base, end: bytes.count), self)
    }

    /// Allocates memory for entries.
    struct Allocation {
        let entries: UnsafeMutablePointer<UInt64>
        let capacity: Int
    }

    var allocation: Allocation { Allocation(entries: storage.pointee.entries, capacity: storage.pointee.capacity) }

    /// Grows the memory and keeps the entries.
    @inline(never)
    func grown() -> Allocation {
        grow(to: storage.pointee.capacity * 2)
        return allocation
    }

    /// Takes ownership of the entries that the pass has written.
    func finish(_ count: Int) { storage.pointee.count = count }

    @inline(never)
    private func grow(to wanted: Int) {
        guard wanted > storage.pointee.capacity else { return }
        storage.pointee.entries = JSONIndex.allocate(wanted, storage.pointee.entries)
        storage.pointee.capacity = wanted
    }

    /// The entry at an index below `count`.
    subscript(index: Int) -> JSONEntry {
        @inline(__always) get {
            assert(index >= 0 && index < count)
            return JSONEntry(bits: storage.pointee.entries[index])
        }
        @inline(__always) nonmutating set {
            assert(index >= 0 && index < count)
            storage.pointee.entries[index] = newValue.bits
        }
    }

    /// Returns the index of the entry after a value and its contents.
    @inline(__always)
    func behind(_ index: Int) -> Int {
        let entry = self[index]
        return entry.isContainer ? entry.next : index + 1
    }
}
