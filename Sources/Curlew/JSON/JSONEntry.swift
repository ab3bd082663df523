// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// One value or one name in the index of a JSON text: its kind, its offset and its end.
///
/// The index of `{"a":[1]}` is: object, name, array, number. A name precedes its value. A container is
/// followed by its contents and stores the index of the entry after them, so that a reader can skip it.
struct JSONEntry {
    enum Kind: UInt64 {
        case null, no, yes
        /// A number without fraction and exponent.
        case integer
        /// Any other number.
        case real
        /// A string of ASCII characters without escapes.
        case ascii
        /// A string with other characters, without escapes.
        case unicode
        /// A string with escapes.
        case escaped
        case array, object
    }

    /// From the lowest bit: 4 bits of kind, 28 bits of length or of the entry after a container, 32 bits of offset.
    var bits: UInt64

    init(bits: UInt64) {
        self.bits = bits
    }

    /// - Parameter extent: The length in bytes or the index of the entry after a container, up to ``JSONLimits/count``.
    init(_ kind: Kind, offset: Int, extent: Int) {
        bits = kind.rawValue | UInt64(truncatingIfNeeded: extent) << 4 | UInt64(truncatingIfNeeded: offset) << 32
    }

    var code: UInt64 { bits & 15 }

    var kind: Kind { Kind(rawValue: code) ?? .null }

    /// The offset of the first byte; for a string, the byte after its quotation mark.
    var offset: Int { Int(truncatingIfNeeded: bits >> 32) }

    /// The length of a string or a number in bytes.
    var length: Int { Int(truncatingIfNeeded: bits >> 4) & JSONLimits.count }

    /// The index of the entry after the contents of a container.
    var next: Int { length }

    var isContainer: Bool { code >= Kind.array.rawValue }

    var isNull: Bool { code == Kind.null.rawValue }

    var isText: Bool { code >= Kind.ascii.rawValue && code <= Kind.escaped.rawValue }

    var isNumber: Bool { code == Kind.integer.rawValue || code == Kind.real.rawValue }
}

extension JSONEntry.Kind {
    /// The name of the kind in the error messages of Foundation's decoder.
    var noun: String {
        switch self {
        case .null: "null"
        case .no, .yes: "bool"
        case .integer, .real: "number"
        case .ascii, .unicode, .escaped: "a string"
        case .array: "an array"
        case .object: "a dictionary"
        }
    }
}
