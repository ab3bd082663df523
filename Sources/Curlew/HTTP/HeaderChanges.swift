// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Changes that a client, an endpoint or a call makes to inherited header fields: a value sets a field, nil removes it.
///
/// ```swift
/// let changes: HeaderChanges = ["X-Trace": 7, .accept: "image/png", .acceptLanguage: nil]
/// ```
///
/// Names are compared regardless of case. A name that a literal repeats is sent once for each of its values.
public struct HeaderChanges: Sendable, Hashable {
    /// The fields to set, in their order.
    public private(set) var fields: HeaderFields
    /// The names of the fields to remove.
    public private(set) var removed: [HeaderName] = []

    /// Creates changes that set these fields.
    public init(_ fields: HeaderFields = [:]) { self.fields = fields }

    /// Whether there are no changes, so that all fields are inherited.
    public var isEmpty: Bool { fields.isEmpty && removed.isEmpty }

    /// The values that are set for a field, joined by ", "; nil when the field is removed or inherited.
    ///
    /// Setting a value replaces all values that are set here. Setting nil removes the field, even an inherited one.
    public subscript(name: HeaderName) -> String? {
        get { fields[name] }
        set {
            removed.removeAll { $0 == name }
            fields[name] = newValue
            if newValue == nil { removed.append(name) }
        }
    }

    /// Sets a field to one value, which replaces all values that are set here.
    ///
    /// - Parameters:
    ///   - name: The field's name.
    ///   - value: The field's value.
    public mutating func set(_ name: HeaderName, _ value: some HeaderValue) { self[name] = value.fieldValue }

    /// Adds a value to the values of a field that are set here.
    ///
    /// - Parameters:
    ///   - name: The field's name.
    ///   - value: The value to add.
    public mutating func append(_ name: HeaderName, _ value: some HeaderValue) {
        removed.removeAll { $0 == name }
        fields.append(name, value.fieldValue)
    }

    /// Reverts the changes to a field, so that it is inherited again.
    public mutating func inherit(_ name: HeaderName) {
        removed.removeAll { $0 == name }
        fields.remove(name)
    }

    /// Returns these changes merged with `other`.
    ///
    /// - Parameter other: The changes that win for the names in both.
    public func merging(_ other: HeaderChanges) -> HeaderChanges {
        if other.isEmpty { return self }
        if isEmpty { return other }
        var result = self
        for name in other.removed { result[name] = nil }
        result.removed.removeAll { other.fields.contains($0) }
        result.fields.merge(other.fields)
        return result
    }

    /// Returns these changes without the fields that hold credentials.
    ///
    /// - Parameter others: The names of further fields that hold credentials.
    func withoutSensitiveFields(and others: [HeaderName] = []) -> HeaderChanges {
        var result = self
        result.fields = HeaderFields(fields.filter { !$0.name.isSensitive && !others.contains($0.name) })
        return result
    }
}

extension HeaderChanges: ExpressibleByDictionaryLiteral {
    /// Creates changes from the pairs of a literal in their order; nil removes a field.
    public init(dictionaryLiteral elements: (HeaderName, (any HeaderValue)?)...) {
        fields = [:]
        for (name, value) in elements {
            if let value {
                fields.append(name, value.fieldValue)
            } else {
                removed.append(name)
            }
        }
        removed.removeAll { fields.contains($0) }
    }
}

extension HeaderChanges: CustomStringConvertible {
    /// One line per change, redacted, with control characters escaped.
    public var description: String {
        (fields.map(\.description) + removed.map { "\($0.rawValue.escapingControls): (left out)" })
            .joined(separator: "\n")
    }
}

extension HeaderChanges: Codable {
    private enum CodingKeys: CodingKey { case fields, removed }

    /// Decodes an object with the optional members `fields` and `removed`.
    /// - Throws: `DecodingError` for another value.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        fields = try container.decodeIfPresent(HeaderFields.self, forKey: .fields) ?? [:]
        removed = try container.decodeIfPresent([HeaderName].self, forKey: .removed) ?? []
    }

    /// Encodes the changes, without fields whose values are credentials (``HeaderName/isSensitive``).
    /// - Throws: Any error of the encoder.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(withoutSensitiveFields().fields, forKey: .fields)
        try container.encode(removed, forKey: .removed)
    }
}

/// A type that can be the value of a header field, such as a text, a number, a media type or credentials.
public protocol HeaderValue: Sendable {
    /// The value as it is sent, unchecked; see ``HeaderFields/isValidValue(_:)``.
    var fieldValue: String { get }
}

extension String: HeaderValue {
    /// The text itself.
    public var fieldValue: String { self }
}

extension Int: HeaderValue {
    /// The number in decimal digits.
    public var fieldValue: String { "\(self)" }
}

extension MediaType: HeaderValue {
    /// The media type with its parameters.
    public var fieldValue: String { description }
}
