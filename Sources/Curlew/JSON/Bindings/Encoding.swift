// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The encoder that a value's `encode(to:)` gets, and a container for one value.
struct ValueEncoding: Encoder, SingleValueEncodingContainer {
    let writer: JSONWriter
    let depth: Int32
    /// The offset of the value in the text; the text ends there until the value is written.
    let start: Int

    private var level: Int { Int(depth) }
    var codingPath: [any CodingKey] { writer.codingPath(to: level) }
    var userInfo: [CodingUserInfoKey: Any] { writer.plan.options.userInfo }

    /// Opens the value's array or object, or returns the open one.
    ///
    /// - Returns: The id of the level.
    private func open(isObject: Bool) -> Int {
        if writer.state.pointee.count == start, writer.state.pointee.depth == level, writer.isVacant(at: start) {
            return writer.open(isObject: isObject)
        }
        if let id = writer.reenter(level, start, isObject: isObject) { return id }
        writer.fail("A value encoded itself in two ways at once.")
        // The level does not exist: the failure ends the encode.
        return 0
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        writer.keyed(type, level, open(isObject: true))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        UnkeyedEncoding(writer: writer, depth: depth, id: open(isObject: false))
    }

    func singleValueContainer() -> any SingleValueEncodingContainer { self }

    @inline(__always)
    private func write(_ body: (JSONWriter) throws -> Void) throws {
        guard writer.state.pointee.count == start, writer.state.pointee.depth == level, writer.isVacant(at: start)
        else {
            throw EncodingError.invalidValue(
                Never.self,
                EncodingError.Context(
                    codingPath: codingPath, debugDescription: "A value encoded itself in two ways at once."))
        }
        let splices = writer.state.pointee.spliceCount
        do {
            try writer.within(level - 1) { try body(writer) }
        } catch {
            writer.takeBack(to: start, level, splices: splices)
            throw error
        }
    }

    func encodeNil() throws { try write { $0.null() } }
    func encode(_ value: Bool) throws { try write { $0.bool(value) } }
    func encode(_ value: String) throws { try write { $0.string(value) } }
    func encode(_ value: Double) throws { try write { try $0.double(value) } }
    func encode(_ value: Float) throws { try write { try $0.float(value) } }
    func encode(_ value: Int) throws { try write { $0.integer(value) } }
    func encode(_ value: Int8) throws { try write { $0.integer(value) } }
    func encode(_ value: Int16) throws { try write { $0.integer(value) } }
    func encode(_ value: Int32) throws { try write { $0.integer(value) } }
    func encode(_ value: Int64) throws { try write { $0.integer(value) } }
    func encode(_ value: Int128) throws { try write { $0.integer(value) } }
    func encode(_ value: UInt) throws { try write { $0.integer(value) } }
    func encode(_ value: UInt8) throws { try write { $0.integer(value) } }
    func encode(_ value: UInt16) throws { try write { $0.integer(value) } }
    func encode(_ value: UInt32) throws { try write { $0.integer(value) } }
    func encode(_ value: UInt64) throws { try write { $0.integer(value) } }
    func encode(_ value: UInt128) throws { try write { $0.integer(value) } }
    func encode<T: Encodable>(_ value: T) throws { try write { try $0.value(value) } }
}

/// The members of an object.
struct KeyedEncoding<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let frame: EncodingFrame

    var codingPath: [any CodingKey] { frame.writer.codingPath(to: frame.state.pointee.depth) }

    mutating func encodeNil(forKey key: Key) throws { try frame.write(key.stringValue) { $0.null() } }
    mutating func encode(_ value: Bool, forKey key: Key) throws { try frame.write(key.stringValue) { $0.bool(value) } }
    mutating func encode(_ value: String, forKey key: Key) throws {
        try frame.write(key.stringValue) { $0.string(value) }
    }
    mutating func encode(_ value: Double, forKey key: Key) throws {
        try frame.write(key.stringValue) { try $0.double(value) }
    }
    mutating func encode(_ value: Float, forKey key: Key) throws {
        try frame.write(key.stringValue) { try $0.float(value) }
    }
    mutating func encode(_ value: Int, forKey key: Key) throws {
        try frame.write(key.stringValue) { $0.integer(value) }
    }
    mutating func encode(_ value: Int8, forKey key: Key) throws {
        try frame.write(key.stringValue) { $0.integer(value) }
    }
    mutating func encode(_ value: Int16, forKey key: Key) throws {
        try frame.write(key.stringValue) { $0.integer(value) }
    }
    mutating func encode(_ value: Int32, forKey key: Key) throws {
        try frame.write(key.stringValue) { $0.integer(value) }
    }
    mutating func encode(_ value: Int64, forKey key: Key) throws {
        try frame.write(key.stringValue) { $0.integer(value) }
    }
    mutating func encode(_ value: Int128, forKey key: Key) throws {
        try frame.write(key.stringValue) { $0.integer(value) }
    }
    mutating func encode(_ value: UInt, forKey key: Key) throws {
        try frame.write(key.stringValue) { $0.integer(value) }
    }
    mutating func encode(_ value: UInt8, forKey key: Key) throws {
        try frame.write(key.stringValue) { $0.integer(value) }
    }
    mutating func encode(_ value: UInt16, forKey key: Key) throws {
        try frame.write(key.stringValue) { $0.integer(value) }
    }
    mutating func encode(_ value: UInt32, forKey key: Key) throws {
        try frame.write(key.stringValue) { $0.integer(value) }
    }
    mutating func encode(_ value: UInt64, forKey key: Key) throws {
        try frame.write(key.stringValue) { $0.integer(value) }
    }
    mutating func encode(_ value: UInt128, forKey key: Key) throws {
        try frame.write(key.stringValue) { $0.integer(value) }
    }

    mutating func encode<T: Encodable>(_ value: T, forKey key: Key) throws {
        try frame.write(key.stringValue) { try $0.value(value) }
    }

    /// Returns a writer for the value of a key; the caller may write to it later.
    private func nested(_ key: some CodingKey) -> JSONWriter {
        let (writer, depth) = (frame.writer, frame.state.pointee.depth)
        let path = codingPath + [key]
        guard writer.enter(depth, frame.state.pointee.level) else {
            writer.fail("A container was used after the value it belongs to was complete.")
            return .orphan(writer.plan, path)
        }
        frame.begin(key.stringValue, writer, depth)
        return writer.splice(path)
    }

    mutating func nestedContainer<NestedKey: CodingKey>(
        keyedBy keyType: NestedKey.Type, forKey key: Key
    ) -> KeyedEncodingContainer<NestedKey> { nested(key).newContainer(keyType) }

    mutating func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        nested(key).newUnkeyedContainer()
    }

    mutating func superEncoder() -> any Encoder { nested(JSONKey.super).newEncoder() }
    mutating func superEncoder(forKey key: Key) -> any Encoder { nested(key).newEncoder() }
}

/// The elements of an array.
struct UnkeyedEncoding: UnkeyedEncodingContainer {
    let writer: JSONWriter
    let depth: Int32
    /// The id of the array's level.
    let id: Int

    private var level: Int { Int(depth) }
    var codingPath: [any CodingKey] { writer.codingPath(to: level) }
    var count: Int { writer.count(level, id) }

    @inline(__always)
    private func write(_ body: (JSONWriter) throws -> Void) throws {
        guard writer.enter(level, id) else { throw writer.closed() }
        let mark = writer.mark(level)
        writer.beginElement(level)
        do {
            try writer.within(level) { try body(writer) }
        } catch {
            writer.restore(mark)
            throw error
        }
    }

    mutating func encodeNil() throws { try write { $0.null() } }
    mutating func encode(_ value: Bool) throws { try write { $0.bool(value) } }
    mutating func encode(_ value: String) throws { try write { $0.string(value) } }
    mutating func encode(_ value: Double) throws { try write { try $0.double(value) } }
    mutating func encode(_ value: Float) throws { try write { try $0.float(value) } }
    mutating func encode(_ value: Int) throws { try write { $0.integer(value) } }
    mutating func encode(_ value: Int8) throws { try write { $0.integer(value) } }
    mutating func encode(_ value: Int16) throws { try write { $0.integer(value) } }
    mutating func encode(_ value: Int32) throws { try write { $0.integer(value) } }
    mutating func encode(_ value: Int64) throws { try write { $0.integer(value) } }
    mutating func encode(_ value: Int128) throws { try write { $0.integer(value) } }
    mutating func encode(_ value: UInt) throws { try write { $0.integer(value) } }
    mutating func encode(_ value: UInt8) throws { try write { $0.integer(value) } }
    mutating func encode(_ value: UInt16) throws { try write { $0.integer(value) } }
    mutating func encode(_ value: UInt32) throws { try write { $0.integer(value) } }
    mutating func encode(_ value: UInt64) throws { try write { $0.integer(value) } }
    mutating func encode(_ value: UInt128) throws { try write { $0.integer(value) } }
    mutating func encode<T: Encodable>(_ value: T) throws { try write { try $0.value(value) } }

    /// Returns a writer for an element; the caller may write to it later.
    private func nested() -> JSONWriter {
        let path = codingPath + [JSONKey(index: count)]
        guard writer.enter(level, id) else {
            writer.fail("A container was used after the value it belongs to was complete.")
            return .orphan(writer.plan, path)
        }
        writer.beginElement(level)
        return writer.splice(path)
    }

    mutating func nestedContainer<NestedKey: CodingKey>(
        keyedBy keyType: NestedKey.Type
    ) -> KeyedEncodingContainer<NestedKey> { nested().newContainer(keyType) }

    mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { nested().newUnkeyedContainer() }
    mutating func superEncoder() -> any Encoder { nested().newEncoder() }
}

extension JSONWriter {
    /// Returns a container for the outermost object of a nested writer.
    fileprivate func newContainer<Key: CodingKey>(_ type: Key.Type) -> KeyedEncodingContainer<Key> {
        let frame = EncodingFrame(self, names(for: type))
        frame.point(to: self, 0, open(isObject: true))
        // The caller may become the only owner of this writer.
        frame.own()
        return KeyedEncodingContainer(KeyedEncoding<Key>(frame: frame))
    }

    fileprivate func newUnkeyedContainer() -> any UnkeyedEncodingContainer {
        UnkeyedEncoding(writer: self, depth: 0, id: open(isObject: false))
    }

    fileprivate func newEncoder() -> any Encoder { ValueEncoding(writer: self, depth: 0, start: 0) }

    fileprivate func count(_ depth: Int, _ id: Int) -> Int {
        guard depth < state.pointee.depth, state.pointee.levels[depth].id == id else { return 0 }
        return Int(state.pointee.levels[depth].count)
    }

    /// Closes the levels inside the open level at the start of a value and returns its id; nil without an open level.
    fileprivate func reenter(_ depth: Int, _ start: Int, isObject: Bool) -> Int? {
        guard depth < state.pointee.depth else { return nil }
        let level = state.pointee.levels[depth]
        return level.start == start && level.isObject == isObject && enter(depth, level.id) ? level.id : nil
    }

    /// Returns whether no nested writer occupies the offset of a value.
    @inline(__always)
    fileprivate func isVacant(at start: Int) -> Bool {
        state.pointee.spliceCount == 0 || splices.last?.position != start
    }
}
