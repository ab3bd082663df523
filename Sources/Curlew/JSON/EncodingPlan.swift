// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// The options of an encoder, prepared for fast access.
final class EncodingPlan: Sendable {
    let options: JSON.EncodingOptions
    let escapesSlashes: Bool
    let isPretty: Bool
    let isSorted: Bool
    let hasCustomKeys: Bool

    init(_ options: JSON.EncodingOptions) {
        self.options = options
        escapesSlashes = !options.outputFormatting.contains(.withoutEscapingSlashes)
        isPretty = options.outputFormatting.contains(.prettyPrinted)
        isSorted = options.outputFormatting.contains(.sortedKeys)
        hasCustomKeys = if case .custom = options.keyEncodingStrategy { true } else { false }
    }

    /// Whether the complete text is rewritten at the end.
    var isRewritten: Bool { isPretty || isSorted }

    /// Returns whether these options allow direct encoding of a type.
    func isDirect(_ type: Any.Type) -> Bool {
        if case .deferredToData = options.dataEncodingStrategy { return type != Data.self }
        return true
    }

    /// Returns the name of a key in the text.
    func keys(_ name: String, _ path: [any CodingKey]) -> String {
        switch options.keyEncodingStrategy {
        case .useDefaultKeys: name
        case .convertToSnakeCase: SnakeCase.snake(name)
        case .custom(let convert): convert(path + [JSONKey(stringValue: name)]).stringValue
        @unknown default: name
        }
    }

    /// Returns the string for a non-finite number according to the strategy.
    func nonConforming(_ value: Double) -> String? {
        guard case .convertToString(let positive, let negative, let nan) = options.nonConformingFloatEncodingStrategy
        else { return nil }
        return value.isNaN ? nan : value > 0 ? positive : negative
    }

    func write(_ date: Date, _ writer: JSONWriter) throws {
        switch options.dateEncodingStrategy {
        case .deferredToDate: try writer.double(date.timeIntervalSinceReferenceDate)
        case .secondsSince1970: try writer.double(date.timeIntervalSince1970)
        case .millisecondsSince1970: try writer.double(1000 * date.timeIntervalSince1970)
        case .iso8601: writer.string(ISODate.text(date))
        case .custom(let convert): try writer.written { try convert(date, $0) }
        @unknown default: try writer.own(date)
        }
    }

    func write(_ data: Data, _ writer: JSONWriter) throws {
        switch options.dataEncodingStrategy {
        case .base64: writer.string(data.base64EncodedString())
        case .custom(let convert): try writer.written { try convert(data, $0) }
        default: try writer.own(data)
        }
    }
}
