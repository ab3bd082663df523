// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The encoder that values encode themselves to; its containers fill a tree.
struct QueryValueEncoder: Encoder {
    let tree: QueryTree
    let styles: Request.QueryEncoder
    /// The number of values that are encoding themselves around this one; it can exceed the length of the path, since a
    /// value can encode another value in its own place.
    var depth = 0

    /// The maximum number of names and indices in a path.
    static let maximumPathLength = 64
    /// The maximum depth to which values can encode one another.
    static let deepest = 4 * maximumPathLength

    var codingPath: [any CodingKey] { tree.path }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        tree.open(.keyed)
        return KeyedEncodingContainer(QueryKeyedContainer(encoder: self))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        tree.open(.list)
        return QueryListContainer(encoder: self)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer { QuerySingleContainer(encoder: self) }

    /// Returns the encoder of a new child.
    func inside(_ name: String, key: any CodingKey) -> QueryValueEncoder {
        QueryValueEncoder(tree: tree.child(name, key: key), styles: styles, depth: depth)
    }

    func inside(_ key: any CodingKey) -> QueryValueEncoder { inside(styles.keys.name(key.stringValue), key: key) }

    /// Returns the encoder of a list's next element.
    func next() -> QueryValueEncoder { inside("", key: QueryKey(intValue: tree.entries.count)) }

    /// Encodes a value into this encoder's tree.
    func put<T: Encodable>(_ value: T) throws {
        guard depth < Self.deepest, codingPath.count <= Self.maximumPathLength else {
            throw EncodingError.inQuery(
                T.self, at: codingPath, "More than \(Self.maximumPathLength) values are inside one another.")
        }
        if let text = styles.plainText(of: value) { return tree.put(text, of: styles.bytes(of: value)) }
        var deeper = self
        deeper.depth += 1
        if let dictionary = value as? any QueryDictionary {
            tree.open(.keyed)
            for (name, value) in try dictionary.entries(deeper) {
                try deeper.inside(QueryKey(stringValue: name)).put(value)
            }
        } else {
            try value.encode(to: deeper)
            if value is any UnorderedElements { tree.markAsSet() }
        }
    }
}

/// Marks sets, which must not be written with an order and brackets like lists.
private protocol UnorderedElements {}

extension Set: UnorderedElements {}

/// Marks dictionaries, which encode themselves as lists when their keys are neither strings nor integers.
private protocol QueryDictionary {
    /// Returns the names and values, sorted by name.
    func entries(_ encoder: QueryValueEncoder) throws -> [(String, any Encodable)]
}

extension Dictionary: QueryDictionary where Key: Encodable, Value: Encodable {
    fileprivate func entries(_ encoder: QueryValueEncoder) throws -> [(String, any Encodable)] {
        var entries: [(String, any Encodable)] = []
        entries.reserveCapacity(count)
        for (key, value) in self { entries.append((try Self.name(key, encoder), value)) }
        return entries.sorted { $0.0.utf8.lexicographicallyPrecedes($1.0.utf8) }
    }

    private static func name(_ key: Key, _ encoder: QueryValueEncoder) throws -> String {
        if let key = key as? any CodingKeyRepresentable { return key.codingKey.stringValue }
        let tree = QueryTree(path: encoder.codingPath)
        try QueryValueEncoder(tree: tree, styles: encoder.styles, depth: encoder.depth).put(key)
        guard tree.kind == .text else {
            throw EncodingError.inQuery(
                Key.self, at: tree.path, "The key of a dictionary must be one text or number.")
        }
        return tree.text
    }
}

/// The generic `encode(_:forKey:)` implements the requirements for all types except two: the standard library rejects
/// `Int128` and `UInt128` unless a container implements them explicitly.
private struct QueryKeyedContainer<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let encoder: QueryValueEncoder

    var codingPath: [any CodingKey] { encoder.codingPath }

    func encodeNil(forKey key: Key) { encoder.inside(key).tree.putNil() }
    func encode(_ value: some Encodable, forKey key: Key) throws { try encoder.inside(key).put(value) }
    func encode(_ value: Int128, forKey key: Key) throws { try encoder.inside(key).put(value) }
    func encode(_ value: UInt128, forKey key: Key) throws { try encoder.inside(key).put(value) }

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type, forKey key: Key
    ) -> KeyedEncodingContainer<NestedKey> { encoder.inside(key).container(keyedBy: type) }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        encoder.inside(key).unkeyedContainer()
    }

    func superEncoder() -> any Encoder { encoder.inside(QueryKey(stringValue: "super")) }
    func superEncoder(forKey key: Key) -> any Encoder { encoder.inside(key) }
}

private struct QueryListContainer: UnkeyedEncodingContainer {
    let encoder: QueryValueEncoder

    var codingPath: [any CodingKey] { encoder.codingPath }
    var count: Int { encoder.tree.entries.count }

    func encodeNil() { encoder.next().tree.putNil() }
    func encode(_ value: some Encodable) throws { try encoder.next().put(value) }
    func encode(_ value: Int128) throws { try encoder.next().put(value) }
    func encode(_ value: UInt128) throws { try encoder.next().put(value) }

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type
    ) -> KeyedEncodingContainer<NestedKey> { encoder.next().container(keyedBy: type) }

    func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { encoder.next().unkeyedContainer() }
    func superEncoder() -> any Encoder { encoder.next() }
}

private struct QuerySingleContainer: SingleValueEncodingContainer {
    let encoder: QueryValueEncoder

    var codingPath: [any CodingKey] { encoder.codingPath }

    func encodeNil() { encoder.tree.putNil() }
    func encode(_ value: some Encodable) throws { try encoder.put(value) }
    func encode(_ value: Int128) throws { try encoder.put(value) }
    func encode(_ value: UInt128) throws { try encoder.put(value) }
}
