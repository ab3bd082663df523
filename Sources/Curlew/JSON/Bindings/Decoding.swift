// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The decoder that a type's `init(from:)` gets, and a container for one value.
struct ValueDecoding: Decoder, SingleValueDecodingContainer {
    let core: DecodingCore
    let place: Int

    var codingPath: [any CodingKey] { core.path(to: place) }
    var userInfo: [CodingUserInfoKey: Any] { core.plan.options.userInfo }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        try core.keyed(type, at: place)
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer { try core.unkeyed(at: place) }
    func singleValueContainer() throws -> any SingleValueDecodingContainer { self }

    func decodeNil() -> Bool { core.entry(place).isNull }
    func decode(_ type: Bool.Type) throws -> Bool { try core.bool(at: place) }
    func decode(_ type: String.Type) throws -> String { try core.string(at: place) }
    func decode(_ type: Double.Type) throws -> Double { try core.double(at: place) }
    func decode(_ type: Float.Type) throws -> Float { try core.float(at: place) }
    func decode(_ type: Int.Type) throws -> Int { try core.integer(type, at: place) }
    func decode(_ type: Int8.Type) throws -> Int8 { try core.integer(type, at: place) }
    func decode(_ type: Int16.Type) throws -> Int16 { try core.integer(type, at: place) }
    func decode(_ type: Int32.Type) throws -> Int32 { try core.integer(type, at: place) }
    func decode(_ type: Int64.Type) throws -> Int64 { try core.integer(type, at: place) }
    func decode(_ type: Int128.Type) throws -> Int128 { try core.integer(type, at: place) }
    func decode(_ type: UInt.Type) throws -> UInt { try core.integer(type, at: place) }
    func decode(_ type: UInt8.Type) throws -> UInt8 { try core.integer(type, at: place) }
    func decode(_ type: UInt16.Type) throws -> UInt16 { try core.integer(type, at: place) }
    func decode(_ type: UInt32.Type) throws -> UInt32 { try core.integer(type, at: place) }
    func decode(_ type: UInt64.Type) throws -> UInt64 { try core.integer(type, at: place) }
    func decode(_ type: UInt128.Type) throws -> UInt128 { try core.integer(type, at: place) }
    func decode<T: Decodable>(_ type: T.Type) throws -> T { try core.value(type, at: place) }
}

/// The members of an object by their names.
struct KeyedDecoding<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let frame: DecodingFrame

    private var core: DecodingCore { frame.core }
    var codingPath: [any CodingKey] { core.path(to: frame.object) }
    var allKeys: [Key] { frame.allNames().compactMap { Key(stringValue: $0) } }
    func contains(_ key: Key) -> Bool { frame.withCore { frame.find(key.stringValue, $0) >= 0 } }

    /// Reads the value for a key.
    @inline(__always)
    private func value<T>(_ key: Key, _ read: (DecodingCore, Int) throws -> T) throws -> T {
        try frame.withCore { core in
            let place = frame.find(key.stringValue, core)
            if place < 0 { throw missing(key) }
            return try read(core, place)
        }
    }

    /// Reads the value for a key; nil when it is missing or null.
    @inline(__always)
    private func optional<T>(_ key: Key, _ read: (DecodingCore, Int) throws -> T) throws -> T? {
        try frame.withCore { core in
            let place = frame.find(key.stringValue, core)
            return place < 0 || core.index[place].isNull ? nil : try read(core, place)
        }
    }

    @inline(never)
    private func missing(_ key: Key) -> DecodingError {
        .keyNotFound(
            key,
            core.context(
                frame.object, "No value associated with key \(key) (\"\(key.stringValue)\").",
                "no member named “\(key.stringValue)”"))
    }

    func decodeNil(forKey key: Key) throws -> Bool { try value(key) { $0.index[$1].isNull } }
    func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool { try value(key) { try $0.bool(at: $1) } }
    func decode(_ type: String.Type, forKey key: Key) throws -> String { try value(key) { try $0.string(at: $1) } }
    func decode(_ type: Double.Type, forKey key: Key) throws -> Double { try value(key) { try $0.double(at: $1) } }
    func decode(_ type: Float.Type, forKey key: Key) throws -> Float { try value(key) { try $0.float(at: $1) } }
    func decode(_ type: Int.Type, forKey key: Key) throws -> Int { try value(key) { try $0.integer(type, at: $1) } }
    func decode(_ type: Int8.Type, forKey key: Key) throws -> Int8 { try value(key) { try $0.integer(type, at: $1) } }
    func decode(_ type: Int16.Type, forKey key: Key) throws -> Int16 { try value(key) { try $0.integer(type, at: $1) } }
    func decode(_ type: Int32.Type, forKey key: Key) throws -> Int32 { try value(key) { try $0.integer(type, at: $1) } }
    func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 { try value(key) { try $0.integer(type, at: $1) } }
    func decode(_ type: Int128.Type, forKey key: Key) throws -> Int128 {
        try value(key) { try $0.integer(type, at: $1) }
    }
    func decode(_ type: UInt.Type, forKey key: Key) throws -> UInt { try value(key) { try $0.integer(type, at: $1) } }
    func decode(_ type: UInt8.Type, forKey key: Key) throws -> UInt8 { try value(key) { try $0.integer(type, at: $1) } }
    func decode(_ type: UInt16.Type, forKey key: Key) throws -> UInt16 {
        try value(key) { try $0.integer(type, at: $1) }
    }
    func decode(_ type: UInt32.Type, forKey key: Key) throws -> UInt32 {
        try value(key) { try $0.integer(type, at: $1) }
    }
    func decode(_ type: UInt64.Type, forKey key: Key) throws -> UInt64 {
        try value(key) { try $0.integer(type, at: $1) }
    }
    func decode(_ type: UInt128.Type, forKey key: Key) throws -> UInt128 {
        try value(key) { try $0.integer(type, at: $1) }
    }
    func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
        try value(key) { try $0.value(type, at: $1) }
    }

    // The default implementation of each of these looks a name up three times.

    func decodeIfPresent(_ type: Bool.Type, forKey key: Key) throws -> Bool? {
        try optional(key) { try $0.bool(at: $1) }
    }

    func decodeIfPresent(_ type: String.Type, forKey key: Key) throws -> String? {
        try optional(key) { try $0.string(at: $1) }
    }

    func decodeIfPresent(_ type: Double.Type, forKey key: Key) throws -> Double? {
        try optional(key) { try $0.double(at: $1) }
    }

    func decodeIfPresent(_ type: Float.Type, forKey key: Key) throws -> Float? {
        try optional(key) { try $0.float(at: $1) }
    }

    func decodeIfPresent(_ type: Int.Type, forKey key: Key) throws -> Int? {
        try optional(key) { try $0.integer(type, at: $1) }
    }
    func decodeIfPresent(_ type: Int8.Type, forKey key: Key) throws -> Int8? {
        try optional(key) { try $0.integer(type, at: $1) }
    }
    func decodeIfPresent(_ type: Int16.Type, forKey key: Key) throws -> Int16? {
        try optional(key) { try $0.integer(type, at: $1) }
    }
    func decodeIfPresent(_ type: Int32.Type, forKey key: Key) throws -> Int32? {
        try optional(key) { try $0.integer(type, at: $1) }
    }
    func decodeIfPresent(_ type: Int64.Type, forKey key: Key) throws -> Int64? {
        try optional(key) { try $0.integer(type, at: $1) }
    }
    func decodeIfPresent(_ type: Int128.Type, forKey key: Key) throws -> Int128? {
        try optional(key) { try $0.integer(type, at: $1) }
    }
    func decodeIfPresent(_ type: UInt.Type, forKey key: Key) throws -> UInt? {
        try optional(key) { try $0.integer(type, at: $1) }
    }
    func decodeIfPresent(_ type: UInt8.Type, forKey key: Key) throws -> UInt8? {
        try optional(key) { try $0.integer(type, at: $1) }
    }
    func decodeIfPresent(_ type: UInt16.Type, forKey key: Key) throws -> UInt16? {
        try optional(key) { try $0.integer(type, at: $1) }
    }
    func decodeIfPresent(_ type: UInt32.Type, forKey key: Key) throws -> UInt32? {
        try optional(key) { try $0.integer(type, at: $1) }
    }
    func decodeIfPresent(_ type: UInt64.Type, forKey key: Key) throws -> UInt64? {
        try optional(key) { try $0.integer(type, at: $1) }
    }
    func decodeIfPresent(_ type: UInt128.Type, forKey key: Key) throws -> UInt128? {
        try optional(key) { try $0.integer(type, at: $1) }
    }

    func decodeIfPresent<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T? {
        try optional(key) { try $0.value(type, at: $1) }
    }

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<NestedKey> { try value(key) { try $0.keyed(type, at: $1) } }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try value(key) { try $0.unkeyed(at: $1) }
    }

    func superDecoder() throws -> any Decoder { decoder(JSONKey.super) }
    func superDecoder(forKey key: Key) throws -> any Decoder { decoder(key) }

    /// Returns a decoder for the value of a key; a missing value decodes as null, as in Foundation.
    private func decoder(_ key: some CodingKey) -> any Decoder {
        let place = frame.find(key.stringValue, core)
        return ValueDecoding(core: core, place: place < 0 ? core.absent(codingPath + [key]) : place)
    }
}

/// Decodes the elements of an array in order.
///
/// A failed decode does not advance the container.
struct UnkeyedDecoding: UnkeyedDecodingContainer {
    // Small enough to be stored inline in `any UnkeyedDecodingContainer`.
    private let core: DecodingCore
    private let array: Int32
    private let total: Int32
    private var place: Int32
    private var position: Int32 = 0

    init(_ core: DecodingCore, _ array: Int) {
        self.core = core
        self.array = Int32(truncatingIfNeeded: array)
        total = Int32(truncatingIfNeeded: core.count(of: array))
        place = self.array + 1
    }

    var codingPath: [any CodingKey] { core.path(to: Int(array)) }
    var count: Int? { Int(total) }
    var currentIndex: Int { Int(position) }
    var isAtEnd: Bool { position >= total }

    @inline(__always)
    private mutating func next<T>(_ type: Any.Type, _ body: (DecodingCore, Int) throws -> T) throws -> T {
        if isAtEnd { throw ended(type) }
        let value = try body(core, Int(place))
        place = Int32(truncatingIfNeeded: core.index.behind(Int(place)))
        position += 1
        return value
    }

    @inline(never)
    private func ended(_ type: Any.Type) -> DecodingError {
        .valueNotFound(
            type,
            core.context(
                Int(array), "Unkeyed container is at end.", "the array has no more elements", .end,
                path: codingPath + [JSONKey(index: currentIndex)]))
    }

    mutating func decodeNil() throws -> Bool {
        if isAtEnd { throw ended(Any?.self) }
        guard core.index[Int(place)].isNull else { return false }
        return try next(Never.self) { _, _ in true }
    }

    mutating func decode(_ type: Bool.Type) throws -> Bool { try next(type) { try $0.bool(at: $1) } }
    mutating func decode(_ type: String.Type) throws -> String { try next(type) { try $0.string(at: $1) } }
    mutating func decode(_ type: Double.Type) throws -> Double { try next(type) { try $0.double(at: $1) } }
    mutating func decode(_ type: Float.Type) throws -> Float { try next(type) { try $0.float(at: $1) } }
    mutating func decode(_ type: Int.Type) throws -> Int { try next(type) { try $0.integer(type, at: $1) } }
    mutating func decode(_ type: Int8.Type) throws -> Int8 { try next(type) { try $0.integer(type, at: $1) } }
    mutating func decode(_ type: Int16.Type) throws -> Int16 { try next(type) { try $0.integer(type, at: $1) } }
    mutating func decode(_ type: Int32.Type) throws -> Int32 { try next(type) { try $0.integer(type, at: $1) } }
    mutating func decode(_ type: Int64.Type) throws -> Int64 { try next(type) { try $0.integer(type, at: $1) } }
    mutating func decode(_ type: Int128.Type) throws -> Int128 { try next(type) { try $0.integer(type, at: $1) } }
    mutating func decode(_ type: UInt.Type) throws -> UInt { try next(type) { try $0.integer(type, at: $1) } }
    mutating func decode(_ type: UInt8.Type) throws -> UInt8 { try next(type) { try $0.integer(type, at: $1) } }
    mutating func decode(_ type: UInt16.Type) throws -> UInt16 { try next(type) { try $0.integer(type, at: $1) } }
    mutating func decode(_ type: UInt32.Type) throws -> UInt32 { try next(type) { try $0.integer(type, at: $1) } }
    mutating func decode(_ type: UInt64.Type) throws -> UInt64 { try next(type) { try $0.integer(type, at: $1) } }
    mutating func decode(_ type: UInt128.Type) throws -> UInt128 { try next(type) { try $0.integer(type, at: $1) } }
    mutating func decode<T: Decodable>(_ type: T.Type) throws -> T { try next(type) { try $0.value(type, at: $1) } }

    mutating func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type
    ) throws -> KeyedDecodingContainer<NestedKey> {
        try next(KeyedDecodingContainer<NestedKey>.self) { try $0.keyed(type, at: $1) }
    }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        try next((any UnkeyedDecodingContainer).self) { try $0.unkeyed(at: $1) }
    }

    mutating func superDecoder() throws -> any Decoder {
        try next((any Decoder).self) { ValueDecoding(core: $0, place: $1) }
    }
}
