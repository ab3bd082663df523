// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension Request.QueryEncoder: Codable {
    private enum CodingKeys: CodingKey {
        case arrays, nesting, bools, dates, data, nils, keys, spaces, order, empties
    }

    /// Decodes the styles; missing styles take their defaults.
    /// - Throws: `DecodingError` for an unknown style.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self.init()
        arrays = try container.decodeIfPresent(ArrayStyle.self, forKey: .arrays) ?? arrays
        nesting = try container.decodeIfPresent(NestingStyle.self, forKey: .nesting) ?? nesting
        bools = try container.decodeIfPresent(BoolStyle.self, forKey: .bools) ?? bools
        dates = try container.decodeIfPresent(DateStyle.self, forKey: .dates) ?? dates
        data = try container.decodeIfPresent(DataStyle.self, forKey: .data) ?? data
        nils = try container.decodeIfPresent(NilStyle.self, forKey: .nils) ?? nils
        keys = try container.decodeIfPresent(KeyStyle.self, forKey: .keys) ?? keys
        spaces = try container.decodeIfPresent(SpaceStyle.self, forKey: .spaces) ?? spaces
        order = try container.decodeIfPresent(OrderStyle.self, forKey: .order) ?? order
        empties = try container.decodeIfPresent(EmptyStyle.self, forKey: .empties) ?? empties
    }

    /// Encodes every style.
    /// - Throws: Any error of the encoder.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(arrays, forKey: .arrays)
        try container.encode(nesting, forKey: .nesting)
        try container.encode(bools, forKey: .bools)
        try container.encode(dates, forKey: .dates)
        try container.encode(data, forKey: .data)
        try container.encode(nils, forKey: .nils)
        try container.encode(keys, forKey: .keys)
        try container.encode(spaces, forKey: .spaces)
        try container.encode(order, forKey: .order)
        try container.encode(empties, forKey: .empties)
    }
}

extension Request.QueryEncoder.NilStyle: Codable {
    private enum CodingKeys: CodingKey {
        case style, text
    }

    private enum Name: String, Codable {
        case keyOnly, omit, empty, literal
    }

    /// Decodes an object: `style` is "keyOnly", "omit", "empty" or "literal", the last with its `text`.
    /// - Throws: `DecodingError` for another style and for a literal without text.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self =
            switch try container.decode(Name.self, forKey: .style) {
            case .keyOnly: .keyOnly
            case .omit: .omit
            case .empty: .empty
            case .literal: .literal(try container.decode(String.self, forKey: .text))
            }
    }

    /// Encodes an object that `init(from:)` reads.
    /// - Throws: Any error of the encoder.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        switch self {
        case .keyOnly: try container.encode(Name.keyOnly, forKey: .style)
        case .omit: try container.encode(Name.omit, forKey: .style)
        case .empty: try container.encode(Name.empty, forKey: .style)
        case .literal(let text):
            try container.encode(Name.literal, forKey: .style)
            try container.encode(text, forKey: .text)
        }
    }
}
