// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Any JSON value (RFC 8259 §3), for data without a Swift type.
///
/// Integers of 64 bits, signed or not, are kept exactly; other numbers as `Double` (RFC 8259 §6). Numbers are equal
/// when their values are equal: `.integer(2)` equals `.number(2)`.
///
/// ```swift
/// let value: JSONValue = ["users": [["name": "Ann", "age": 41]], "next": nil]
/// print(value["users"]?[0]?["name"]?.asString ?? "")   // Ann
/// print(value.removingNulls())                         // {"users":[{"age":41,"name":"Ann"}]}
/// ```
public enum JSONValue: Sendable {
    /// `null`.
    case null
    /// `true` or `false`.
    case bool(Bool)
    /// A whole number.
    case integer(Int64)
    /// A whole number that is not negative; it may exceed the largest `Int64`.
    case unsigned(UInt64)
    /// Any number; one that is not finite cannot be encoded.
    case number(Double)
    /// A text.
    case string(String)
    /// A list.
    case array([JSONValue])
    /// Members by name.
    case object([String: JSONValue])

    /// The containers from which nulls are removed.
    public enum Containers: Sendable, Hashable, CaseIterable {
        /// Members of objects.
        case objects
        /// Members of objects and elements of arrays; later elements move up.
        case objectsAndArrays
    }

    /// Returns the value without nulls at any depth; a top-level `null` is unchanged.
    ///
    /// - Parameter containers: The containers that lose their nulls; objects by default.
    public func removingNulls(from containers: Containers = .objects) -> JSONValue {
        switch self {
        case .object(let members):
            .object(members.filter { !$1.isNull }.mapValues { $0.removingNulls(from: containers) })
        case .array(let elements):
            .array(
                elements.filter { containers == .objects || !$0.isNull }.map { $0.removingNulls(from: containers) })
        default: self
        }
    }
}

extension JSONValue {
    // MARK: Looking inside

    /// The member with this name; nil if it is missing or the value is not an object.
    public subscript(key: String) -> JSONValue? { asObject?[key] }

    /// The element at this index; nil if it is missing or the value is not an array.
    public subscript(index: Int) -> JSONValue? {
        guard let elements = asArray, elements.indices.contains(index) else { return nil }
        return elements[index]
    }

    /// Whether the value is `null`.
    public var isNull: Bool { if case .null = self { true } else { false } }

    /// The truth value; nil if the value is not one.
    public var asBool: Bool? { if case .bool(let value) = self { value } else { nil } }

    /// The whole number, such as 2 for 2.0; nil if the value is not a whole number that `Int` can hold.
    public var asInt: Int? {
        switch numeral {
        case .integer(let value): Int(exactly: value)
        default: nil
        }
    }

    /// The number, rounded to the nearest `Double` for integers beyond 2⁵³; nil if the value is not a number.
    public var asDouble: Double? {
        switch numeral {
        case .integer(let value): Double(value)
        case .unsigned(let value): Double(value)
        case .real(let value): value
        case nil: nil
        }
    }

    /// The text; nil if the value is not a text.
    public var asString: String? { if case .string(let value) = self { value } else { nil } }

    /// The elements; nil if the value is not an array.
    public var asArray: [JSONValue]? { if case .array(let value) = self { value } else { nil } }

    /// The members; nil if the value is not an object.
    public var asObject: [String: JSONValue]? { if case .object(let value) = self { value } else { nil } }
}

extension JSONValue: Hashable {
    /// A number in canonical form: equal numbers have the same case.
    private enum Numeral: Hashable {
        case integer(Int64)
        /// Beyond `Int64`.
        case unsigned(UInt64)
        /// A number that is not a whole number of 64 bits.
        case real(Double)
    }

    private var numeral: Numeral? {
        switch self {
        case .integer(let value): .integer(value)
        case .unsigned(let value): Int64(exactly: value).map { .integer($0) } ?? .unsigned(value)
        case .number(let value):
            Int64(exactly: value).map { .integer($0) } ?? UInt64(exactly: value).map { .unsigned($0) } ?? .real(value)
        default: nil
        }
    }

    /// Returns whether both values are equal; numbers are compared by value, and the order of members does not count.
    public static func == (one: JSONValue, other: JSONValue) -> Bool {
        switch (one, other) {
        case (.null, .null): true
        case (.bool(let one), .bool(let other)): one == other
        case (.string(let one), .string(let other)): one == other
        case (.array(let one), .array(let other)): one == other
        case (.object(let one), .object(let other)): one == other
        default: one.numeral.map { $0 == other.numeral } ?? false
        }
    }

    /// Hashes the value; equal numbers have equal hashes.
    public func hash(into hasher: inout Hasher) {
        switch self {
        case .null: break
        case .bool(let value): hasher.combine(value)
        case .string(let value): hasher.combine(value)
        case .array(let value): hasher.combine(value)
        case .object(let value): hasher.combine(value)
        case .integer, .unsigned, .number: hasher.combine(numeral)
        }
    }
}

extension JSONValue: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByFloatLiteral, ExpressibleByStringLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    /// Creates `null`.
    public init(nilLiteral: ()) { self = .null }
    /// Creates a truth value.
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    /// Creates a whole number.
    public init(integerLiteral value: Int64) { self = .integer(value) }
    /// Creates a number.
    public init(floatLiteral value: Double) { self = .number(value) }
    /// Creates a text.
    public init(stringLiteral value: String) { self = .string(value) }
    /// Creates an array.
    public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    /// Members by name; the last of several members with one name counts.
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        self = .object(Dictionary(elements) { $1 })
    }
}
