// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// JSON: compares our coder with Foundation's coder and with the grammar, both for validity and for values.
func examine(_ input: [UInt8]) {
    let isUnicode = input.prefix(4).contains(0) || input.prefix(2) == [0xFF, 0xFE] || input.prefix(2) == [0xFE, 0xFF]
    let value = outcome { try JSONValue(parsing: input) }
    if !isUnicode {
        let text = input.starts(with: [0xEF, 0xBB, 0xBF]) ? Array(input.dropFirst(3)) : input
        demand(JSONGrammar.accepts(text) == (value != .failure(.syntax)), "the grammar disagrees")
    }
    if case .value(let value) = value {
        demand(
            outcome { try JSONValue(parsing: JSON().encode(value)) } == .value(value), "encoding changes the value")
        demand(
            outcome { try JSONValue(parsing: pretty.encode(value)) } == .value(value),
            "encoding on many lines changes the value")
        demand(
            outcome { try JSONValue(parsing: Array(value.description.utf8)) } == .value(value),
            "the description has another value")
    }
    compare(Row.self, input)
    compare([Row].self, input)
    compare([String: [Double]].self, input)
    compare([Int: String?].self, input)
    compare([[Int]].self, input)
    compare([Date].self, input, isISO: true)
    compare([Decimal].self, input)
}

private let pretty = JSON { encoder, _ in encoder.outputFormatting = [.prettyPrinted, .sortedKeys] }

private struct Row: Codable, Equatable {
    var a: Int?
    var b: Double?
    var c: String?
    var d: [Int8]?
    var e: [Row]?
    var f: [String: Bool]?
    var g: Float?
    var firstName: UInt64?
    var myURL: URL?
    var data: Data?
}

private enum Outcome<T: Equatable>: Equatable {
    enum Failure { case syntax, value }

    case value(T)
    case failure(Failure)
}

private func outcome<T>(_ decode: () throws -> T) -> Outcome<T> {
    do {
        return .value(try decode())
    } catch DecodingError.dataCorrupted(let context) {
        let fault = context.underlyingError as? JSON.Fault
        return .failure(fault?.kind == .syntax || fault?.kind == .limit ? .syntax : .value)
    } catch {
        return .failure(.value)
    }
}

/// Decodes a value with both decoders, with default and with other options.
private func compare<T: Codable & Equatable>(_ type: T.Type, _ input: [UInt8], isISO: Bool = false) {
    for isSnake in [false, true] {
        let json = JSON { encoder, decoder in
            decoder.keyDecodingStrategy = isSnake ? .convertFromSnakeCase : .useDefaultKeys
            if isISO { (encoder.dateEncodingStrategy, decoder.dateDecodingStrategy) = (.iso8601, .iso8601) }
        }
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = isSnake ? .convertFromSnakeCase : .useDefaultKeys
        if isISO { decoder.dateDecodingStrategy = .iso8601 }
        let ours = outcome { try json.decode(type, from: input) }
        switch ours {
        // Ignore Foundation's result for texts that are not JSON.
        case .failure(.syntax): continue
        case .failure(.value): demand(!isReadByFoundation(decoder, type, input), "Foundation reads it")
        case .value(let value):
            let others = outcome { try decoder.decode(type, from: Data(input)) }
            if others == ours || isNotANumberTo(value) { continue }
            demand(isKnownDifference(input, isISO), "Foundation reads another value")
        }
    }
}

/// Returns whether a value does not equal itself, such as NaN.
private func isNotANumberTo<T: Equatable>(_ value: T) -> Bool { value != value }

private func isReadByFoundation<T: Codable & Equatable>(_ decoder: JSONDecoder, _ type: T.Type, _ input: [UInt8])
    -> Bool
{
    guard (try? decoder.decode(type, from: Data(input))) != nil else { return false }
    return !isKnownDifference(input, type == [Date].self)
}

/// Returns whether a difference is in the table of the guide: tiny numbers, and dates with text after the zone.
private func isKnownDifference(_ input: [UInt8], _ isISO: Bool) -> Bool {
    let text = String(decoding: input, as: UTF8.self)
    return isISO || text.contains(/[eE]-[0-9]{3,}/) || text.contains(/[0-9]{19,}/) || text.contains(/[0-9]{3,}[eE]/)
}
