// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Writes one value into one growing buffer and tracks the open arrays and objects.
///
/// A container identifies its level by depth and id. A write to a level closes the levels inside it. A nested container
/// may be created early and filled late, so it gets a writer of its own; its text is inserted at the end, as a
/// *splice*.
///
/// The memory of `state` holds the variables that every write changes, because Swift checks each access to a variable
/// of a class. It is initialised by `init` and freed by `deinit`. `bytes` has memory for `capacity` bytes, of which
/// `count` are initialised, and every write reserves memory before it writes.
final class JSONWriter {
    struct Level {
        /// Unique within the writer.
        let id: Int
        let start: Int
        let isObject: Bool
        var count: Int32 = 0
        /// The written names, as a bit for each slot of `names`.
        var mask: UInt64 = 0
        /// The table whose slots `mask` refers to; another container of the same object may have another table.
        var names: Unmanaged<EncodingNames>?
        /// Whether `names` lacks some of the written names.
        var isMixed = false
        /// The offset of the last member's name, after its quotation mark.
        var name = 0
    }

    struct State {
        var bytes: UnsafeMutablePointer<UInt8>
        var count = 0
        var capacity: Int
        var levels: UnsafeMutablePointer<Level>
        var depth = 0
        var levelCapacity: Int
        /// Whether a name was written twice, so that the first member must be removed.
        var hasDuplicates = false
        var spliceCount = 0
        var lastID = 0
        /// The lowest depth that accepts writes: the level around it is in the middle of a value.
        var floor = 0
    }

    struct Splice {
        let position: Int
        let writer: JSONWriter
    }

    let plan: EncodingPlan
    let state: UnsafeMutablePointer<State>
    /// The tables of the root writer; nested writers retain the root.
    let ways: EncodingTable
    let kept: KeptContainers<EncodingFrame>
    /// The parent of a nested writer; nil for the root.
    private let parent: JSONWriter?
    private let depthAround: Int
    private let path: [any CodingKey]
    private(set) var splices: [Splice] = []
    /// All writers of nested containers; kept until the encode ends.
    private var children: [JSONWriter] = []
    private var namesByType: [ObjectIdentifier: EncodingNames] = [:]
    private var mixedNames: [Int: Set<String>] = [:]
    /// The first misuse of a container in a method that cannot throw.
    private(set) var failure: EncodingError?

    init(_ plan: EncodingPlan, in parent: JSONWriter? = nil, path: [any CodingKey] = []) {
        self.plan = plan
        self.parent = parent
        ways = parent?.ways ?? EncodingTable()
        kept = parent?.kept ?? KeptContainers()
        self.path = path
        depthAround = parent.map { $0.depthAround + $0.state.pointee.depth } ?? 0
        state = .allocate(capacity: 1)
        let capacity = parent == nil ? 1024 : 64
        state.initialize(
            to: State(
                bytes: .allocate(capacity: capacity), capacity: capacity, levels: .allocate(capacity: 8),
                levelCapacity: 8))
    }

    deinit {
        if parent == nil {
            kept.free()
            ways.free()
        }
        state.pointee.bytes.deallocate()
        state.pointee.levels.deallocate()
        state.deallocate()
    }

    private var root: JSONWriter { parent?.root ?? self }

    // MARK: Bytes

    /// Reserves space for more bytes.
    @inline(__always)
    func reserve(_ count: Int) {
        if state.pointee.capacity - state.pointee.count < count { grow(count) }
    }

    @inline(never)
    private func grow(_ count: Int) {
        let capacity = max(state.pointee.capacity * 2, state.pointee.count + count)
        let larger = UnsafeMutablePointer<UInt8>.allocate(capacity: capacity)
        larger.moveInitialize(from: state.pointee.bytes, count: state.pointee.count)
        state.pointee.bytes.deallocate()
        state.pointee.bytes = larger
        state.pointee.capacity = capacity
    }

    /// The address of the next byte; valid after `reserve`.
    var end: UnsafeMutablePointer<UInt8> {
        @inline(__always) get { state.pointee.bytes + state.pointee.count }
    }

    @inline(__always)
    func put(_ byte: UInt8) {
        reserve(1)
        end.initialize(to: byte)
        state.pointee.count += 1
    }

    @inline(__always)
    func put(_ bytes: UnsafeBufferPointer<UInt8>) {
        reserve(bytes.count)
        if let base = bytes.baseAddress { end.initialize(from: base, count: bytes.count) }
        state.pointee.count += bytes.count
    }

    func put(_ text: StaticString) { put(UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)) }

    // MARK: Levels

    /// Opens an array or an object at the end of the text and returns its id.
    @inline(__always)
    func open(isObject: Bool) -> Int {
        let start = state.pointee.count
        if state.pointee.depth == state.pointee.levelCapacity { growLevels() }
        if depthAround + state.pointee.depth >= JSONLimits.depth {
            fail("The value is nested more than \(JSONLimits.depth) levels deep.")
        }
        state.pointee.lastID += 1
        let level = Level(id: state.pointee.lastID, start: start, isObject: isObject)
        (state.pointee.levels + state.pointee.depth).initialize(to: level)
        state.pointee.depth += 1
        put(isObject ? UInt8(ascii: "{") : UInt8(ascii: "["))
        return level.id
    }

    /// Throws if the value is nested too deeply, because an endless value must not overflow the stack.
    @inline(__always)
    func checkDepth() throws {
        if depthAround + state.pointee.depth > JSONLimits.depth, let failure = root.failure { throw failure }
    }

    @inline(never)
    private func growLevels() {
        let larger = UnsafeMutablePointer<Level>.allocate(capacity: state.pointee.levelCapacity * 2)
        larger.moveInitialize(from: state.pointee.levels, count: state.pointee.depth)
        state.pointee.levels.deallocate()
        state.pointee.levels = larger
        state.pointee.levelCapacity *= 2
    }

    /// Closes all levels from a depth on.
    @inline(__always)
    func close(to depth: Int) {
        while state.pointee.depth > depth {
            state.pointee.depth -= 1
            put(state.pointee.levels[state.pointee.depth].isObject ? UInt8(ascii: "}") : UInt8(ascii: "]"))
        }
    }

    /// Closes the levels inside an open level and returns true; returns false if the level is closed.
    @inline(__always)
    func enter(_ depth: Int, _ id: Int) -> Bool {
        guard depth < state.pointee.depth, depth >= state.pointee.floor, state.pointee.levels[depth].id == id else {
            return false
        }
        close(to: depth + 1)
        return true
    }

    /// Begins an element of an array whose level is the innermost.
    @inline(__always)
    func beginElement(_ depth: Int) {
        if state.pointee.levels[depth].count > 0 { put(UInt8(ascii: ",")) }
        state.pointee.levels[depth].count += 1
    }

    /// A state for `restore`, which removes a value whose encoding throws from the text.
    struct Mark {
        fileprivate let count: Int
        fileprivate let depth: Int
        fileprivate let level: Level
        fileprivate let splices: Int
        fileprivate let floor: Int
    }

    @inline(__always)
    func mark(_ depth: Int) -> Mark {
        Mark(
            count: state.pointee.count, depth: depth, level: state.pointee.levels[depth],
            splices: state.pointee.spliceCount, floor: state.pointee.floor)
    }

    @inline(never)
    func restore(_ mark: Mark) {
        state.pointee.count = mark.count
        state.pointee.depth = mark.depth + 1
        state.pointee.levels[mark.depth] = mark.level
        state.pointee.floor = mark.floor
        dropSplices(from: mark.splices)
    }

    /// Writes a value of a level; the level refuses other writes meanwhile.
    @inline(__always)
    func within(_ depth: Int, _ body: () throws -> Void) rethrows {
        let floor = state.pointee.floor
        state.pointee.floor = depth + 1
        defer { state.pointee.floor = floor }
        try body()
    }

    /// Removes an unfinished value that began at an offset.
    @inline(never)
    func takeBack(to start: Int, _ depth: Int, splices count: Int) {
        state.pointee.count = start
        state.pointee.depth = depth
        dropSplices(from: count)
    }

    private func dropSplices(from count: Int) {
        guard splices.count > count else { return }
        splices.removeSubrange(count...)
        state.pointee.spliceCount = count
    }

    /// Returns a writer whose text is discarded, for a container that is closed.
    static func orphan(_ plan: EncodingPlan, _ path: [any CodingKey]) -> JSONWriter {
        let writer = JSONWriter(plan, path: path)
        writer.kept.close()
        return writer
    }

    // MARK: Nested containers

    /// Returns a writer for a value at the end of the text; the caller may write to it at any time.
    func splice(_ path: [any CodingKey]) -> JSONWriter {
        let writer = JSONWriter(plan, in: self, path: path)
        splices.append(Splice(position: state.pointee.count, writer: writer))
        state.pointee.spliceCount += 1
        root.children.append(writer)
        return writer
    }

    func fail(_ words: String) {
        guard root.failure == nil else { return }
        // The error contains the type instead of the value, so its text contains no values.
        let error = EncodingError.invalidValue(
            Never.self, EncodingError.Context(codingPath: codingPath(), debugDescription: words))
        root.failure = error
    }

    /// Returns the error of a container that is used after its value is complete.
    func closed() -> EncodingError {
        .invalidValue(
            Never.self,
            EncodingError.Context(
                codingPath: path, debugDescription: "A container was used after the value it belongs to was complete."))
    }

    // MARK: Names

    func names(for type: Any.Type) -> EncodingNames {
        let id = ObjectIdentifier(type)
        let root = root
        if let found = root.namesByType[id] { return found }
        let made = EncodingNames(plan)
        root.namesByType[id] = made
        return made
    }

    /// Records a name that `mask` cannot hold: of a second type of keys, or beyond the number of its bits.
    @inline(never)
    func noteMixed(_ name: String, _ depth: Int) {
        let level = state.pointee.levels[depth]
        if !level.isMixed {
            state.pointee.levels[depth].isMixed = true
            mixedNames[level.start] = level.names?.takeUnretainedValue().texts(level.mask) ?? []
        }
        if mixedNames[level.start]?.insert(name).inserted == false { state.pointee.hasDuplicates = true }
    }

    // MARK: Paths

    /// Computes the path of the current value, or of the level at a depth, from the text.
    func codingPath(to depth: Int? = nil) -> [any CodingKey] {
        var path = path
        for depth in 0..<max(0, min(depth ?? .max, state.pointee.depth)) {
            let level = state.pointee.levels[depth]
            if !level.isObject {
                // An array has no text between its elements.
                if level.count > 0 { path.append(JSONKey(index: Int(level.count) - 1)) }
            } else if let name = lastName(level) {
                path.append(JSONKey(stringValue: name))
            }
        }
        return path
    }

    /// Returns the name of the last member of an object that is open.
    private func lastName(_ level: Level) -> String? {
        guard level.count > 0 else { return nil }
        let rest = state.pointee.count - level.name
        return JSONOutput.name(UnsafeBufferPointer(start: state.pointee.bytes + level.name, count: rest))
    }

    // MARK: The end

    /// Writes a whole value and passes its text to a closure.
    func encode<T: Encodable, Result>(
        _ value: T, _ body: (UnsafeBufferPointer<UInt8>) throws -> Result
    ) throws -> Result {
        state.pointee.depth = 0
        try self.value(value)
        close(to: 0)
        if state.pointee.count == 0 {
            throw EncodingError.invalidValue(
                value, EncodingError.Context(codingPath: [], debugDescription: "The value encoded nothing."))
        }
        if let failure { throw failure }
        let text = UnsafeBufferPointer(start: state.pointee.bytes, count: state.pointee.count)
        if splices.isEmpty, !hasDuplicates, !plan.isRewritten { return try body(text) }
        var whole: [UInt8] = []
        flatten(into: &whole)
        guard hasDuplicates || plan.isRewritten else { return try whole.withUnsafeBufferPointer(body) }
        let written = try whole.withUnsafeBufferPointer { try rewritten($0) }
        return try written.withUnsafeBufferPointer(body)
    }

    private func rewritten(_ text: UnsafeBufferPointer<UInt8>) throws -> [UInt8] {
        do throws(JSONFlaw) {
            return try JSONOutput.rewritten(text, plan)
        } catch {
            throw EncodingError.invalidValue(
                Never.self,
                EncodingError.Context(codingPath: [], debugDescription: "The text cannot be sorted: \(error.reason)."))
        }
    }

    private var hasDuplicates: Bool {
        state.pointee.hasDuplicates || children.contains { $0.state.pointee.hasDuplicates }
    }

    /// Writes the text with the texts of the nested writers inserted.
    ///
    /// A value that wrote nothing is an empty object.
    private func flatten(into text: inout [UInt8]) {
        close(to: 0)
        var start = 0
        for splice in splices {
            text += UnsafeBufferPointer(start: state.pointee.bytes + start, count: splice.position - start)
            start = splice.position
            splice.writer.flatten(into: &text)
        }
        text += UnsafeBufferPointer(start: state.pointee.bytes + start, count: state.pointee.count - start)
        if parent != nil, state.pointee.count == 0, splices.isEmpty { text += "{}".utf8 }
    }

    /// Ends an encode; containers that the caller's types keep stay valid.
    ///
    /// - Returns: Whether the writer may be reused. The caller must also check that it holds the only reference to it.
    func release() -> Bool {
        let isFree = kept.release() && children.isEmpty
        if !splices.isEmpty { splices = [] }
        state.pointee.spliceCount = 0
        // Each nested writer references its parent, which would form a cycle.
        for child in children { child.splices = [] }
        children = []
        mixedNames = [:]
        failure = nil
        state.pointee.count = 0
        // No level is below 0, so containers and encoders that outlive the encode find their level closed.
        state.pointee.depth = -1
        state.pointee.floor = 0
        state.pointee.hasDuplicates = false
        // An idle writer keeps 256 KiB at most.
        return isFree && state.pointee.capacity <= 256 << 10
    }
}
