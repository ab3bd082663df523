// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// A type that the decoder decodes without its `init(from:)`, for speed or because an option determines the form.
protocol DirectlyDecodable {
    /// Initialises uninitialised memory with a value of this type.
    ///
    /// - Parameter memory: Aligned to 8 bytes, 32 bytes long. It stays uninitialised when this throws.
    static func decode(into memory: UnsafeMutableRawPointer, _ core: DecodingCore, _ place: Int) throws
}

/// The way to decode each type, determined once per type.
typealias DecodingTable = TypeTable<CodingWay<any DirectlyDecodable.Type>>

extension DecodingTable {
    @inline(__always)
    func way<T: Decodable>(of type: T.Type, _ plan: DecodingPlan) -> Value { self[type] ?? newWay(of: type, plan) }

    @inline(never)
    private func newWay<T: Decodable>(of type: T.Type, _ plan: DecodingPlan) -> Value {
        let fits = MemoryLayout<T>.size <= 32 && MemoryLayout<T>.alignment <= 8
        let direct = fits && plan.isDirect(type) ? type as? any DirectlyDecodable.Type : nil
        let way = direct.map { Value.direct($0) } ?? .own
        set(type, way)
        return way
    }
}

extension UnsafeMutableRawPointer {
    /// Initialises the memory with a value of the type that the caller of `decode(into:)` reads.
    @inline(__always)
    fileprivate func take<T>(_ value: T) { _ = initializeMemory(as: T.self, to: value) }
}

extension Bool: DirectlyDecodable {
    static func decode(into memory: UnsafeMutableRawPointer, _ core: DecodingCore, _ place: Int) throws {
        memory.take(try core.bool(at: place))
    }
}

extension String: DirectlyDecodable {
    static func decode(into memory: UnsafeMutableRawPointer, _ core: DecodingCore, _ place: Int) throws {
        memory.take(try core.string(at: place))
    }
}

extension Double: DirectlyDecodable {
    static func decode(into memory: UnsafeMutableRawPointer, _ core: DecodingCore, _ place: Int) throws {
        memory.take(try core.double(at: place))
    }
}

extension Float: DirectlyDecodable {
    static func decode(into memory: UnsafeMutableRawPointer, _ core: DecodingCore, _ place: Int) throws {
        memory.take(try core.float(at: place))
    }
}

extension DirectlyDecodable where Self: FixedWidthInteger & Decodable {
    static func decode(into memory: UnsafeMutableRawPointer, _ core: DecodingCore, _ place: Int) throws {
        memory.take(try core.integer(Self.self, at: place))
    }
}

extension Int: DirectlyDecodable {}
extension Int8: DirectlyDecodable {}
extension Int16: DirectlyDecodable {}
extension Int32: DirectlyDecodable {}
extension Int64: DirectlyDecodable {}
extension UInt: DirectlyDecodable {}
extension UInt8: DirectlyDecodable {}
extension UInt16: DirectlyDecodable {}
extension UInt32: DirectlyDecodable {}
extension UInt64: DirectlyDecodable {}

extension Decimal: DirectlyDecodable {
    static func decode(into memory: UnsafeMutableRawPointer, _ core: DecodingCore, _ place: Int) throws {
        memory.take(try core.decimal(at: place))
    }
}

extension Date: DirectlyDecodable {
    static func decode(into memory: UnsafeMutableRawPointer, _ core: DecodingCore, _ place: Int) throws {
        memory.take(try core.plan.date(core, place))
    }
}

extension Data: DirectlyDecodable {
    static func decode(into memory: UnsafeMutableRawPointer, _ core: DecodingCore, _ place: Int) throws {
        memory.take(try core.plan.data(core, place))
    }
}

extension URL: DirectlyDecodable {
    static func decode(into memory: UnsafeMutableRawPointer, _ core: DecodingCore, _ place: Int) throws {
        let text = try core.string(at: place)
        guard let url = URL(string: text) else {
            throw core.corrupted("Invalid URL string.", "the string is not a URL", place)
        }
        memory.take(url)
    }
}

extension JSONValue: DirectlyDecodable {
    static func decode(into memory: UnsafeMutableRawPointer, _ core: DecodingCore, _ place: Int) throws {
        memory.take(try core.json(at: place))
    }
}

extension Optional: DirectlyDecodable where Wrapped: Decodable {
    static func decode(into memory: UnsafeMutableRawPointer, _ core: DecodingCore, _ place: Int) throws {
        memory.take(core.entry(place).isNull ? Wrapped?.none : try core.value(Wrapped.self, at: place))
    }
}

extension Array: DirectlyDecodable where Element: Decodable {
    static func decode(into memory: UnsafeMutableRawPointer, _ core: DecodingCore, _ place: Int) throws {
        let type = Element.self
        if type == String.self { return memory.take(try core.array(place, "") { try $0.string(at: $1) }) }
        if type == Int.self { return memory.take(try core.array(place, 0) { try $0.integer(Int.self, at: $1) }) }
        if type == Double.self { return memory.take(try core.array(place, 0) { try $0.double(at: $1) }) }
        // Inline: a generic function would look up the array's type at each call.
        let next = try core.array(place).next
        if next == place + 1 { return memory.take([] as Self) }
        var values: Self = []
        values.reserveCapacity(core.count(of: place))
        var child = place + 1
        while child < next {
            values.append(try core.value(type, at: child))
            child = core.index.behind(child)
        }
        memory.take(values)
    }
}

extension Dictionary: DirectlyDecodable where Key: Decodable, Value: Decodable {
    static func decode(into memory: UnsafeMutableRawPointer, _ core: DecodingCore, _ place: Int) throws {
        if Key.self == String.self {
            let type = Value.self
            if type == String.self { return memory.take(try core.strings(place) { try $0.string(at: $1) }) }
            if type == Int.self { return memory.take(try core.strings(place) { try $0.integer(Int.self, at: $1) }) }
            if type == Double.self { return memory.take(try core.strings(place) { try $0.double(at: $1) }) }
            return memory.take(try core.dictionary(place, of: type, core.name))
        }
        if Key.self == Int.self { return memory.take(try core.dictionary(place, of: Value.self, core.number)) }
        // Other key types decode themselves: as an object, or as an array of alternating keys and values.
        memory.take(try Self(from: ValueDecoding(core: core, place: place)))
    }
}

extension DecodingCore {
    fileprivate func array(_ place: Int) throws -> JSONEntry {
        let entry = entry(place)
        guard entry.code == JSONEntry.Kind.array.rawValue else {
            _ = try unkeyed(at: place)
            throw mismatch([Any].self, place)
        }
        return entry
    }

    /// Decodes an array of scalars.
    ///
    /// Filling an array of the final size is faster than appending.
    @inline(__always)
    fileprivate func array<Element>(
        _ place: Int, _ zero: Element, _ element: (DecodingCore, Int) throws -> Element
    ) throws -> [Element] {
        let next = try array(place).next
        var values = [Element](repeating: zero, count: count(of: place))
        var (child, position) = (place + 1, 0)
        while child < next {
            values[position] = try element(self, child)
            child = index.behind(child)
            position += 1
        }
        return values
    }

    fileprivate func name(_ place: Int) -> String { index.string(index[place]) }

    fileprivate func number(_ place: Int) throws -> Int {
        if let key = Int(index.string(index[place])) { return key }
        throw DecodingError.typeMismatch(
            Int.self,
            context(
                place + 1, "Expected Int key but found String key instead.", "the name of the member is not an integer")
        )
    }

    private func object(_ place: Int, _ type: Any.Type) throws -> JSONEntry {
        let entry = entry(place)
        guard entry.code == JSONEntry.Kind.object.rawValue else { throw mismatch(type, place) }
        noteDictionary(place)
        return entry
    }

    /// Decodes a dictionary whose keys are the names without conversion.
    ///
    /// The first of several members with the same name counts.
    @inline(__always)
    fileprivate func strings<Value>(
        _ place: Int, _ read: (DecodingCore, Int) throws -> Value
    ) throws -> [String: Value] {
        let end = try object(place, [String: Any].self).next
        var values = [String: Value](minimumCapacity: count(of: place))
        var child = place + 1
        while child < end {
            let name = name(child)
            if values[name] == nil { values[name] = try read(self, child + 1) }
            child = index.behind(child + 1)
        }
        return values
    }

    /// Decodes a dictionary with values of any type.
    ///
    /// A lookup before each insertion would cost as much as the insertion.
    fileprivate func dictionary<Key: Hashable, Value: Decodable>(
        _ place: Int, of type: Value.Type, _ key: (Int) throws -> Key
    ) throws -> [Key: Value] {
        let end = try object(place, [Key: Any].self).next
        var values = [Key: Value](minimumCapacity: count(of: place))
        var child = place + 1
        while child < end {
            let name = try key(child)
            do {
                if let first = values.updateValue(try value(type, at: child + 1), forKey: name) { values[name] = first }
            } catch  where values[name] != nil {
                // Errors of repeated members are ignored: the first member counts.
            }
            child = index.behind(child + 1)
        }
        return values
    }
}
