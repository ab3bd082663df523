// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The box inside of a `KeyedDecodingContainer` or a `KeyedEncodingContainer`: some object of Swift's own.
private final class ContainerBox {}

/// What keeps a container of a type that its user knows.
class AnyContainerHolder {}

/// A container in memory of its own.
final class ContainerHolder<Container>: AnyContainerHolder {
    fileprivate let memory: UnsafeMutablePointer<Container>

    fileprivate init(_ container: Container) {
        memory = .allocate(capacity: 1)
        memory.initialize(to: container)
    }

    deinit {
        memory.deinitialize(count: 1)
        memory.deallocate()
    }
}

/// A copy of what a holder keeps.
///
/// Its type comes with the holder; the caller would have to look it up.
@inline(never)
func copy<Container>(_ holder: ContainerHolder<Container>) -> Container { holder.memory.pointee }

/// What a kept container reads or writes through.
protocol ContainerFrame: AnyObject {
    /// Keeps from now on what the frame works on, since a caller still holds a container of it.
    func own()

    /// Forgets what belongs to the last object.
    func rest()
}

/// Containers that are pointed to the next object rather than made anew, which costs more than all that is decoded
/// through many of them.
///
/// `KeyedDecodingContainer` is a struct around one object, in which ours is. While nothing but this table holds that object,
/// no caller has a copy of the container, so it may be pointed elsewhere. Swift does not promise that layout, so
/// ``ContainerLayout`` looks by reflection whether it is so, once; if not, every container is made anew.
struct KeptContainers<Frame: ContainerFrame> {
    struct Entry {
        let holder: AnyContainerHolder
        /// The memory in which the holder keeps the container.
        fileprivate let box: UnsafeMutablePointer<ContainerBox>
        let frame: Frame
        /// The next entry for the same type of keys: a recursive type needs one for each level.
        fileprivate var next: Int32
    }

    private struct Head {
        var key: UInt = 0
        /// The first entry of a type, plus 1.
        var first: Int32 = 0
    }

    private struct Storage {
        /// Room for `limit` entries.
        let entries: UnsafeMutablePointer<Entry>
        var count = 0
        /// By open addressing; half of them stay free, so that every search ends.
        let heads: UnsafeMutablePointer<Head>
        var typeCount = 0
        var isClosed = false

        @inline(__always)
        func slot(_ key: UInt) -> Int {
            var slot = Int(truncatingIfNeeded: (key >> 4) ^ (key >> 10)) & (KeptContainers.headCount - 1)
            while heads[slot].key != key, heads[slot].key != 0 { slot = (slot + 1) & (KeptContainers.headCount - 1) }
            return slot
        }
    }

    private let storage: UnsafeMutablePointer<Storage>

    /// Beyond so many, containers are not kept.
    private static var limit: Int { 256 }
    private static var headCount: Int { 64 }

    init() {
        let entries = UnsafeMutablePointer<Entry>.allocate(capacity: KeptContainers.limit)
        let heads = UnsafeMutablePointer<Head>.allocate(capacity: KeptContainers.headCount)
        heads.initialize(repeating: Head(), count: KeptContainers.headCount)
        storage = .allocate(capacity: 1)
        storage.initialize(to: Storage(entries: entries, heads: heads))
    }

    func free() {
        clear()
        storage.pointee.entries.deallocate()
        storage.pointee.heads.deallocate()
        storage.deallocate()
    }

    private func clear() {
        storage.pointee.entries.deinitialize(count: storage.pointee.count)
        storage.pointee.count = 0
        storage.pointee.typeCount = 0
        storage.pointee.heads.update(repeating: Head(), count: KeptContainers.headCount)
    }

    /// A kept container that nothing else holds; nil when all are in use.
    @inline(__always)
    func free(for type: Any.Type) -> UnsafeMutablePointer<Entry>? {
        let key = UInt(bitPattern: ObjectIdentifier(type))
        let head = storage.pointee.heads[storage.pointee.slot(key)]
        var next = Int(head.first) - 1
        let entries = storage.pointee.entries
        while next >= 0 {
            if isKnownUniquelyReferenced(&entries[next].box.pointee) { return entries + next }
            next = Int(entries[next].next)
        }
        return nil
    }

    /// Keeps a container; false when it cannot be kept.
    func keep<Container>(_ container: Container, for type: Any.Type, _ frame: Frame) -> Bool {
        guard !storage.pointee.isClosed, ContainerLayout.allowsReuse, storage.pointee.count < KeptContainers.limit
        else { return false }
        let key = UInt(bitPattern: ObjectIdentifier(type))
        let slot = storage.pointee.slot(key)
        if storage.pointee.heads[slot].key == 0 {
            guard storage.pointee.typeCount < KeptContainers.headCount / 2 else { return false }
            storage.pointee.typeCount += 1
        }
        let holder = ContainerHolder(container)
        let box = UnsafeMutableRawPointer(holder.memory).assumingMemoryBound(to: ContainerBox.self)
        let next = storage.pointee.heads[slot].first - 1
        (storage.pointee.entries + storage.pointee.count).initialize(
            to: Entry(holder: holder, box: box, frame: frame, next: next))
        storage.pointee.count += 1
        storage.pointee.heads[slot] = Head(key: key, first: Int32(truncatingIfNeeded: storage.pointee.count))
        return true
    }

    /// Lets the frames that callers still hold keep what they work on.
    ///
    /// - Returns: Whether there are none.
    func release() -> Bool {
        var isFree = true
        let entries = storage.pointee.entries
        for place in 0..<storage.pointee.count {
            if isKnownUniquelyReferenced(&entries[place].box.pointee) {
                entries[place].frame.rest()
            } else {
                entries[place].frame.own()
                isFree = false
            }
        }
        return isFree
    }

    /// Keeps no container from now on.
    ///
    /// A container that is made through a decoder or an encoder that a caller still holds has to keep what it works on. A
    /// frame that is kept here and owns the core would keep both for ever.
    func close() {
        clear()
        storage.pointee.isClosed = true
    }
}

/// Whether containers are laid out as ``KeptContainers`` needs it.
enum ContainerLayout {
    static let allowsReuse: Bool = {
        let plan = DecodingPlan(JSON.DecodingOptions())
        let core = DecodingCore(plan)
        let decoding = KeyedDecodingContainer(KeyedDecoding<JSONKey>(frame: DecodingFrame(core, KeyNames(plan.keys))))
        let writer = JSONWriter(EncodingPlan(JSON.EncodingOptions()))
        let encoding = KeyedEncodingContainer(
            KeyedEncoding<JSONKey>(frame: EncodingFrame(writer, writer.names(for: JSONKey.self))))
        return isOneObject(decoding) && isOneObject(encoding)
    }()

    /// Whether a value is a reference to one object and nothing else, as far as reflection and its bits tell.
    private static func isOneObject<Container>(_ container: Container) -> Bool {
        let children = Mirror(reflecting: container).children
        guard MemoryLayout<Container>.size == MemoryLayout<ContainerBox>.size, children.count == 1,
            let child = children.first?.value, type(of: child) is AnyClass
        else { return false }
        return withUnsafeBytes(of: container) { $0.load(as: ObjectIdentifier.self) }
            == ObjectIdentifier(child as AnyObject)
    }
}
