// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

@Suite("Encodable values in queries", .timeLimit(.minutes(5)))
struct QueryValueEncoderTests {
    private enum Key: String, CodingKey { case a, b, c }

    private struct Custom: Encodable, Sendable {
        let work: @Sendable (any Encoder) throws -> Void
        func encode(to encoder: any Encoder) throws { try work(encoder) }
    }

    /// Returns the unescaped query, which is shorter to write.
    private func plain(_ value: some Encodable) throws -> String {
        QueryReader.decoded(try Request.QueryEncoder(order: .asGiven).encode(value).utf8[...])
    }

    @Test func nilPropertiesAreOmitted() throws {
        struct Filter: Encodable { var text: String?, page: Int? }
        #expect(try Request.QueryEncoder(nils: .literal("null")).encode(Filter(page: 1)) == "page=1")
        #expect(try Request.QueryEncoder().encode(Filter?.none) == "")
        #expect(try Request.QueryEncoder().encode(Filter?.some(Filter(text: "x"))) == "text=x")
    }

    @Test func nestedContainersAreEncoded() throws {
        let value = Custom { encoder in
            #expect(encoder.codingPath.isEmpty && encoder.userInfo.isEmpty)
            var root = encoder.container(keyedBy: Key.self)
            #expect(root.codingPath.isEmpty)
            var inner = root.nestedContainer(keyedBy: Key.self, forKey: .a)
            try inner.encode(1, forKey: .b)
            #expect(inner.codingPath.map(\.stringValue) == ["a"])
            var list = root.nestedUnkeyedContainer(forKey: .b)
            try list.encode("x")
            var element = list.nestedContainer(keyedBy: Key.self)
            try element.encodeNil(forKey: .c)
            #expect(element.codingPath.map(\.intValue) == [nil, 1])
            var deeper = list.nestedUnkeyedContainer()
            try deeper.encodeNil()
            try deeper.encode(true)
            #expect(list.count == 3 && list.codingPath.count == 1)
            try root.encode(2, forKey: .c)
        }
        #expect(try plain(value) == "a[b]=1&b[]=x&b[][c]&b[][]&b[][]=1&c=2")
    }

    @Test func superEncodersUseTheirKeys() throws {
        let value = Custom { encoder in
            var root = encoder.container(keyedBy: Key.self)
            try 1.encode(to: root.superEncoder())
            try ["x": 2].encode(to: root.superEncoder(forKey: .a))
            var list = root.nestedUnkeyedContainer(forKey: .b)
            try "y".encode(to: list.superEncoder())
        }
        #expect(try plain(value) == "super=1&a[x]=2&b[]=y")
    }

    @Test func singleValueContainersAndWideIntegersAreEncoded() throws {
        let value = Custom { encoder in
            var container = encoder.singleValueContainer()
            #expect(container.codingPath.isEmpty)
            try container.encode(["i": Custom { try Int128.max.encode(to: $0) }])
        }
        #expect(try plain(value) == "i=\(Int128.max)")
        let unsigned = Custom { encoder in
            var container = encoder.singleValueContainer()
            try container.encode(UInt128.max)
        }
        #expect(try plain(["u": unsigned]) == "u=\(UInt128.max)")
        var signed = Custom { encoder in
            var container = encoder.container(keyedBy: Key.self)
            try container.encode(Int128.min, forKey: .a)
            try container.encode(UInt128.max, forKey: .b)
        }
        #expect(try plain(signed) == "a=\(Int128.min)&b=\(UInt128.max)")
        signed = Custom { encoder in
            var container = encoder.unkeyedContainer()
            try container.encode(Int128.min)
            try container.encode(UInt128.max)
        }
        #expect(try plain(["s": signed]) == "s[]=\(Int128.min)&s[]=\(UInt128.max)")
    }

    /// Two halves of a value may each request a container.
    @Test func severalKeyedContainersAreMerged() throws {
        let value = Custom { encoder in
            var first = encoder.container(keyedBy: Key.self)
            try first.encode(1, forKey: .a)
            var second = encoder.container(keyedBy: Key.self)
            try second.encode(2, forKey: .b)
            try first.encode(3, forKey: .a)
        }
        #expect(try plain(value) == "a=1&b=2&a=3")
    }

    @Test func valueWithoutContainerIsEmpty() throws {
        struct Nothing: Encodable { func encode(to encoder: any Encoder) {} }
        #expect(try plain(Nothing()) == "")
        #expect(try plain(["a": Nothing()]) == "")
        #expect(try Request.QueryEncoder(empties: .keyOnly).encode(["a": Nothing()]) == "a")
    }

    @Test func subclassAndSuperclassEncodeTheirProperties() throws {
        class Whole: Encodable { let a = 1 }
        final class Sub: Whole {
            override func encode(to encoder: any Encoder) throws {
                try super.encode(to: encoder)
                var container = encoder.container(keyedBy: Key.self)
                try container.encode("x", forKey: .b)
            }
        }
        #expect(try plain(Sub()) == "a=1&b=x")
    }

    // MARK: Refusals

    private static func refused(
        _ value: some Encodable, by encoder: Request.QueryEncoder = Request.QueryEncoder()
    ) throws -> EncodingError.Context {
        do throws(any Error) {
            let text = try encoder.encode(value)
            throw PeerFailure("written as “\(text)”")
        } catch let EncodingError.invalidValue(type, context) {
            #expect(type is Any.Type, "the error must not hold the value, which may be a secret")
            return context
        }
    }

    @Test("RQ-12: a root value without names is refused") func rootValueWithoutNamesIsRefused() throws {
        let refusals = [
            try Self.refused([1, 2]), try Self.refused(Set(["x"])), try Self.refused("text"), try Self.refused(1.5),
            try Self.refused(Date()), try Request.Query.encoding([1]).refusal(),
        ]
        for context in refusals {
            #expect(context.codingPath.isEmpty)
            #expect(context.debugDescription.hasPrefix("A query has names:"))
        }
    }

    @Test func encodingErrorHasTheCodingPath() throws {
        let keys = try Self.refused(["o": ["l": [[["x"]: 1]]]])
        #expect(keys.debugDescription == "The key of a dictionary must be one text or number.")
        #expect(keys.codingPath.map(\.stringValue) == ["o", "l", "0"])
        let joined = Request.QueryEncoder(arrays: .commaJoined)
        let commas = try Self.refused(["o": ["l": [[1], [2]]]], by: joined)
        #expect(commas.debugDescription == "Arrays that are joined by commas hold plain values only.")
        #expect(commas.codingPath.map(\.stringValue) == ["o", "l", "0"])
        #expect(try Self.refused(["l": [["a": 1]]], by: joined).codingPath.map(\.stringValue) == ["l", "0"])
    }

    @Test func valueWithTwoKindsOfContainersIsRefused() throws {
        let works: [@Sendable (any Encoder) throws -> Void] = [
            { _ = ($0.container(keyedBy: Key.self), $0.unkeyedContainer()) },
            { encoder in
                _ = encoder.unkeyedContainer()
                try 1.encode(to: encoder)
            },
            { encoder in
                try 1.encode(to: encoder)
                var container = encoder.singleValueContainer()
                try container.encodeNil()
            },
        ]
        for work in works {
            #expect(try Self.refused(Custom(work: work)).codingPath.isEmpty)
            let context = try Self.refused(["a": [Custom(work: work)]])
            #expect(context.debugDescription == "A value encoded itself in two ways at once.")
        }
    }

    @Test func depthIsLimited() throws {
        indirect enum Nest: Encodable {
            case end
            case more(Nest)
            func encode(to encoder: any Encoder) throws {
                guard case .more(let inner) = self else { return try 1.encode(to: encoder) }
                var container = encoder.container(keyedBy: Key.self)
                try container.encode(inner, forKey: .a)
            }
        }
        func nest(_ depth: Int) -> Nest { (0..<depth).reduce(.end) { inner, _ in .more(inner) } }
        #expect(try plain(nest(64)) == "a" + String(repeating: "[a]", count: 63) + "=1")
        let context = try Self.refused(nest(65))
        #expect(context.codingPath.count == 65)
        #expect(context.debugDescription == "More than 64 values are inside one another.")
    }

    /// Endless values, nested by a name or in a single value container.
    @Test func endlessValuesAreRefused() throws {
        struct Named: Encodable {
            func encode(to encoder: any Encoder) throws {
                var container = encoder.container(keyedBy: Key.self)
                try container.encode(Named(), forKey: .a)
            }
        }
        struct Bare: Encodable {
            func encode(to encoder: any Encoder) throws {
                var container = encoder.singleValueContainer()
                try container.encode(Bare())
            }
        }
        #expect(try Self.refused(Named()).codingPath.count == 65)
        #expect(try Self.refused(Bare()).codingPath.isEmpty)
    }

    @Test func errorsOfValuesArePropagated() throws {
        #expect(throws: PeerFailure.self) {
            try Request.QueryEncoder().encode(["a": Custom { _ in throw PeerFailure("no") }])
        }
    }
}

extension Request.Query {
    /// The error context of a query that cannot be encoded.
    fileprivate func refusal() throws -> EncodingError.Context {
        do throws(any Error) {
            let text = try text(Request.QueryEncoder())
            throw PeerFailure("written as “\(text)”")
        } catch let EncodingError.invalidValue(_, context) {
            return context
        }
    }
}
