// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

/// Stored encoders and containers, caught errors, and values that request two different containers.
@Suite("JSON: unusual use of encoders")
struct JSONEncoderLifetimeTests {
    enum Key: String, CodingKey {
        case a, b, c
    }

    struct Failure: Error {}

    /// The encoder and the containers that a value has stored.
    final class Kept {
        var encoder: (any Encoder)?
        var keyed: KeyedEncodingContainer<Key>?
        var unkeyed: (any UnkeyedEncodingContainer)?
        var single: (any SingleValueEncodingContainer)?
    }

    /// A value that a closure encodes.
    struct Sample: Encodable {
        let body: (any Encoder) throws -> Void

        init(_ body: @escaping (any Encoder) throws -> Void) { self.body = body }

        func encode(to encoder: any Encoder) throws { try body(encoder) }
    }

    private static func text(_ value: some Encodable, _ json: JSON = JSON()) throws -> String {
        String(decoding: try json.encode(value), as: UTF8.self)
    }

    private static func foundation(_ value: some Encodable) throws -> String {
        String(decoding: try JSONEncoder().encode(value), as: UTF8.self)
    }

    @Test func storedContainersAreClosedAfterEncoding() throws {
        let json = JSON { encoder, _ in encoder.outputFormatting = .sortedKeys }
        for isInner in [false, true] {
            let kept = Kept()
            let keyed = Sample { encoder in
                var container = encoder.container(keyedBy: Key.self)
                try container.encode(1, forKey: .a)
                kept.keyed = container
            }
            let unkeyed = Sample { encoder in
                var container = encoder.unkeyedContainer()
                try container.encode(1)
                kept.unkeyed = container
            }
            #expect(try Self.text(isInner ? [keyed] : [], json) == (isInner ? #"[{"a":1}]"# : "[]"))
            if !isInner { #expect(try Self.text(keyed, json) == #"{"a":1}"#) }
            #expect(try Self.text(["x": unkeyed], json) == #"{"x":[1]}"#)
            for _ in 0..<3 {
                #expect(throws: EncodingError.self) { try kept.keyed?.encode(2, forKey: .b) }
                #expect(throws: EncodingError.self) { try kept.keyed?.encode(["x": [2]], forKey: .b) }
                #expect(throws: EncodingError.self) { try kept.keyed?.encodeNil(forKey: .b) }
                #expect(throws: EncodingError.self) { try kept.unkeyed?.encode("x") }
                #expect(throws: EncodingError.self) { try kept.unkeyed?.encode(contentsOf: [1, 2]) }
                // Methods that cannot throw have no effect.
                var nested = kept.keyed?.nestedContainer(keyedBy: Key.self, forKey: .b)
                _ = try? nested?.encode(3, forKey: .c)
                var list = kept.unkeyed?.nestedUnkeyedContainer()
                _ = try? list?.encode(3)
                _ = kept.keyed?.superEncoder().codingPath
                _ = kept.unkeyed?.superEncoder().codingPath
                _ = kept.unkeyed?.count
                #expect(try Self.text(["k": [1: "v"]], json) == #"{"k":{"1":"v"}}"#)
            }
        }
    }

    @Test("Stored encoders do not change later encodings")
    func storedEncodersDoNotChangeLaterEncodings() throws {
        let json = JSON { encoder, _ in encoder.outputFormatting = .sortedKeys }
        let kept = Kept()
        let value = Sample { encoder in
            kept.encoder = encoder
            var container = encoder.singleValueContainer()
            kept.single = container
            try container.encode("x")
        }
        for isInner in [false, true] {
            #expect(isInner ? try Self.text([value], json) == #"["x"]"# : try Self.text(value, json) == #""x""#)
            for _ in 0..<3 {
                if isInner { #expect(throws: EncodingError.self) { try kept.single?.encode("late") } }
                _ = try? kept.single?.encode(["late": 1])
                var keyed = kept.encoder?.container(keyedBy: Key.self)
                _ = try? keyed?.encode("late", forKey: .a)
                var unkeyed = kept.encoder?.unkeyedContainer()
                _ = try? unkeyed?.encode("late")
                _ = kept.encoder?.codingPath
                #expect(try Self.text(["k": ["v"]], json) == #"{"k":["v"]}"#)
            }
        }
    }

    @Test("Nested containers and super encoders that are stored until after the encoding")
    func storedNestedContainersDoNotChangeLaterEncodings() throws {
        let json = JSON { encoder, _ in encoder.outputFormatting = .sortedKeys }
        let (kept, late) = (Kept(), Kept())
        let value = Sample { encoder in
            var container = encoder.container(keyedBy: Key.self)
            kept.keyed = container.nestedContainer(keyedBy: Key.self, forKey: .a)
            kept.unkeyed = container.nestedUnkeyedContainer(forKey: .b)
            kept.encoder = container.superEncoder(forKey: .c)
            try kept.keyed?.encode(1, forKey: .a)
        }
        for _ in 0..<3 {
            #expect(try Self.text(value, json) == #"{"a":{"a":1},"b":[],"c":{}}"#)
            _ = try? kept.keyed?.encode("late", forKey: .b)
            _ = try? kept.unkeyed?.encode("late")
            late.single = kept.encoder?.singleValueContainer()
            _ = try? late.single?.encode("late")
            _ = kept.keyed?.codingPath
            _ = kept.unkeyed?.codingPath
            #expect(try Self.text(["k": "v"], json) == #"{"k":"v"}"#)
        }
    }

    /// A value that encodes something into every kind of container and then throws.
    static var failing: Sample { Sample(fail) }

    private static func fail(_ encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode("trace", forKey: .a)
        var nested = container.nestedContainer(keyedBy: Key.self, forKey: .b)
        try nested.encode("trace", forKey: .a)
        try container.encode([["trace": 1]], forKey: .c)
        throw Failure()
    }

    @Test func failedValuesAreRemovedWhenTheErrorIsCaught() throws {
        let deep = Sample { encoder in
            var list = encoder.unkeyedContainer()
            try list.encode("trace")
            try list.encode(Self.failing)
        }
        for failing in [Self.failing, deep, Sample { _ in throw Failure() }] {
            let member = Sample { encoder in
                var container = encoder.container(keyedBy: Key.self)
                #expect(throws: Failure.self) { try container.encode(failing, forKey: .a) }
                try container.encode(1, forKey: .b)
                #expect(throws: Failure.self) { try container.encode(failing, forKey: .c) }
                #expect(container.codingPath.isEmpty)
            }
            #expect(try Self.text(member) == #"{"b":1}"#)
            let element = Sample { encoder in
                var container = encoder.unkeyedContainer()
                #expect(throws: Failure.self) { try container.encode(failing) }
                #expect(container.count == 0)
                try container.encode(1)
                #expect(throws: Failure.self) { try container.encode([[failing]]) }
                #expect(throws: Failure.self) { try container.encode(["x": failing]) }
                try container.encode(2)
                #expect(container.count == 2)
            }
            // Foundation's encoder may trap here, so it is not called.
            #expect(try Self.text([element]) == "[[1,2]]")
        }
    }

    @Test("A fallback value after a failed one")
    func fallbackValueReplacesAFailedOne() throws {
        let member = Sample { encoder in
            var container = encoder.container(keyedBy: Key.self)
            for key in [Key.a, .b] {
                do {
                    try container.encode(Self.failing, forKey: key)
                } catch {
                    try container.encode("instead", forKey: key)
                }
            }
        }
        let json = JSON { encoder, _ in encoder.outputFormatting = .sortedKeys }
        #expect(try Self.text(member, json) == #"{"a":"instead","b":"instead"}"#)
        // Foundation's encoder keeps a part of the failed value.
        let single = Sample { encoder in
            var container = encoder.singleValueContainer()
            do {
                try container.encode(Self.failing)
            } catch {
                try container.encode("instead")
            }
        }
        #expect(try Self.text([single], json) == #"["instead"]"#)
        #expect(try Self.text(single, json) == #""instead""#)
        let nan = Sample { encoder in
            var container = encoder.singleValueContainer()
            do {
                try container.encode(Double.nan)
            } catch {
                try container.encodeNil()
            }
        }
        #expect(try Self.text([nan]) == "[null]" && Self.foundation([nan]) == "[null]")
    }

    @Test func encoderIsUsableAfterAnError() throws {
        let json = JSON { _, _ in }
        for _ in 0..<5 {
            #expect(throws: Failure.self) { try json.encode([["x": Self.failing]]) }
            #expect(throws: EncodingError.self) { try json.encode(["x": [Double.nan]]) }
            #expect(try Self.text([["x": 1]], json) == #"[{"x":1}]"#)
        }
    }

    @Test("The container of a failed value is closed")
    func containersOfFailedValuesAreClosed() throws {
        let kept = Kept()
        let value = Sample { encoder in
            var container = encoder.container(keyedBy: Key.self)
            let failing = Sample { inner in
                kept.keyed = inner.container(keyedBy: Key.self)
                throw Failure()
            }
            #expect(throws: Failure.self) { try container.encode(failing, forKey: .a) }
            let next = Sample { inner in
                var container = inner.container(keyedBy: Key.self)
                try container.encode(1, forKey: .a)
                #expect(throws: EncodingError.self) { try kept.keyed?.encode("late", forKey: .b) }
            }
            try container.encode(next, forKey: .b)
        }
        #expect(try Self.text(value) == #"{"b":{"a":1}}"#)
    }

    @Test("A value that requests two different containers fails")
    func twoDifferentContainersFail() throws {
        let bodies: [(any Encoder) throws -> Void] = [
            { encoder in
                var keyed = encoder.container(keyedBy: Key.self)
                try keyed.encode(1, forKey: .a)
                var unkeyed = encoder.unkeyedContainer()
                try unkeyed.encode(1)
            },
            { encoder in
                _ = encoder.unkeyedContainer()
                _ = encoder.container(keyedBy: Key.self)
            },
            { encoder in
                _ = encoder.container(keyedBy: Key.self)
                var single = encoder.singleValueContainer()
                try single.encode(1)
            },
            { encoder in
                var single = encoder.singleValueContainer()
                try single.encode(1)
                try single.encode(2)
            },
            { encoder in
                var single = encoder.singleValueContainer()
                try single.encode(1)
                var keyed = encoder.container(keyedBy: Key.self)
                try keyed.encode(1, forKey: .a)
            },
            { encoder in
                try [1].encode(to: encoder)
                try ["a": 1].encode(to: encoder)
            },
        ]
        let json = JSON { _, _ in }
        for (number, body) in bodies.enumerated() {
            let value = Sample(body)
            #expect(throws: EncodingError.self, "\(number)") { try json.encode(value) }
            #expect(throws: EncodingError.self, "\(number)") { try json.encode([value]) }
            #expect(throws: EncodingError.self, "\(number)") { try json.encode(["x": [1: value]]) }
            #expect(try Self.text([1], json) == "[1]")
        }
    }

    @Test("Requesting the same container twice returns one container")
    func sameContainerRequestedTwiceIsShared() throws {
        enum Other: CodingKey { case x, b }
        let keyed = Sample { encoder in
            var one = encoder.container(keyedBy: Key.self)
            var two = encoder.container(keyedBy: Other.self)
            try one.encode(1, forKey: .a)
            try two.encode(2, forKey: .x)
            try one.encode(3, forKey: .b)
            try two.encode(4, forKey: .b)
        }
        let json = JSON { encoder, _ in encoder.outputFormatting = .sortedKeys }
        #expect(try Self.text(keyed, json) == #"{"a":1,"b":4,"x":2}"#)
        let unkeyed = Sample { encoder in
            var one = encoder.unkeyedContainer()
            try one.encode(1)
            var two = encoder.unkeyedContainer()
            try two.encode(2)
            try one.encode(3)
            #expect(one.count == 3 && two.count == 3)
        }
        #expect(try Self.text([unkeyed]) == "[[1,2,3]]" && Self.foundation([unkeyed]) == "[[1,2,3]]")
    }
}
