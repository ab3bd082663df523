// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The way to code each type, determined once per type.
///
/// A handle to memory that `free` ends. Belongs to one coder at a time.
struct WayTable<Direct> {
    enum Way {
        /// By the type's own conformance to `Codable`.
        case own
        case direct(Direct)
    }

    private struct Slot {
        var key: UInt = 0
        var way = Way.own
    }

    private struct Storage {
        /// A power of two; at most half of the slots are used, so that every search ends.
        var slots: UnsafeMutablePointer<Slot>
        var mask = 63
        var count = 0

        init(size: Int) {
            slots = .allocate(capacity: size)
            slots.initialize(repeating: Slot(), count: size)
            mask = size - 1
        }

        /// The slot of a type, or the free slot for it.
        ///
        /// The shifts drop low bits, which alignment makes equal in all metatypes.
        @inline(__always)
        func slot(_ key: UInt) -> Int {
            var slot = Int(truncatingIfNeeded: (key >> 4) ^ (key >> 10)) & mask
            while slots[slot].key != key, slots[slot].key != 0 { slot = (slot + 1) & mask }
            return slot
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

    /// - Parameter find: Returns the direct way of a type, or nil.
    @inline(__always)
    func way(of type: Any.Type, _ find: () -> Direct?) -> Way {
        let key = UInt(bitPattern: ObjectIdentifier(type))
        let slot = storage.pointee.slot(key)
        return storage.pointee.slots[slot].key == key ? storage.pointee.slots[slot].way : add(key, find())
    }

    @inline(never)
    private func add(_ key: UInt, _ direct: Direct?) -> Way {
        if storage.pointee.count * 2 > storage.pointee.mask {
            let old = storage.pointee
            storage.pointee = Storage(size: (old.mask + 1) * 2)
            storage.pointee.count = old.count
            for place in 0...old.mask where old.slots[place].key != 0 {
                storage.pointee.slots[storage.pointee.slot(old.slots[place].key)] = old.slots[place]
            }
            old.slots.deallocate()
        }
        let way = direct.map { Way.direct($0) } ?? .own
        storage.pointee.slots[storage.pointee.slot(key)] = Slot(key: key, way: way)
        storage.pointee.count += 1
        return way
    }
}
