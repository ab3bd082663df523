// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The box inside a `KeyedDecodingContainer` or a `KeyedEncodingContainer`: an object of the standard library.
private final class ContainerBox {}

/// The holder of a container whose type the caller knows.
class AnyContainerHolder {}

/// A container in its own memory.
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

/// Returns a copy of the holder's container.
///
/// The holder supplies the type, so the caller need not look it up.
@inline(never)
func copy<Container>(_ holder: ContainerHolder<Container>) -> Container { holder.memory.pointee }

/// The frame that a kept container reads or writes through.
protocol ContainerFrame: AnyObject {
    /// Retains the core or writer from now on, because a caller still holds a container of this frame.
    func own()

    /// Clears the state of the last object.
    func rest()
}

/// Containers that are reused for the next object.
///
/// Creating a container often costs more than the values it decodes.
///
/// `KeyedDecodingContainer` is a struct around one object, which contains our container. While only this table holds
/// that object, no caller has a copy of the container, so it can be reused. Swift does not promise that layout:
/// ``ContainerLayout`` checks it by reflection, once. If it differs, every container is created anew.
struct KeptContainers<Frame: ContainerFrame> {
    struct Entry {
        let holder: AnyContainerHolder
        /// The memory of the container.
        fileprivate let box: UnsafeMutablePointer<ContainerBox>
        let frame: Frame
        /// The next entry for the same type of keys, −1 at the end: a recursive type needs one for each level.
        fileprivate let next: Int
    }

    private struct Storage {
        /// Memory for `limit` entries.
        let entries: UnsafeMutablePointer<Entry>
        var count = 0
        var isClosed = false
    }

    private let storage: UnsafeMutablePointer<Storage>
    /// The newest entry for each type of keys.
    private let newest = TypeTable<Int>()

    /// The greatest number of kept containers.
    private static var limit: Int { 256 }

    init() {
        let entries = UnsafeMutablePointer<Entry>.allocate(capacity: KeptContainers.limit)
        storage = .allocate(capacity: 1)
        storage.initialize(to: Storage(entries: entries))
    }

    func free() {
        clear()
        storage.pointee.entries.deallocate()
        storage.deallocate()
        newest.free()
    }

    private func clear() {
        storage.pointee.entries.deinitialize(count: storage.pointee.count)
        storage.pointee.count = 0
        newest.removeAll()
    }

    /// Returns a kept container that is not in use; nil if all are in use.
    @inline(__always)
    func free(for type: Any.Type) -> UnsafeMutablePointer<Entry>? {
        var next = newest[type] ?? -1
        let entries = storage.pointee.entries
        while next >= 0 {
            if isKnownUniquelyReferenced(&entries[next].box.pointee) { return entries + next }
            next = entries[next].next
        }
        return nil
    }

    /// Keeps a container; returns false if the table cannot keep it.
    func keep<Container>(_ container: Container, for type: Any.Type, _ frame: Frame) -> Bool {
        guard !storage.pointee.isClosed, ContainerLayout.allowsReuse, storage.pointee.count < KeptContainers.limit
        else { return false }
        let holder = ContainerHolder(container)
        let box = UnsafeMutableRawPointer(holder.memory).assumingMemoryBound(to: ContainerBox.self)
        (storage.pointee.entries + storage.pointee.count).initialize(
            to: Entry(holder: holder, box: box, frame: frame, next: newest[type] ?? -1))
        newest.set(type, storage.pointee.count)
        storage.pointee.count += 1
        return true
    }

    /// Lets the frames that callers still hold retain their core or writer.
    ///
    /// - Returns: Whether callers hold no frame.
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

    /// Stops keeping containers.
    ///
    /// A caller that still holds a decoder or encoder may create containers, whose frames must retain the core. A frame
    /// in this table that retains the core would form a cycle.
    func close() {
        clear()
        storage.pointee.isClosed = true
    }
}

/// Whether containers have the layout that ``KeptContainers`` needs.
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

    /// Returns whether a value is exactly one reference to an object, by reflection and by its bits.
    private static func isOneObject<Container>(_ container: Container) -> Bool {
        let children = Mirror(reflecting: container).children
        guard MemoryLayout<Container>.size == MemoryLayout<ContainerBox>.size, children.count == 1,
            let child = children.first?.value, type(of: child) is AnyClass
        else { return false }
        return withUnsafeBytes(of: container) { $0.load(as: ObjectIdentifier.self) }
            == ObjectIdentifier(child as AnyObject)
    }
}
