// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension RedirectPolicy: Codable {
    enum CodingKeys: CodingKey, CaseIterable {
        case policy, max, allowingDowngrade, sensitiveFields
    }

    /// Decodes an object.
    ///
    /// `policy` is "follow", "never" or "sameOrigin", `max` a number (20 when missing), `allowingDowngrade` a Boolean
    /// that applies to "follow" (false when missing), and `sensitiveFields` an array of names (empty when missing).
    /// - Throws: `DecodingError` for another policy or a negative number.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        let name = try container.decode(String.self, forKey: .policy)
        guard let known = Self.encodable.first(where: { $0.name == name }) else {
            throw DecodingError.dataCorruptedError(
                forKey: .policy, in: container,
                debugDescription: "“\(name)” is not a known policy; use follow, never or sameOrigin.")
        }
        let maximum = try container.decodeIfPresent(Int.self, forKey: .max) ?? Self.defaultMaximum
        guard maximum >= 0 else {
            throw DecodingError.dataCorruptedError(
                forKey: .max, in: container, debugDescription: "It must not be negative.")
        }
        let allowsDowngrade = try container.decodeIfPresent(Bool.self, forKey: .allowingDowngrade) ?? false
        self.init(known.rule, maximum: maximum, allowsDowngrade: known.rule == .follow && allowsDowngrade)
        sensitiveFields = try container.decodeIfPresent([HeaderName].self, forKey: .sensitiveFields) ?? []
    }

    /// Encodes an object that `init(from:)` decodes.
    /// - Throws: `EncodingError.invalidValue` for a custom policy, and the errors of the encoder.
    public func encode(to encoder: any Encoder) throws {
        guard let known = Self.encodable.first(where: { $0.rule == rule }) else {
            throw EncodingError.invalidValue(
                self,
                EncodingError.Context(
                    codingPath: encoder.codingPath,
                    debugDescription: "A custom redirect policy is a closure, which cannot be encoded."))
        }
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(known.name, forKey: .policy)
        if rule != .none { try container.encode(maximum, forKey: .max) }
        if allowsDowngrade { try container.encode(true, forKey: .allowingDowngrade) }
        if !sensitiveFields.isEmpty { try container.encode(sensitiveFields, forKey: .sensitiveFields) }
    }

    private static let encodable: [(name: String, rule: Rule)] = [
        ("follow", .follow), ("never", .none), ("sameOrigin", .sameOrigin),
    ]
}
