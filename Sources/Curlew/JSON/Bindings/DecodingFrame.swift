// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// The object that a keyed container reads, and how far its reader has come.
///
/// The same names are asked for in the same order for every object of a type, mostly in the order of the text. So the
/// name asked for is compared with one name first; only if that is another one, the frame searches.
final class DecodingFrame: ContainerFrame {
    private struct State {
        var object = 0
        var end = 0
        /// The name to try next.
        var cursor = 0
        /// All names before this one were found by other keys, so none of them can be what is asked for.
        var low = 0
        /// The key that is asked for next, if keys come in the order in which they came first.
        var slot = 0
        var lastSlot = -1
        var lastFound = -1
        /// The keys that were found, by their slots.
        var found: UInt64 = 0
        /// Where each name is, in objects with so many names that searching takes long.
        var table: [String: Int]?
    }

    /// Not retained: during a decode its call keeps the core alive, afterwards `owner` does.
    private let unowned: Unmanaged<DecodingCore>
    private let names: KeyNames
    /// In memory of its own, since access to a variable of a class is checked each time.
    private let state: UnsafeMutablePointer<State>
    /// The core, once the decode has ended while a caller still holds a container of this frame.
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

    /// The index of the value for a key; −1 when the object has none.
    ///
    /// Of members with the same name the first counts.
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

    /// Lends the core, without the cost of a reference of its own.
    @inline(__always)
    func withCore<Result>(_ body: (DecodingCore) throws -> Result) rethrows -> Result {
        try unowned._withUnsafeGuaranteedRef { try body($0) }
    }

    @inline(never)
    private func search(_ key: String, _ core: DecodingCore) -> Int {
        let slot = names.slot(of: key, near: state.pointee.slot)
        if slot >= 0 {
            // Asked again, such as by `contains` and then `decode`.
            if slot == state.pointee.lastSlot { return state.pointee.lastFound }
            state.pointee.slot = slot + 1
        }
        guard state.pointee.table == nil, slot >= 0, !names.isCustom else { return lookUp(key, core) }
        // A key that was found before may stand in front of `low`, and again behind it.
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
            let name = names.converted(core.index.string(core.index[place]), path)
            if table[name] == nil { table[name] = place + 1 }
            place = core.index.behind(place + 1)
        }
        return table
    }

    /// The names as keys see them, in the order of the text, each once.
    func allNames() -> [String] {
        let core = core
        let table = namesOfAll(core)
        return table.sorted { $0.value < $1.value }.map(\.key)
    }
}

/// The names that keys of one type have asked for, in the order in which they came first.
final class KeyNames {
    private struct Name {
        let text: String
        /// The first sixteen bytes of the name in the text, and which of them count.
        let start: UInt64
        let startMask: UInt64
        let rest: UInt64
        let restMask: UInt64
        /// −1 for a name that no text has, since a conversion makes another key of it.
        let length: Int
        /// All of its bytes, in memory of their own.
        let bytes: UnsafeMutableBufferPointer<UInt8>
        let isASCII: Bool
    }

    private let conversion: DecodingPlan.Keys
    /// Memory for `limit` names, of which `count` are initialised.
    private let names: UnsafeMutablePointer<Name>
    private let total: UnsafeMutablePointer<Int>

    @inline(__always)
    static func bit(_ slot: Int) -> UInt64 { 1 &<< UInt64(truncatingIfNeeded: slot) }

    /// How many names are kept: as many as there are bits.
    ///
    /// Types with more of them make their names while they decode.
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

    /// The slot of a name, which may be new; −1 when it gets none.
    func slot(of key: String, near start: Int) -> Int {
        if hasName(key, at: start) { return start }
        for slot in 0..<count where names[slot].text == key { return slot }
        // A conversion of the caller's own may depend on the path. Long names are those of a text rather than of a type.
        guard count < KeyNames.limit, !isCustom, key.utf8.count <= 128 else { return -1 }
        let wire = conversion.isSnake ? SnakeCase.snake(key) : key
        // A name that would come back as another key never stands for this one.
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

    /// Eight bytes in the order of memory, and a mask of those that are there.
    private static func word(_ bytes: UnsafeMutableBufferPointer<UInt8>, from start: Int) -> (UInt64, mask: UInt64) {
        var (word, mask): (UInt64, UInt64) = (0, 0)
        for place in start..<max(start, min(bytes.count, start + 8)) {
            word |= UInt64(bytes[place]) << UInt64(8 * (place - start))
            mask |= 0xFF << UInt64(8 * (place - start))
        }
        return (word.littleEndian, mask.littleEndian)
    }

    /// Whether the name of an entry stands for the key in a slot.
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
        return isSlowly(index, entry, slot)
    }

    /// Whether a name with escapes, with characters that may be written in two ways, or to be converted stands for a key.
    @inline(never)
    private func isSlowly(_ index: JSONIndex, _ entry: JSONEntry, _ slot: Int) -> Bool {
        if conversion.isSnake, entry.code == JSONEntry.Kind.ascii.rawValue, !index.isAlike(entry, names[slot].text) {
            return false
        }
        return converted(index.string(entry), []) == names[slot].text
    }

    /// A name of the text as keys see it.
    ///
    /// - Parameter path: Of the object, for a conversion of the caller's own.
    func converted(_ name: String, _ path: [any CodingKey]) -> String {
        switch conversion {
        case .unchanged: name
        case .snakeCase: SnakeCase.camel(name)
        case .custom(let convert): convert(path + [JSONKey(stringValue: name)]).stringValue
        }
    }
}

extension JSONIndex {
    @inline(__always)
    func hasBytes(_ entry: JSONEntry, _ other: UnsafeBufferPointer<UInt8>) -> Bool {
        entry.length == other.count
            && other.baseAddress.map { memcmp(text + entry.offset, $0, other.count) == 0 } ?? true
    }

    /// Whether a name could be another one, as far as letters and digits tell: a test that is cheaper than a conversion.
    func isAlike(_ entry: JSONEntry, _ name: String) -> Bool {
        func fold(_ byte: UInt8) -> UInt8? {
            byte == UInt8(ascii: "_") ? nil : byte &- 0x41 < 26 ? byte | 0x20 : byte
        }
        var one = bytes(entry).lazy.compactMap(fold).makeIterator()
        for byte in name.utf8.lazy.compactMap(fold) where one.next() != byte { return false }
        return one.next() == nil
    }
}
