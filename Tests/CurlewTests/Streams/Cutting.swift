// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

/// The outcome of a stream: its elements as text, and the error that ended it, if any.
struct Outcome: Equatable {
    var elements: [String] = []
    var failure: String?
}

extension StreamSerializer {
    /// Decodes chunks.
    func outcome(of chunks: [[UInt8]], _ fields: HeaderFields = [:]) -> Outcome {
        var outcome = Outcome()
        var elements: [Element] = []
        do {
            var state = try begin(ResponseHead(status: .ok, fields: fields))
            for chunk in chunks { try decode(ByteChunk(chunk), &state, into: &elements) }
            try decode(nil, &state, into: &elements)
        } catch {
            outcome.failure = (error as? NetworkError).map { "\($0.kind): \($0.message)" } ?? "\(error)"
        }
        outcome.elements = elements.map { String(reflecting: $0) }
        return outcome
    }

    /// Decodes bytes, and checks that the outcome does not depend on the split: in two at each offset, in single bytes,
    /// and at random.
    func outcome(
        ofAnyCutting bytes: [UInt8], _ fields: HeaderFields = [:], seed: UInt64 = 1,
        _ location: SourceLocation = #_sourceLocation
    ) -> Outcome {
        let whole = outcome(of: [bytes], fields)
        if whole.failure == nil {
            #expect(
                (try? given(by: bytes, fields)) == whole.elements, "returned elements", sourceLocation: location)
        }
        #expect(outcome(of: bytes.map { [$0] }, fields) == whole, "byte by byte", sourceLocation: location)
        if bytes.count <= 400 {
            for cut in 0...bytes.count {
                let halves = [Array(bytes[..<cut]), Array(bytes[cut...])]
                #expect(outcome(of: halves, fields) == whole, "cut at \(cut)", sourceLocation: location)
            }
        }
        var chance = SeededChance(seed)
        for _ in 0..<8 {
            let chunks = bytes.cut(by: &chance)
            #expect(outcome(of: chunks, fields) == whole, "cut to \(chunks.map(\.count))", sourceLocation: location)
        }
        return whole
    }

    func outcome(
        ofAnyCutting text: String, _ fields: HeaderFields = [:], _ location: SourceLocation = #_sourceLocation
    ) -> Outcome {
        outcome(ofAnyCutting: Array(text.utf8), fields, seed: 1, location)
    }
}

extension StreamSerializer {
    /// Decodes bytes with the method that returns the elements.
    private func given(by bytes: [UInt8], _ fields: HeaderFields) throws -> [String] {
        var state = try begin(ResponseHead(status: .ok, fields: fields))
        let elements = try decode(ByteChunk(bytes), &state) + decode(nil, &state)
        return elements.map { String(reflecting: $0) }
    }
}

extension [UInt8] {
    /// Splits the bytes into pieces of random sizes, some of them empty.
    func cut(by chance: inout SeededChance) -> [[UInt8]] {
        var pieces: [[UInt8]] = []
        var rest = self[...]
        let longest = Int.random(in: 1...40, using: &chance)
        while !rest.isEmpty {
            let piece = rest.prefix(Int.random(in: 0...longest, using: &chance))
            pieces.append(Array(piece))
            rest = rest[piece.endIndex...]
        }
        return pieces
    }

    /// Joins random pieces.
    static func random(of pieces: [[UInt8]], upTo count: Int, by chance: inout SeededChance) -> [UInt8] {
        (0..<Int.random(in: 0...count, using: &chance)).flatMap { _ in pieces.randomElement(using: &chance) ?? [] }
    }
}
