// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Reads values from the header or the body of a D-Bus message, or from an array in one of them
/// (D-Bus Specification, "Marshaling (Wire Format)").
///
/// Positions count from the start of the header or body, because the alignment of values depends on them.
struct DBusReader {
    /// The maximum nesting of containers: the specification allows 64, with variants.
    private static let maximumDepth = 64

    private let bytes: ArraySlice<UInt8>
    private let isBigEndian: Bool
    private var position = 0
    private var end: Int

    init(_ bytes: ArraySlice<UInt8>, isBigEndian: Bool) {
        self.bytes = bytes
        self.isBigEndian = isBigEndian
        end = bytes.count
    }

    var isAtEnd: Bool { position == end }

    /// The bytes that are not read yet.
    var rest: ArraySlice<UInt8> { bytes[(bytes.startIndex + position)..<(bytes.startIndex + end)] }

    /// Takes the next bytes.
    private mutating func take(_ count: Int) throws(DBusMessage.Flaw) -> ArraySlice<UInt8> {
        guard count <= end - position else { throw .malformed }
        defer { position += count }
        return rest.prefix(count)
    }

    /// Takes the padding before a value, which must be zero.
    mutating func align(_ alignment: Int) throws(DBusMessage.Flaw) {
        let padding = (alignment - position % alignment) % alignment
        guard try take(padding).allSatisfy({ $0 == 0 }) else { throw .malformed }
    }

    // MARK: Values

    mutating func byte() throws(DBusMessage.Flaw) -> UInt8 {
        guard let byte = try take(1).first else { throw .malformed }
        return byte
    }

    mutating func number() throws(DBusMessage.Flaw) -> UInt32 {
        try align(4)
        let bytes = try take(4)
        let number = bytes.reduce(0) { $0 << 8 | UInt32($1) }
        return isBigEndian ? number : number.byteSwapped
    }

    /// Takes a length, which is at most the size of a message.
    private mutating func length() throws(DBusMessage.Flaw) -> Int {
        let length = try number()
        guard length <= DBusMessage.maximumSize else { throw .malformed }
        return Int(length)
    }

    /// Takes a string or the path of an object.
    mutating func string() throws(DBusMessage.Flaw) -> String {
        try text(length())
    }

    mutating func signature() throws(DBusMessage.Flaw) -> String {
        try text(Int(byte()))
    }

    private mutating func text(_ count: Int) throws(DBusMessage.Flaw) -> String {
        let bytes = try take(count)
        guard try byte() == 0, !bytes.contains(0), let text = String(validating: bytes, as: UTF8.self) else {
            throw .malformed
        }
        return text
    }

    /// Takes an array and returns a reader of its elements, which have an alignment.
    mutating func array(_ alignment: Int) throws(DBusMessage.Flaw) -> DBusReader {
        let length = try length()
        try align(alignment)
        var elements = self
        _ = try take(length)
        elements.end = position
        return elements
    }

    /// Takes a variant and returns its number; nil for a variant of another type.
    mutating func variantNumber() throws(DBusMessage.Flaw) -> UInt32? {
        var ahead = self
        if try ahead.signature() == "u" {
            self = ahead
            return try number()
        }
        try skip("v")
        return nil
    }

    // MARK: Skipping

    /// Takes one value of a type.
    mutating func skip(_ signature: String) throws(DBusMessage.Flaw) {
        try skipOne(Array(signature.utf8)[...], depth: 0)
    }

    private mutating func skipOne(
        _ signature: ArraySlice<UInt8>, depth: Int, isElement: Bool = false
    ) throws(DBusMessage.Flaw) {
        var signature = signature
        try skipNext(of: &signature, depth: depth, isElement: isElement)
        guard signature.isEmpty else { throw .malformed }
    }

    /// Takes a value of the first type of a signature, and removes the type.
    private mutating func skipNext(
        of signature: inout ArraySlice<UInt8>, depth: Int, isElement: Bool = false
    ) throws(DBusMessage.Flaw) {
        let type = try Self.nextType(of: &signature, depth: depth, isElement: isElement)
        guard let code = type.first else { throw .malformed }
        switch code {
        case UInt8(ascii: "b"):
            guard try number() <= 1 else { throw .malformed }
        case UInt8(ascii: "s"), UInt8(ascii: "o"): _ = try string()
        case UInt8(ascii: "g"): _ = try self.signature()
        case UInt8(ascii: "v"): try skipOne(Array(self.signature().utf8)[...], depth: depth + 1)
        case UInt8(ascii: "a"):
            let element = type.dropFirst()
            var elements = try array(Self.alignment(of: element.first))
            while !elements.isAtEnd { try elements.skipOne(element, depth: depth + 1, isElement: true) }
        case UInt8(ascii: "("), UInt8(ascii: "{"):
            try align(8)
            var members = type.dropFirst().dropLast()
            while !members.isEmpty { try skipNext(of: &members, depth: depth + 1) }
        default:
            let size = Self.alignment(of: code)
            try align(size)
            _ = try take(size)
        }
    }

    /// Returns the alignment of the values of a type, which is the size of a value if the type is a number.
    private static func alignment(of code: UInt8?) -> Int {
        switch code {
        case UInt8(ascii: "y"), UInt8(ascii: "g"), UInt8(ascii: "v"): 1
        case UInt8(ascii: "n"), UInt8(ascii: "q"): 2
        case UInt8(ascii: "x"), UInt8(ascii: "t"), UInt8(ascii: "d"), UInt8(ascii: "("), UInt8(ascii: "{"): 8
        default: 4
        }
    }

    /// Removes the first type of a signature and returns it; only the element of an array may be a dictionary entry.
    private static func nextType(
        of signature: inout ArraySlice<UInt8>, depth: Int, isElement: Bool = false
    ) throws(DBusMessage.Flaw) -> ArraySlice<UInt8> {
        let whole = signature
        guard depth <= maximumDepth, let code = signature.popFirst() else { throw .malformed }
        switch code {
        case UInt8(ascii: "a"): _ = try nextType(of: &signature, depth: depth + 1, isElement: true)
        case UInt8(ascii: "("):
            repeat { _ = try nextType(of: &signature, depth: depth + 1) } while signature.first != UInt8(ascii: ")")
            signature.removeFirst()
        case UInt8(ascii: "{"):
            guard isElement, let key = signature.popFirst(), isNumberOrText(key) else { throw .malformed }
            _ = try nextType(of: &signature, depth: depth + 1)
            guard signature.popFirst() == UInt8(ascii: "}") else { throw .malformed }
        default:
            guard isNumberOrText(code) || code == UInt8(ascii: "v") else { throw .malformed }
        }
        return whole[..<signature.startIndex]
    }

    /// Whether a type is neither a container nor a variant.
    private static func isNumberOrText(_ code: UInt8) -> Bool { "ybnqiuxtdhsog".utf8.contains(code) }
}
