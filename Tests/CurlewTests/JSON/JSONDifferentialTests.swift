// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

/// Random options for both coders.
struct JSONCaseOptions {
    var isISO: Bool
    var isSnake: Bool
    var isPretty: Bool
    var keepsSlashes: Bool

    init(_ chance: inout SeededChance) {
        (isISO, isSnake) = (chance.isOne(in: 2), chance.isOne(in: 3))
        (isPretty, keepsSlashes) = (chance.isOne(in: 4), chance.isOne(in: 2))
    }

    var formatting: JSONEncoder.OutputFormatting {
        var formatting: JSONEncoder.OutputFormatting = .sortedKeys
        if isPretty { formatting.insert(.prettyPrinted) }
        if keepsSlashes { formatting.insert(.withoutEscapingSlashes) }
        return formatting
    }

    var ours: JSON {
        JSON { encoder, decoder in
            encoder.outputFormatting = formatting
            if isISO { (encoder.dateEncodingStrategy, decoder.dateDecodingStrategy) = (.iso8601, .iso8601) }
            if isSnake {
                (encoder.keyEncodingStrategy, decoder.keyDecodingStrategy) = (
                    .convertToSnakeCase, .convertFromSnakeCase
                )
            }
        }
    }

    var encoder: JSONEncoder {
        let encoder = JSONEncoder()
        encoder.outputFormatting = formatting
        if isISO { encoder.dateEncodingStrategy = .iso8601 }
        if isSnake { encoder.keyEncodingStrategy = .convertToSnakeCase }
        return encoder
    }

    var decoder: JSONDecoder {
        let decoder = JSONDecoder()
        if isISO { decoder.dateDecodingStrategy = .iso8601 }
        if isSnake { decoder.keyDecodingStrategy = .convertFromSnakeCase }
        return decoder
    }
}

@Suite("JSON: differential test against Foundation", .timeLimit(.minutes(20)))
struct JSONDifferentialTests {
    /// The outcome of a decoder, for comparison.
    enum Outcome<T: Equatable>: Equatable {
        case value(T)
        /// The case of a `DecodingError` and its path.
        case failure(String, path: [String])
    }

    private static func outcome<T: Equatable>(_ decode: () throws -> T) -> Outcome<T> {
        func path(_ context: DecodingError.Context) -> [String] {
            context.codingPath.map { $0.stringValue }
        }
        do {
            return .value(try decode())
        } catch DecodingError.typeMismatch(_, let context) {
            return .failure("typeMismatch", path: path(context))
        } catch DecodingError.valueNotFound(_, let context) {
            return .failure("valueNotFound", path: path(context))
        } catch DecodingError.keyNotFound(let key, let context) {
            return .failure("keyNotFound \(key.stringValue)", path: path(context))
        } catch DecodingError.dataCorrupted(let context) {
            return .failure("dataCorrupted", path: path(context))
        } catch {
            return .failure("\(type(of: error))", path: [])
        }
    }

    private static func check<T: JSONSample>(_ type: T.Type, _ chance: inout SeededChance) throws {
        let value = T.random(&chance)
        let options = JSONCaseOptions(&chance)
        let (ours, decoder) = (options.ours, options.decoder)
        let data = try options.encoder.encode(value)
        let written = try ours.encode(value)
        #expect(
            written == data,
            "\(type): \(String(decoding: written, as: UTF8.self)) for \(String(decoding: data, as: UTF8.self))")
        compare(type, data, ours, decoder)
        for _ in 0..<2 {
            let text = JSONMutation.mutated(Array(data), &chance)
            compare(type, Data(text), ours, decoder)
        }
    }

    private static func compare<T: JSONSample>(_ type: T.Type, _ data: Data, _ ours: JSON, _ decoder: JSONDecoder) {
        let one = outcome { try ours.decode(type, from: data) }
        let other = outcome { try decoder.decode(type, from: data) }
        if one == other || isKnown(one, other, data) { return }
        Issue.record("\(type): \(String(decoding: data, as: UTF8.self)): ours \(one), Foundation's \(other)")
    }

    /// Whether a difference is listed in the table of the guide.
    private static func isKnown<T>(_ ours: Outcome<T>, _ others: Outcome<T>, _ data: Data) -> Bool {
        // Invalid JSON is rejected for every type.
        if !JSONGrammar.accepts(Array(data)) { return ours == .failure("dataCorrupted", path: []) }
        // In a `JSONValue`, whole numbers beyond 2⁵³ with an exponent are a `Double`; for Foundation they are integers.
        if T.self == JSONValue.self || T.self == SampleOrder.self,
            String(decoding: data, as: UTF8.self).contains(/\d[eE][-+]?\d/)
        {
            if case .value = ours, case .value = others { return true }
        }
        // Numbers below the smallest `Double` are zero, and are no integers.
        if String(decoding: data, as: UTF8.self).contains(/[eE]-\d{3,}/) { return true }
        // Integers of 128 bits are also exact with a fraction or an exponent.
        if T.self == [UInt128].self || T.self == [Int128].self, case .failure("dataCorrupted", []) = others {
            return true
        }
        guard case .failure(let kind, let path) = ours, case .failure(let otherKind, let otherPath) = others else {
            return false
        }
        // Errors of numbers out of range and of dates have a path.
        if kind == "dataCorrupted", otherKind == kind, path.starts(with: otherPath) { return true }
        // A null in an array of `Bool` throws `valueNotFound`.
        if kind == "valueNotFound", otherKind == "typeMismatch", path == otherPath { return true }
        // Foundation decodes the members of a dictionary in any order, so another member may fail first.
        return T.self == SampleOrder.self || "\(T.self)".contains("Dictionary")
    }

    @Test(arguments: 0..<24 as Range<UInt64>)
    func codersAgreeWithFoundation(seed: UInt64) throws {
        var chance = SeededChance(seed)
        for _ in 0..<60 {
            try Self.check(SampleOrder.self, &chance)
            try Self.check(SampleScalars.self, &chance)
            try Self.check(SampleManual.self, &chance)
            try Self.check(SampleTree.self, &chance)
            try Self.check([SampleOrder.Line].self, &chance)
            try Self.check([SampleShape].self, &chance)
            try Self.check([SampleColor: [SampleColor?]].self, &chance)
            try Self.check([String: SampleOrder.Line].self, &chance)
            try Self.check([Int: [String: Double]].self, &chance)
            try Self.check([UInt8: Bool].self, &chance)
            try Self.check(JSONValue.self, &chance)
            try Self.check([Int].self, &chance)
            try Self.check([Double].self, &chance)
            try Self.check([String?].self, &chance)
            try Self.check([Decimal].self, &chance)
            try Self.check([Float].self, &chance)
            try Self.check([Int128].self, &chance)
            try Self.check([UInt128].self, &chance)
            try Self.check([UInt64].self, &chance)
            try Self.check([Int8].self, &chance)
            try Self.check([Date].self, &chance)
            try Self.check([Data].self, &chance)
            try Self.check([URL].self, &chance)
            try Self.check([UUID].self, &chance)
        }
    }
}
