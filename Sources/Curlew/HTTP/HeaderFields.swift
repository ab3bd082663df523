// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
// HTTP has the types that every other folder uses: methods, statuses, fields, sizes and targets as plain values, and
// the grammar checks of RFC 9110 and RFC 3986. Everything here is pure, and every folder may use it.

/// Header fields (RFC 9110 §5): ordered, multi-valued, with names compared regardless of case.
///
/// A collection of ``Field`` in the order in which the fields are sent. Two values are equal when they have equal
/// fields in the same order. Descriptions never show sensitive values (see ``HeaderName/isSensitive``).
///
/// ```swift
/// var fields: HeaderFields = ["Accept": "text/html", "X-Trace": "7"]
/// fields[.accept] = "application/json"     // replaces every value
/// fields.append(.accept, "text/plain")     // adds one
/// print(fields[.accept] ?? "")             // application/json, text/plain
/// ```
public struct HeaderFields: Sendable, Hashable {
    /// One field line: a name and its value.
    public struct Field: Sendable, Hashable, Codable {
        /// The name, in its original spelling.
        public var name: HeaderName
        /// The value, unchecked; see ``HeaderFields/isValidValue(_:)``.
        public var value: String

        /// Creates a field from an unchanged name and value.
        public init(name: HeaderName, value: String) {
            self.name = name
            self.value = value
        }
    }

    private var storage: [Field]

    /// Creates an empty collection.
    public init() {
        storage = []
    }

    /// Creates a collection from the fields of a sequence, in its order; names may repeat.
    public init(_ fields: some Sequence<Field>) {
        storage = Array(fields)
    }

    /// Whether `value` is allowed in a field: it has no CR, LF, NUL or other control character but HTAB (RFC 9110
    /// §5.5).
    ///
    /// White space at either end is allowed here and trimmed when the field is sent; text outside ASCII is allowed and
    /// sent as UTF-8.
    public static func isValidValue(_ value: String) -> Bool {
        let bytes = value.utf8.span
        for index in bytes.indices where bytes[index].isControl && bytes[index] != 0x09 { return false }
        return true
    }

    /// All values of the name joined by ", " (RFC 9110 §5.3); nil without such a field.
    ///
    /// Setting a value replaces all fields of the name with one field at the position of the first. Setting nil removes
    /// all fields of the name. Values of `Set-Cookie` cannot be joined (RFC 9110 §5.3): the getter returns the first
    /// value, and ``values(for:)`` returns all. Complexity: O(*n*) in the number of fields.
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

    /// Returns each value of the name separately, in order; empty without such a field.
    public func values(for name: HeaderName) -> [String] {
        storage.compactMap { $0.name == name ? $0.value : nil }
    }

    /// Whether there is a field of this name.
    public func contains(_ name: HeaderName) -> Bool {
        storage.contains { $0.name == name }
    }

    /// Adds a field at the end and keeps other fields of the same name.
    public mutating func append(_ name: HeaderName, _ value: String) {
        storage.append(Field(name: name, value: value))
    }

    /// Removes every field of the name.
    public mutating func remove(_ name: HeaderName) {
        storage.removeAll { $0.name == name }
    }

    /// Adds all fields of `other` at the end and removes the previous fields of the same names; other fields stay.
    public mutating func merge(_ other: HeaderFields) {
        guard !other.isEmpty else { return }
        let replaced = Set(other.storage.map(\.name))
        storage.removeAll { replaced.contains($0.name) }
        storage += other.storage
    }

    /// Returns a copy into which `other` is merged; `other` wins for each of its names.
    public func merging(_ other: HeaderFields) -> HeaderFields {
        var result = self
        result.merge(other)
        return result
    }

    /// Returns a copy that is safe to show: values of sensitive fields are "<redacted>", and URLs in `Location`,
    /// `Content-Location` and `Referer` lose their user-info and query values.
    public func redacted() -> HeaderFields {
        HeaderFields(storage.map(\.redacted))
    }
}

extension HeaderFields: RandomAccessCollection {
    /// The position of the first field, which is always 0.
    public var startIndex: Int { 0 }

    /// The number of fields.
    public var endIndex: Int { storage.count }

    /// The field at a position, in the order of sending.
    /// - Precondition: `position` is in `0..<count`.
    public subscript(position: Int) -> Field { storage[position] }
}

extension HeaderFields: ExpressibleByDictionaryLiteral {
    /// Creates fields from the pairs of a literal in their order; a repeated name makes several fields.
    public init(dictionaryLiteral elements: (HeaderName, String)...) {
        storage = elements.map { Field(name: $0.0, value: $0.1) }
    }
}

extension HeaderFields: Codable {
    /// Decodes an array of objects with `name` and `value`.
    /// - Throws: `DecodingError` for another value.
    public init(from decoder: any Decoder) throws {
        storage = try decoder.singleValueContainer().decode([Field].self)
    }

    /// Encodes every field, sensitive ones too, as an array of objects with `name` and `value`.
    /// - Throws: Any error of the encoder.
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

    /// This field, safe to show.
    var redacted: HeaderFields.Field {
        if name.isHidden { return HeaderFields.Field(name: name, value: redaction) }
        return name.carriesURL ? HeaderFields.Field(name: name, value: redactedURL(value)) : self
    }
}
