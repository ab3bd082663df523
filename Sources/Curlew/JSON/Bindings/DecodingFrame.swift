// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// The object that a keyed container reads, and the position of its reader.
///
/// A type reads the same names in the same order from each of its objects, mostly in the order of the text. Therefore
/// the frame first compares the key with the next name and searches only if they differ.
final class DecodingFrame: ContainerFrame {
    private struct State {
        var object = 0
        var end = 0
        /// The index of the name to compare next.
        var cursor = 0
        /// The lower bound of a search; other keys have found all names before it.
        var low = 0
        /// The slot of the next key, if the keys repeat their first order.
        var slot = 0
        var lastSlot = -1
        var lastFound = -1
        /// The found keys, as a bit for each slot.
        var found: UInt64 = 0
        /// The index of each name, in objects with so many names that a search is slow.
        var table: [String: Int]?
    }

    /// The core, not retained: the call keeps it alive during a decode, and `owner` after the decode.
    private let unowned: Unmanaged<DecodingCore>
    private let names: KeyNames
    /// The state in allocated memory, because Swift checks each access to a variable of a class.
    private let state: UnsafeMutablePointer<State>
    /// The core, if a caller holds a container of this frame after the decode.
    private var owner: DecodingCore?

    init(_ core: DecodingCore, _ names: KeyNames) {
        unowned = .passUnretained(core)
        self.names = names
        state = .allocate(capacity: 1)
        state.initialize(to: State())
    }

    deinit {
        state.deinitialize(count: 1)
        state.deallocate()
    }

    var core: DecodingCore { unowned.takeUnretainedValue() }

    var object: Int {
        @inline(__always) get { state.pointee.object }
    }

    func own() { owner = core }

    func rest() {
        if state.pointee.table != nil { state.pointee.table = nil }
    }

    @inline(__always)
    func point(to object: Int, in core: DecodingCore) {
        if state.pointee.table != nil { state.pointee.table = nil }
        state.pointee.object = object
        state.pointee.end = core.index[object].next
        state.pointee.cursor = object + 1
        state.pointee.low = object + 1
        state.pointee.slot = 0
        state.pointee.lastSlot = -1
        state.pointee.found = 0
    }

    /// Returns the index of the value for a key; −1 when the object has no value for it.
    ///
    /// The first of several members with the same name counts.
    @inline(__always)
    func find(_ key: String, _ core: DecodingCore) -> Int {
        let state = self.state
        let (slot, cursor) = (state.pointee.slot, state.pointee.cursor)
        if names.hasName(key, at: slot), cursor < state.pointee.end, state.pointee.low == cursor,
            state.pointee.found & KeyNames.bit(slot) == 0,
            names.matches(core.index, core.index[cursor], slot)
        {
            state.pointee.lastSlot = slot
            state.pointee.lastFound = cursor + 1
            state.pointee.found |= KeyNames.bit(slot)
            state.pointee.slot = slot + 1
            let next = core.index.behind(cursor + 1)
            state.pointee.cursor = next
            state.pointee.low = next
            return cursor + 1
        }
        return search(key, core)
    }

    /// Passes the core to a closure without retaining it.
    @inline(__always)
    func withCore<Result>(_ body: (DecodingCore) throws -> Result) rethrows -> Result {
        try unowned._withUnsafeGuaranteedRef { try body($0) }
    }

    @inline(never)
    private func search(_ key: String, _ core: DecodingCore) -> Int {
        let slot = names.slot(of: key, near: state.pointee.slot)
        if slot >= 0 {
            // A repeated lookup, such as `contains` and then `decode`.
            if slot == state.pointee.lastSlot { return state.pointee.lastFound }
            state.pointee.slot = slot + 1
        }
        guard state.pointee.table == nil, slot >= 0, !names.isCustom else { return lookUp(key, core) }
        // A key that was found earlier may be before `low`, and a second time after it.
        var place = state.pointee.found & KeyNames.bit(slot) == 0 ? state.pointee.low : object + 1
        var steps = 0
        while place < state.pointee.end {
            if names.matches(core.index, core.index[place], slot) { return found(slot, place, core) }
            steps += 1
            if steps > 32 { return lookUp(key, core) }
            place = core.index.behind(place + 1)
        }
        return -1
    }

    private func found(_ slot: Int, _ place: Int, _ core: DecodingCore) -> Int {
        let next = core.index.behind(place + 1)
        if place == state.pointee.low { state.pointee.low = next }
        state.pointee.cursor = max(state.pointee.cursor, next)
        state.pointee.lastSlot = slot
        state.pointee.lastFound = place + 1
        state.pointee.found |= KeyNames.bit(slot)
        return place + 1
    }

    private func lookUp(_ key: String, _ core: DecodingCore) -> Int {
        if state.pointee.table == nil { state.pointee.table = namesOfAll(core) }
        return state.pointee.table?[key] ?? -1
    }

    private func namesOfAll(_ core: DecodingCore) -> [String: Int] {
        var table: [String: Int] = [:]
        let path = names.isCustom ? core.path(to: object) : []
        var place = object + 1
        while place < state.pointee.end {
            let name = core.plan.keys.converted(core.index.string(core.index[place]), in: path)
            if table[name] == nil { table[name] = place + 1 }
            place = core.index.behind(place + 1)
        }
        return table
    }

    /// Returns the converted names in the order of the text, each once.
    func allNames() -> [String] {
        let core = core
        let table = namesOfAll(core)
        return table.sorted { $0.value < $1.value }.map(\.key)
    }
}

/// The names that keys of one type have looked up, in their first order.
final class KeyNames {
    private struct Name {
        let text: String
        /// The first sixteen bytes of the name in the text, and a mask of the bytes that exist.
        let start: UInt64
        let startMask: UInt64
        let rest: UInt64
        let restMask: UInt64
        /// −1 for a name that no text can have, because the conversion turns it into another key.
        let length: Int
        /// All bytes of the name, in allocated memory.
        let bytes: UnsafeMutableBufferPointer<UInt8>
        let isASCII: Bool
    }

    private let conversion: DecodingPlan.Keys
    /// Memory for `limit` names, of which `count` are initialised.
    private let names: UnsafeMutablePointer<Name>
    private let total: UnsafeMutablePointer<Int>

    @inline(__always)
    static func bit(_ slot: Int) -> UInt64 { 1 &<< UInt64(truncatingIfNeeded: slot) }

    /// The greatest number of names: one for each bit of the mask.
    ///
    /// Names beyond this number are converted at each lookup.
    private static let limit = 64

    init(_ conversion: DecodingPlan.Keys) {
        self.conversion = conversion
        names = .allocate(capacity: KeyNames.limit)
        total = .allocate(capacity: 1)
        total.initialize(to: 0)
    }

    private var count: Int {
        @inline(__always) get { total.pointee }
    }

    deinit {
        for place in 0..<count { names[place].bytes.deallocate() }
        names.deinitialize(count: count)
        names.deallocate()
        total.deallocate()
    }

    var isCustom: Bool { if case .custom = conversion { true } else { false } }

    @inline(__always)
    func hasName(_ key: String, at slot: Int) -> Bool { slot < count && names[slot].text == key }

    /// Returns the slot of a name, and adds a new name; −1 if the name cannot have a slot.
    func slot(of key: String, near start: Int) -> Int {
        if hasName(key, at: start) { return start }
        for slot in 0..<count where names[slot].text == key { return slot }
        // A custom conversion may depend on the path. Long names usually come from a text, not from a type.
        guard count < KeyNames.limit, !isCustom, key.utf8.count <= 128 else { return -1 }
        let wire = conversion.isSnake ? SnakeCase.snake(key) : key
        // A name that converts to another key never matches this one.
        var written = conversion.isSnake && SnakeCase.camel(wire) != key ? key : wire
        let isKey = !conversion.isSnake || SnakeCase.camel(written) == key
        let bytes = written.withUTF8 { bytes in
            let copy = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: bytes.count)
            _ = copy.initialize(from: bytes)
            return copy
        }
        let (start, startMask) = KeyNames.word(bytes, from: 0)
        let (rest, restMask) = KeyNames.word(bytes, from: 8)
        let isASCII = bytes.allSatisfy { $0 < 0x80 }
        (names + count).initialize(
            to: Name(
                text: key, start: start, startMask: startMask, rest: rest, restMask: restMask,
                length: isKey ? bytes.count : -1, bytes: bytes,
                isASCII: isASCII))
        total.pointee += 1
        return count - 1
    }

    /// Returns eight bytes in memory order, and a mask of the bytes that exist.
    private static func word(_ bytes: UnsafeMutableBufferPointer<UInt8>, from start: Int) -> (UInt64, mask: UInt64) {
        var (word, mask): (UInt64, UInt64) = (0, 0)
        for place in start..<max(start, min(bytes.count, start + 8)) {
            word |= UInt64(bytes[place]) << UInt64(8 * (place - start))
            mask |= 0xFF << UInt64(8 * (place - start))
        }
        return (word.littleEndian, mask.littleEndian)
    }

    /// Returns whether the name of an entry matches the key of a slot.
    @inline(__always)
    func matches(_ index: JSONIndex, _ entry: JSONEntry, _ slot: Int) -> Bool {
        let name = names + slot
        let isASCII = entry.code == JSONEntry.Kind.ascii.rawValue
        if isASCII, entry.length == name.pointee.length {
            if entry.offset + 16 <= index.byteCount, entry.length <= 16 {
                let text = UnsafeRawPointer(index.text + entry.offset)
                let isSame =
                    text.loadUnaligned(as: UInt64.self) & name.pointee.startMask == name.pointee.start
                    && text.loadUnaligned(fromByteOffset: 8, as: UInt64.self) & name.pointee.restMask
                        == name.pointee.rest
                if isSame { return true }
            } else if index.hasBytes(entry, UnsafeBufferPointer(name.pointee.bytes)) {
                return true
            }
        }
        if isASCII, name.pointee.isASCII, !conversion.isSnake { return false }
        return matchesAfterConversion(index, entry, slot)
    }

    /// Returns whether a name with escapes, non-ASCII characters or a conversion matches a key.
    @inline(never)
    private func matchesAfterConversion(_ index: JSONIndex, _ entry: JSONEntry, _ slot: Int) -> Bool {
        if conversion.isSnake, entry.code == JSONEntry.Kind.ascii.rawValue, !index.isAlike(entry, names[slot].text) {
            return false
        }
        return conversion.converted(index.string(entry), in: []) == names[slot].text
    }
}

extension JSONIndex {
    @inline(__always)
    func hasBytes(_ entry: JSONEntry, _ other: UnsafeBufferPointer<UInt8>) -> Bool {
        entry.length == other.count
            && other.baseAddress.map { memcmp(text + entry.offset, $0, other.count) == 0 } ?? true
    }

    /// Returns whether two names could match by their letters and digits; this is cheaper than a conversion.
    func isAlike(_ entry: JSONEntry, _ name: String) -> Bool {
        func fold(_ byte: UInt8) -> UInt8? {
            byte == UInt8(ascii: "_") ? nil : byte &- 0x41 < 26 ? byte | 0x20 : byte
        }
        var one = bytes(entry).lazy.compactMap(fold).makeIterator()
        for byte in name.utf8.lazy.compactMap(fold) where one.next() != byte { return false }
        return one.next() == nil
    }
}
