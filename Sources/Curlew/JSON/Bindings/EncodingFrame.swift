// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The object that a keyed container writes.
final class EncodingFrame: ContainerFrame {
    struct State {
        /// The writer, not retained: the call keeps it alive during an encode, and `owner` after the encode.
        var writer: Unmanaged<JSONWriter>
        var depth = 0
        /// The id of its level.
        var level = 0
        /// The slot of the next name, if the names repeat their first order.
        var slot = 0
    }

    let names: EncodingNames
    /// The state in allocated memory, because Swift checks each access to a variable of a class.
    let state: UnsafeMutablePointer<State>
    private var owner: JSONWriter?

    init(_ writer: JSONWriter, _ names: EncodingNames) {
        self.names = names
        state = .allocate(capacity: 1)
        state.initialize(to: State(writer: .passUnretained(writer)))
    }

    deinit { state.deallocate() }

    func own() { owner = writer }

    func rest() {}

    var writer: JSONWriter { state.pointee.writer.takeUnretainedValue() }

    @inline(__always)
    func point(to writer: JSONWriter, _ depth: Int, _ level: Int) {
        state.pointee = State(writer: .passUnretained(writer), depth: depth, level: level)
    }

    /// Writes a name and its value.
    ///
    /// If the value's encoding throws, its text is removed.
    @inline(__always)
    func write(_ key: String, _ value: (JSONWriter) throws -> Void) throws {
        try state.pointee.writer._withUnsafeGuaranteedRef { writer in
            let depth = state.pointee.depth
            guard writer.enter(depth, state.pointee.level) else { throw writer.closed() }
            let mark = writer.mark(depth)
            begin(key, writer, depth)
            do {
                try writer.within(depth) { try value(writer) }
            } catch {
                writer.restore(mark)
                throw error
            }
        }
    }

    /// Writes a name; the caller writes its value next.
    @inline(__always)
    func begin(_ key: String, _ writer: JSONWriter, _ depth: Int) {
        let level = writer.state.pointee.levels + depth
        if level.pointee.count > 0 { writer.put(UInt8(ascii: ",")) }
        level.pointee.count += 1
        level.pointee.name = writer.state.pointee.count + 1
        var slot = state.pointee.slot
        if !names.hasName(key, at: slot) { slot = names.slot(of: key) }
        state.pointee.slot = slot + 1
        if slot >= 0, !level.pointee.isMixed,
            level.pointee.mask == 0 || level.pointee.names?.toOpaque() == names.address
        {
            let name = names[slot]
            if level.pointee.mask & name.bit != 0 { writer.state.pointee.hasDuplicates = true }
            level.pointee.mask |= name.bit
            level.pointee.names = Unmanaged.passUnretained(names)
            return writer.put(UnsafeBufferPointer(name.text))
        }
        let name = names.converted(key, writer, depth)
        writer.noteMixed(name, depth)
        writer.string(name)
        writer.put(UInt8(ascii: ":"))
    }
}

/// The names that keys of one type have written, each with its quotation marks and colon.
final class EncodingNames {
    struct Name {
        fileprivate let key: String
        fileprivate let converted: String
        /// The bit of the name; keys that convert to the same name share it.
        let bit: UInt64
        /// The bytes of the name with its quotation marks and colon, in allocated memory.
        let text: UnsafeMutableBufferPointer<UInt8>
    }

    private let plan: EncodingPlan
    /// Memory for `limit` names, of which `count` are initialised.
    private let names: UnsafeMutablePointer<Name>
    private let total: UnsafeMutablePointer<Int>

    /// The greatest number of names: one for each bit of the mask.
    private static let limit = 64

    init(_ plan: EncodingPlan) {
        self.plan = plan
        names = .allocate(capacity: EncodingNames.limit)
        total = .allocate(capacity: 1)
        total.initialize(to: 0)
    }

    deinit {
        for place in 0..<count { names[place].text.deallocate() }
        names.deinitialize(count: count)
        names.deallocate()
        total.deallocate()
    }

    private var count: Int {
        @inline(__always) get { total.pointee }
    }

    var address: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

    /// The name of a slot below `count`.
    subscript(slot: Int) -> Name {
        @inline(__always) get { names[slot] }
    }

    @inline(__always)
    func hasName(_ key: String, at slot: Int) -> Bool { slot >= 0 && slot < count && names[slot].key == key }

    /// Returns the slot of a name, and adds a new name; −1 if the table is full or the conversion depends on the path.
    func slot(of key: String) -> Int {
        for slot in 0..<count where names[slot].key == key { return slot }
        guard count < EncodingNames.limit, !plan.hasCustomKeys, key.utf8.count <= 128 else { return -1 }
        let converted = plan.keys(key, [])
        let alike = (0..<count).first { names[$0].converted == converted }
        let writer = JSONWriter(plan)
        writer.string(converted)
        writer.put(UInt8(ascii: ":"))
        let text = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: writer.state.pointee.count)
        _ = text.initialize(from: UnsafeBufferPointer(start: writer.state.pointee.bytes, count: text.count))
        let bit = alike.map { names[$0].bit } ?? 1 << UInt64(count)
        (names + count).initialize(to: Name(key: key, converted: converted, bit: bit, text: text))
        total.pointee += 1
        return count - 1
    }

    func converted(_ key: String, _ writer: JSONWriter, _ depth: Int) -> String {
        plan.keys(key, plan.hasCustomKeys ? writer.codingPath(to: depth) : [])
    }

    /// Returns the names of a mask.
    func texts(_ mask: UInt64) -> Set<String> {
        Set((0..<count).filter { mask & names[$0].bit != 0 }.map { names[$0].converted })
    }
}
