// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// What a client, an endpoint or a call changes in the header fields it inherits: a value sets a field, nil leaves it out.
///
/// ```swift
/// let changes: HeaderChanges = ["X-Trace": 7, .accept: "image/png", .acceptLanguage: nil]
/// ```
///
/// Names are compared regardless of case. A name that stands in a literal more than once is sent that often.
public struct HeaderChanges: Sendable, Hashable {
    /// The fields to set, in their order.
    public private(set) var fields: HeaderFields
    /// The names that are left out.
    public private(set) var removed: [HeaderName] = []

    /// Changes that set these fields.
    public init(_ fields: HeaderFields = [:]) { self.fields = fields }

    /// Whether everything is inherited.
    public var isEmpty: Bool { fields.isEmpty && removed.isEmpty }

    /// What the field is set to, all values joined by ", "; nil when it is left out or inherited.
    ///
    /// Setting a value replaces all there are; nil leaves the field out, also when it would be inherited.
    public subscript(name: HeaderName) -> String? {
        get { fields[name] }
        set {
            removed.removeAll { $0 == name }
            fields[name] = newValue
            if newValue == nil { removed.append(name) }
        }
    }

    /// Sets a field to one value, in the place of all there are.
    ///
    /// - Parameters:
    ///   - name: The field's name.
    ///   - value: Its value.
    public mutating func set(_ name: HeaderName, _ value: some HeaderValue) { self[name] = value.fieldValue }

    /// Sets one more value of a field, beside those that are set here.
    ///
    /// - Parameters:
    ///   - name: The field's name.
    ///   - value: Its value.
    public mutating func append(_ name: HeaderName, _ value: some HeaderValue) {
        removed.removeAll { $0 == name }
        fields.append(name, value.fieldValue)
    }

    /// Takes the field as it is inherited.
    public mutating func inherit(_ name: HeaderName) {
        removed.removeAll { $0 == name }
        fields.remove(name)
    }

    /// These changes, with `other`'s in the place of those for the same names.
    ///
    /// - Parameter other: What wins.
    public func merging(_ other: HeaderChanges) -> HeaderChanges {
        if other.isEmpty { return self }
        if isEmpty { return other }
        var result = self
        for name in other.removed { result[name] = nil }
        result.removed.removeAll { other.fields.contains($0) }
        result.fields.merge(other.fields)
        return result
    }

    /// These changes without those of credentials.
    ///
    /// - Parameter others: Names that are credentials, too.
    func withoutSensitiveFields(and others: [HeaderName] = []) -> HeaderChanges {
        var result = self
        result.fields = HeaderFields(fields.filter { !$0.name.isSensitive && !others.contains($0.name) })
        return result
    }
}

extension HeaderChanges: ExpressibleByDictionaryLiteral {
    /// The pairs of the literal in their order; nil leaves a field out.
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

    /// Decodes what is there.
    /// - Throws: `DecodingError` when it is something else.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        fields = try container.decodeIfPresent(HeaderFields.self, forKey: .fields) ?? [:]
        removed = try container.decodeIfPresent([HeaderName].self, forKey: .removed) ?? []
    }

    /// Encodes the changes but for fields whose values are credentials (``HeaderName/isSensitive``), which are left out.
    /// - Throws: What the encoder throws.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(withoutSensitiveFields().fields, forKey: .fields)
        try container.encode(removed, forKey: .removed)
    }
}

/// Something that can be the value of a header field: a text, a number, a media type, credentials.
public protocol HeaderValue: Sendable {
    /// The value as it stands in the field, unchecked; see ``HeaderFields/isValidValue(_:)``.
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
