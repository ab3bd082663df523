// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// The options of a decoder, prepared for fast access.
final class DecodingPlan: Sendable {
    enum Keys: Sendable {
        case unchanged
        case snakeCase
        case custom(@Sendable ([any CodingKey]) -> any CodingKey)

        var isSnake: Bool { if case .snakeCase = self { true } else { false } }

        /// Returns the text of the key for a name.
        ///
        /// - Parameter path: The path of the object, for a custom conversion.
        func converted(_ name: String, in path: [any CodingKey]) -> String {
            switch self {
            case .unchanged: name
            case .snakeCase: SnakeCase.camel(name)
            case .custom(let convert): convert(path + [JSONKey(stringValue: name)]).stringValue
            }
        }
    }

    let options: JSON.DecodingOptions
    let keys: Keys

    init(_ options: JSON.DecodingOptions) {
        self.options = options
        keys =
            switch options.keyDecodingStrategy {
            case .useDefaultKeys: .unchanged
            case .convertFromSnakeCase: .snakeCase
            case .custom(let convert): .custom(convert)
            @unknown default: .unchanged
            }
    }

    /// Returns whether these options allow direct decoding of a type.
    func isDirect(_ type: Any.Type) -> Bool {
        if case .deferredToData = options.dataDecodingStrategy { return type != Data.self }
        return true
    }

    /// Whether names are converted to keys.
    var converts: Bool { if case .unchanged = keys { false } else { true } }

    /// Returns the non-finite number for a string according to the strategy; nil for other strings.
    func nonConforming(_ text: String) -> Double? {
        guard case .convertFromString(let positive, let negative, let nan) = options.nonConformingFloatDecodingStrategy
        else { return nil }
        return text == positive ? .infinity : text == negative ? -.infinity : text == nan ? .nan : nil
    }

    func date(_ core: DecodingCore, _ place: Int) throws -> Date {
        switch options.dateDecodingStrategy {
        case .deferredToDate: return Date(timeIntervalSinceReferenceDate: try core.double(at: place))
        case .secondsSince1970: return Date(timeIntervalSince1970: try core.double(at: place))
        case .millisecondsSince1970: return Date(timeIntervalSince1970: try core.double(at: place) / 1000)
        case .iso8601:
            let text = try core.string(at: place)
            if let date = ISODate.date(text) { return date }
            throw core.corrupted(
                "Expected date string to be ISO8601-formatted.", "the string is not an ISO 8601 date", place)
        case .custom(let convert): return try convert(ValueDecoding(core: core, place: place))
        @unknown default: return try Date(from: ValueDecoding(core: core, place: place))
        }
    }

    func data(_ core: DecodingCore, _ place: Int) throws -> Data {
        switch options.dataDecodingStrategy {
        case .base64:
            if let data = Data(base64Encoded: try core.string(at: place)) { return data }
            throw core.corrupted("Encountered Data is not valid Base64.", "the string is not Base64", place)
        case .custom(let convert): return try convert(ValueDecoding(core: core, place: place))
        default: return try Data(from: ValueDecoding(core: core, place: place))
        }
    }
}
