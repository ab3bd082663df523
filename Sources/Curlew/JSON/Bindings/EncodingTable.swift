// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// A type that the encoder encodes without its `encode(to:)`, for speed or because an option determines the form.
protocol DirectlyEncodable {
    /// Writes a value of this type.
    ///
    /// - Parameter value: The address of the value; read only.
    static func encode(from value: UnsafeRawPointer, to writer: JSONWriter) throws
}

extension DirectlyEncodable {
    @inline(__always)
    fileprivate static func load(_ value: UnsafeRawPointer) -> Self { value.assumingMemoryBound(to: Self.self).pointee }
}

/// The way to encode each type, determined once per type.
typealias EncodingTable = TypeTable<CodingWay<any DirectlyEncodable.Type>>

extension EncodingTable {
    @inline(__always)
    func way<T: Encodable>(of type: T.Type, _ plan: EncodingPlan) -> Value { self[type] ?? newWay(of: type, plan) }

    @inline(never)
    private func newWay<T: Encodable>(of type: T.Type, _ plan: EncodingPlan) -> Value {
        let direct = plan.isDirect(type) ? type as? any DirectlyEncodable.Type : nil
        let way = direct.map { Value.direct($0) } ?? .own
        set(type, way)
        return way
    }
}

extension Bool: DirectlyEncodable {
    static func encode(from value: UnsafeRawPointer, to writer: JSONWriter) { writer.bool(load(value)) }
}

extension String: DirectlyEncodable {
    static func encode(from value: UnsafeRawPointer, to writer: JSONWriter) { writer.string(load(value)) }
}

extension Double: DirectlyEncodable {
    static func encode(from value: UnsafeRawPointer, to writer: JSONWriter) throws { try writer.double(load(value)) }
}

extension Float: DirectlyEncodable {
    static func encode(from value: UnsafeRawPointer, to writer: JSONWriter) throws { try writer.float(load(value)) }
}

extension DirectlyEncodable where Self: FixedWidthInteger {
    static func encode(from value: UnsafeRawPointer, to writer: JSONWriter) { writer.integer(load(value)) }
}

extension Int: DirectlyEncodable {}
extension Int8: DirectlyEncodable {}
extension Int16: DirectlyEncodable {}
extension Int32: DirectlyEncodable {}
extension Int64: DirectlyEncodable {}
extension UInt: DirectlyEncodable {}
extension UInt8: DirectlyEncodable {}
extension UInt16: DirectlyEncodable {}
extension UInt32: DirectlyEncodable {}
extension UInt64: DirectlyEncodable {}

extension Decimal: DirectlyEncodable {
    static func encode(from value: UnsafeRawPointer, to writer: JSONWriter) throws { try writer.decimal(load(value)) }
}

extension Date: DirectlyEncodable {
    static func encode(from value: UnsafeRawPointer, to writer: JSONWriter) throws {
        try writer.plan.write(load(value), writer)
    }
}

extension Data: DirectlyEncodable {
    static func encode(from value: UnsafeRawPointer, to writer: JSONWriter) throws {
        try writer.plan.write(load(value), writer)
    }
}

extension URL: DirectlyEncodable {
    static func encode(from value: UnsafeRawPointer, to writer: JSONWriter) {
        writer.string(load(value).absoluteString)
    }
}

extension JSONValue: DirectlyEncodable {
    static func encode(from value: UnsafeRawPointer, to writer: JSONWriter) throws { try writer.json(load(value)) }
}

extension Optional: DirectlyEncodable where Wrapped: Encodable {
    static func encode(from value: UnsafeRawPointer, to writer: JSONWriter) throws {
        if let value = load(value) { try writer.value(value) } else { writer.null() }
    }
}

extension Array: DirectlyEncodable where Element: Encodable {
    static func encode(from value: UnsafeRawPointer, to writer: JSONWriter) throws {
        let type = Element.self
        if type == String.self { return try writer.array([String].load(value)) { writer.string($0) } }
        if type == Int.self { return try writer.array([Int].load(value)) { writer.integer($0) } }
        if type == Double.self { return try writer.array([Double].load(value)) { try writer.double($0) } }
        try writer.array(load(value)) { try writer.value($0) }
    }
}

extension Dictionary: DirectlyEncodable where Key: Encodable, Value: Encodable {
    static func encode(from value: UnsafeRawPointer, to writer: JSONWriter) throws {
        if Key.self == String.self {
            let values = value.assumingMemoryBound(to: [String: Value].self).pointee
            return try writer.object(values, { $0 }) { try writer.value($0) }
        }
        if Key.self == Int.self {
            let values = value.assumingMemoryBound(to: [Int: Value].self).pointee
            return try writer.object(values, { "\($0)" }) { try writer.value($0) }
        }
        try writer.own(load(value))
    }
}

extension JSONWriter {
    @inline(__always)
    fileprivate func array<Element>(_ values: [Element], _ write: (Element) throws -> Void) throws {
        let depth = state.pointee.depth
        _ = open(isObject: false)
        try within(depth) {
            for value in values {
                beginElement(depth)
                try write(value)
            }
        }
        close(to: depth)
    }

    /// Writes a dictionary without converting its keys.
    @inline(__always)
    fileprivate func object<Key, Value>(
        _ values: [Key: Value], _ name: (Key) -> String, _ write: (Value) throws -> Void
    ) throws {
        let depth = state.pointee.depth
        _ = open(isObject: true)
        try within(depth) {
            for (key, value) in values {
                beginElement(depth)
                state.pointee.levels[depth].name = state.pointee.count + 1
                string(name(key))
                put(UInt8(ascii: ":"))
                try write(value)
            }
        }
        close(to: depth)
    }

    /// Writes any JSON value.
    ///
    /// Numbers that are not finite cannot be written.
    func json(_ value: JSONValue) throws {
        try checkDepth()
        switch value {
        case .null: null()
        case .bool(let value): bool(value)
        case .integer(let value): integer(value)
        case .unsigned(let value): integer(value)
        case .number(let value): try double(value)
        case .string(let value): string(value)
        case .array(let values): try array(values) { try json($0) }
        case .object(let members): try object(members, { $0 }) { try json($0) }
        }
    }
}
