// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A hash table from types to trivial values, with open addressing.
///
/// The table is a handle to memory that `free` releases. It belongs to one coder at a time.
struct TypeTable<Value: BitwiseCopyable> {
    private struct Slot {
        /// The address of the type's metadata; 0 in a free slot.
        var key: UInt = 0
        var value: Value?
    }

    private struct Storage {
        /// The number of slots, a power of two; at most half of them are used, so that every search ends.
        let slots: UnsafeMutablePointer<Slot>
        let mask: Int
        var count = 0

        init(size: Int) {
            slots = .allocate(capacity: size)
            slots.initialize(repeating: Slot(), count: size)
            mask = size - 1
        }

        /// Returns the slot of a type, or the free slot for it.
        ///
        /// The shifts drop low bits, which alignment makes equal in all metatypes.
        @inline(__always)
        func slot(_ key: UInt) -> UnsafeMutablePointer<Slot> {
            var slot = Int(truncatingIfNeeded: (key >> 4) ^ (key >> 10)) & mask
            while slots[slot].key != key, slots[slot].key != 0 { slot = (slot + 1) & mask }
            return slots + slot
        }
    }

    private let storage: UnsafeMutablePointer<Storage>

    init() {
        storage = .allocate(capacity: 1)
        storage.initialize(to: Storage(size: 64))
    }

    func free() {
        storage.pointee.slots.deallocate()
        storage.deallocate()
    }

    /// The value of a type; nil if the table has no value for it.
    subscript(type: Any.Type) -> Value? {
        @inline(__always) get { storage.pointee.slot(UInt(bitPattern: ObjectIdentifier(type))).pointee.value }
    }

    /// Sets the value of a type.
    @inline(never)
    func set(_ type: Any.Type, _ value: Value) {
        if storage.pointee.count * 2 > storage.pointee.mask { grow() }
        let key = UInt(bitPattern: ObjectIdentifier(type))
        let slot = storage.pointee.slot(key)
        if slot.pointee.key == 0 { storage.pointee.count += 1 }
        slot.pointee = Slot(key: key, value: value)
    }

    func removeAll() {
        storage.pointee.slots.update(repeating: Slot(), count: storage.pointee.mask + 1)
        storage.pointee.count = 0
    }

    private func grow() {
        let old = storage.pointee
        storage.pointee = Storage(size: (old.mask + 1) * 2)
        storage.pointee.count = old.count
        for place in 0...old.mask where old.slots[place].key != 0 {
            storage.pointee.slot(old.slots[place].key).pointee = old.slots[place]
        }
        old.slots.deallocate()
    }
}

/// The way in which a coder codes values of one type.
enum CodingWay<Direct: BitwiseCopyable>: BitwiseCopyable {
    /// The coder uses the type's own conformance to `Codable`.
    case own
    case direct(Direct)
}
