// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
// HTTP is the vocabulary every other room speaks: methods, statuses, fields, sizes and targets as plain values, with
// the grammar checks of RFC 9110 and RFC 3986 beside them. Everything here is pure, and every room may use it.

/// Header fields (RFC 9110 §5): ordered, multi-valued, with names compared regardless of case.
///
/// A collection of ``Field`` in the order in which they stand on the wire. Two values are equal when they have equal
/// fields in the same order. Descriptions never show sensitive values (see ``HeaderName/isSensitive``).
///
/// ```swift
/// var fields: HeaderFields = ["Accept": "text/html", "X-Trace": "7"]
/// fields[.accept] = "application/json"     // replaces every value
/// fields.append(.accept, "text/plain")     // adds one
/// print(fields[.accept] ?? "")             // application/json, text/plain
/// ```
public struct HeaderFields: Sendable, Hashable {
    /// One line: a name and its value.
    public struct Field: Sendable, Hashable, Codable {
        /// The name, with its spelling.
        public var name: HeaderName
        /// The value, unchecked; see ``HeaderFields/isValidValue(_:)``.
        public var value: String

        /// Takes both unchanged.
        public init(name: HeaderName, value: String) {
            self.name = name
            self.value = value
        }
    }

    private var storage: [Field]

    /// No fields.
    public init() {
        storage = []
    }

    /// The fields of a sequence, in its order; the same name may stand in it more than once.
    public init(_ fields: some Sequence<Field>) {
        storage = Array(fields)
    }

    /// Whether `value` may stand in a field: no CR, LF, NUL or other control character but HTAB (RFC 9110 §5.5).
    ///
    /// White space at either end is allowed here and trimmed when the field is sent; text outside ASCII is allowed and
    /// sent as UTF-8.
    public static func isValidValue(_ value: String) -> Bool {
        let bytes = value.utf8.span
        for index in bytes.indices where bytes[index].isControl && bytes[index] != 0x09 { return false }
        return true
    }

    /// All values of the name joined by ", " (RFC 9110 §5.3), or nil when there is none; setting replaces all of them
    /// by one, in the place of the first, and nil removes them.
    ///
    /// `Set-Cookie` cannot be joined (RFC 9110 §5.3) and gives its first value; use ``values(for:)`` to have all.
    /// Complexity: O(*n*) in the number of fields.
    public subscript(name: HeaderName) -> String? {
        get {
            guard let first = storage.firstIndex(where: { $0.name == name }) else { return nil }
            var result = storage[first].value
            guard name != .setCookie else { return result }
            for field in storage[(first + 1)...] where field.name == name {
                result += ", "
                result += field.value
            }
            return result
        }
        set {
            guard let newValue else { return remove(name) }
            guard let first = storage.firstIndex(where: { $0.name == name }) else { return append(name, newValue) }
            storage[first] = Field(name: name, value: newValue)
            let rest = storage[(first + 1)...].filter { $0.name != name }
            storage.replaceSubrange((first + 1)..., with: rest)
        }
    }

    /// Every value of the name on its own, in order; empty when there is none.
    public func values(for name: HeaderName) -> [String] {
        storage.compactMap { $0.name == name ? $0.value : nil }
    }

    /// Whether there is a field of this name.
    public func contains(_ name: HeaderName) -> Bool {
        storage.contains { $0.name == name }
    }

    /// Adds a field at the end, beside others of the same name.
    public mutating func append(_ name: HeaderName, _ value: String) {
        storage.append(Field(name: name, value: value))
    }

    /// Removes every field of the name.
    public mutating func remove(_ name: HeaderName) {
        storage.removeAll { $0.name == name }
    }

    /// Takes over all fields of `other`: its names lose the values they have here, and names only here stay.
    public mutating func merge(_ other: HeaderFields) {
        guard !other.isEmpty else { return }
        let replaced = Set(other.storage.map(\.name))
        storage.removeAll { replaced.contains($0.name) }
        storage += other.storage
    }

    /// A copy into which `other` is merged; `other` wins for each of its names.
    public func merging(_ other: HeaderFields) -> HeaderFields {
        var result = self
        result.merge(other)
        return result
    }

    /// A copy that may be shown: values of sensitive fields are "<redacted>", and URLs in `Location`,
    /// `Content-Location` and `Referer` lose their user-info and query values.
    public func redacted() -> HeaderFields {
        HeaderFields(storage.map(\.redacted))
    }
}

extension HeaderFields: RandomAccessCollection {
    /// 0.
    public var startIndex: Int { 0 }

    /// The number of fields.
    public var endIndex: Int { storage.count }

    /// The field at a position in wire order.
    /// - Precondition: `position` is in `0..<count`.
    public subscript(position: Int) -> Field { storage[position] }
}

extension HeaderFields: ExpressibleByDictionaryLiteral {
    /// The pairs of the literal in their order; a repeated name gives that many fields.
    public init(dictionaryLiteral elements: (HeaderName, String)...) {
        storage = elements.map { Field(name: $0.0, value: $0.1) }
    }
}

extension HeaderFields: Codable {
    /// Decodes an array of objects with `name` and `value`.
    /// - Throws: `DecodingError` when it is something else.
    public init(from decoder: any Decoder) throws {
        storage = try decoder.singleValueContainer().decode([Field].self)
    }

    /// Encodes every field, sensitive ones too, as an array of objects with `name` and `value`.
    /// - Throws: What the encoder throws.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(storage)
    }
}

extension HeaderFields: CustomStringConvertible {
    /// One line per field, redacted, with control characters escaped.
    public var description: String {
        storage.map(\.description).joined(separator: "\n")
    }
}

extension HeaderFields.Field: CustomStringConvertible {
    /// "Name: value", redacted, with control characters escaped.
    public var description: String {
        "\(name): \(redacted.value)".escapingControls
    }

    /// This field as it may be shown.
    var redacted: HeaderFields.Field {
        if name.isHidden { return HeaderFields.Field(name: name, value: redaction) }
        return name.carriesURL ? HeaderFields.Field(name: name, value: redactedURL(value)) : self
    }
}
