// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

/// Unusual or invalid use of coders by `Codable` types.
@Suite("JSON: unusual use of coders")
struct JSONMisuseTests {
    private enum Key: String, CodingKey { case a, b, c }

    private struct KeepsDecoder: Decodable {
        let decoder: any Decoder

        init(from decoder: any Decoder) throws { self.decoder = decoder }
    }

    private struct KeepsContainer: Decodable {
        let container: KeyedDecodingContainer<Key>

        init(from decoder: any Decoder) throws { container = try decoder.container(keyedBy: Key.self) }
    }

    @Test func containersOfAStoredDecoderRetainTheText() throws {
        let json = JSON { _, _ in }
        for _ in 0..<20 {
            var kept: KeepsDecoder? = try json.decode(KeepsDecoder.self, from: Array(#"{"a":{"b":7}}"#.utf8))
            let container = try #require(kept).decoder.container(keyedBy: Key.self)
            kept = nil
            #expect(try json.decode([Int].self, from: Array("[1,2,3]".utf8)) == [1, 2, 3])
            let nested = try container.nestedContainer(keyedBy: Key.self, forKey: .a)
            #expect(try nested.decode(Int.self, forKey: .b) == 7)
        }
    }

    @Test func nestedContainersOfAStoredContainerRetainTheText() throws {
        let json = JSON { _, _ in }
        for _ in 0..<20 {
            var kept: KeepsContainer? = try json.decode(KeepsContainer.self, from: Array(#"{"a":{"b":7}}"#.utf8))
            let nested = try #require(kept).container.nestedContainer(keyedBy: Key.self, forKey: .a)
            kept = nil
            #expect(try json.decode([Int].self, from: Array("[1,2,3]".utf8)) == [1, 2, 3])
            #expect(try nested.decode(Int.self, forKey: .b) == 7)
        }
    }

    @Test func nestedEncodersReleaseTheWriter() throws {
        weak var writer: JSONWriter?
        struct Watching: Encodable {
            let seen: (JSONWriter?) -> Void

            func encode(to encoder: any Encoder) throws {
                var container = encoder.container(keyedBy: Key.self)
                var nested = container.nestedContainer(keyedBy: Key.self, forKey: .a)
                let inner = nested.superEncoder(forKey: .b)
                seen((inner as? ValueEncoding)?.writer)
            }
        }
        let value = Watching { writer = $0 }
        #expect(try JSON { _, _ in }.encode(value) == Data(#"{"a":{"b":{}}}"#.utf8))
        #expect(writer == nil)
    }

    @Test func failedSingleValueIsRemoved() throws {
        struct Either: Encodable {
            func encode(to encoder: any Encoder) throws {
                var container = encoder.singleValueContainer()
                do { try container.encode([1.0, .nan]) } catch { try container.encodeNil() }
            }
        }
        struct Silent: Encodable {
            func encode(to encoder: any Encoder) throws {
                var container = encoder.singleValueContainer()
                try? container.encode(["k": Double.nan])
            }
        }
        #expect(try JSON().encode([Either(), Either()]) == Data("[null,null]".utf8))
        #expect(try JSON().encode([Silent()]) == Data("[{}]".utf8))
    }

    @Test func encodingIntoTheParentDuringAMemberFails() throws {
        struct Inner: Encodable {
            let write: () throws -> Void

            func encode(to encoder: any Encoder) throws {
                try write()
                var container = encoder.singleValueContainer()
                try container.encode(1)
            }
        }
        final class Outer: Encodable {
            func encode(to encoder: any Encoder) throws {
                var container = encoder.container(keyedBy: Key.self)
                var same = container
                #expect(throws: EncodingError.self) {
                    try container.encode(Inner { try same.encode(5, forKey: .b) }, forKey: .a)
                }
                try container.encode(2, forKey: .c)
            }
        }
        #expect(try JSON().encode(Outer()) == Data(#"{"c":2}"#.utf8))
        let caught = JSONEncodingBehaviourTests.Sample { encoder in
            var container = encoder.container(keyedBy: Key.self)
            var same = container
            let inner = Inner { #expect(throws: EncodingError.self) { try same.encode(5, forKey: .b) } }
            try container.encode(inner, forKey: .a)
        }
        #expect(try JSON().encode(caught) == Data(#"{"a":1}"#.utf8))
    }

    @Test func customKeyStrategyAppliesToEveryObject() throws {
        struct Row: Decodable { var id: Int }
        let json = JSON { _, decoder in
            decoder.keyDecodingStrategy = .custom { path in
                let name = path.last?.stringValue
                return JSONKey(stringValue: name == "_id" ? "id" : name == "id" ? "identifier" : name ?? "")
            }
        }
        let text = Array(#"[{"id":1,"_id":2},{"id":1,"_id":2}]"#.utf8)
        for _ in 0..<2 { #expect(try json.decode([Row].self, from: text).map(\.id) == [2, 2]) }
    }

    @Test func snakeCasePropertyIsNotFoundAfterConversion() {
        struct Row: Decodable { var my_url: Int }
        let json = JSON { $1.keyDecodingStrategy = .convertFromSnakeCase }
        #expect(throws: DecodingError.self) { try json.decode(Row.self, from: Array(#"{"my_url":1}"#.utf8)) }
    }

    private struct Union: Decodable {
        let text: String

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if (try? container.decode(Int.self)) != nil { Issue.record("a string must not decode as an integer") }
            text = try container.decode(String.self)
        }
    }

    @Test func manyCaughtDecodingErrorsAreCheap() throws {
        let text = #"{"items":["# + (0..<10_000).map { "\"\($0)\"" }.joined(separator: ",") + "]}"
        #expect(try JSON().decode([String: [Union]].self, from: Array(text.utf8))["items"]?.count == 10_000)
    }

    private struct Place: Decodable {
        let index: Int?

        init(from decoder: any Decoder) throws { index = decoder.codingPath.last?.intValue }
    }

    /// Computing each path by a search from the first element would take minutes.
    @Test func codingPathsOfManyElementsAreCheap() throws {
        let text = "[" + String(repeating: "0,", count: 299_999) + "0]"
        let places = try JSON().decode([Place].self, from: Array(text.utf8))
        #expect(places.enumerated().allSatisfy { $0.offset == $0.element.index })
        #expect(places.count == 300_000)
    }

    @Test func manyMembersAreEncodedWithACustomKeyStrategy() throws {
        let json = JSON { encoder, _ in
            encoder.keyEncodingStrategy = .custom { path in JSONKey(stringValue: "x" + (path.last?.stringValue ?? "")) }
        }
        struct Many: Encodable {
            func encode(to encoder: any Encoder) throws {
                var container = encoder.container(keyedBy: JSONKey.self)
                for number in 0..<5000 { try container.encode(number, forKey: JSONKey(stringValue: "\(number)")) }
            }
        }
        let value = try JSONValue(parsing: json.encode(["a": Many()]))
        #expect(value["a"]?["x4999"]?.asInt == 4999 && value["a"]?.asObject?.count == 5000)
    }

    @Test func zeroWithLargeExponentDecodesAsDecimal() throws {
        #expect(try JSON().decode([Decimal].self, from: Array("[0e500,-0.0e-300]".utf8)) == [0, 0])
    }
}
