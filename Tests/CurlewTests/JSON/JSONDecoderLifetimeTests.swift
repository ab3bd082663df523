// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

/// Decoders and containers that outlive the call of `decode`, nested calls, and concurrent calls.
@Suite("JSON: decoders that outlive decode", .timeLimit(.minutes(5)))
struct JSONDecoderLifetimeTests {
    enum Key: String, CodingKey, CaseIterable {
        case name, list, object, absent, number
    }

    /// Stores its container.
    struct KeepsKeyed: Decodable {
        let container: KeyedDecodingContainer<Key>

        init(from decoder: any Decoder) throws { container = try decoder.container(keyedBy: Key.self) }
    }

    /// Stores its container after decoding the first element.
    struct KeepsUnkeyed: Decodable {
        let first: Int
        let container: any UnkeyedDecodingContainer

        init(from decoder: any Decoder) throws {
            var container = try decoder.unkeyedContainer()
            first = try container.decode(Int.self)
            self.container = container
        }
    }

    /// Stores its decoder.
    struct KeepsDecoder: Decodable {
        let decoder: any Decoder

        init(from decoder: any Decoder) throws { self.decoder = decoder }
    }

    /// Stores decoders of absent members.
    struct KeepsAbsent: Decodable {
        let decoder: any Decoder
        let named: any Decoder

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: Key.self)
            self.decoder = try container.superDecoder()
            named = try container.superDecoder(forKey: .absent)
        }
    }

    struct Plain: Codable, Equatable {
        var name: String
        var list: [Int]
    }

    static let text = #"{"name":"n\u00e9","list":[1,[2,3],{"name":"x"}],"object":{"name":"y","number":1.5},"number":7}"#

    /// Decodes other texts, so that a stored container would return their values if it shared the decoder's buffers.
    private static func decodeOthers(_ json: JSON) throws {
        for number in 0..<10 {
            let plain = try json.decode(Plain.self, from: #"{"name":"other \#(number)","list":[\#(number),9,9]}"#.utf8)
            #expect(plain == Plain(name: "other \(number)", list: [number, 9, 9]))
            #expect(try json.decode([[Int]].self, from: "[[9],[9,9,9]]".utf8) == [[9], [9, 9, 9]])
            #expect(throws: DecodingError.self) { try json.decode(Plain.self, from: "[1".utf8) }
        }
    }

    private static func check(_ container: KeyedDecodingContainer<Key>) throws {
        #expect(container.codingPath.isEmpty && container.allKeys == [.name, .list, .object, .number])
        #expect(container.contains(.name) && !container.contains(.absent))
        #expect(try container.decode(String.self, forKey: .name) == "né")
        #expect(try container.decode(Int.self, forKey: .number) == 7)
        #expect(try container.decodeIfPresent(Int.self, forKey: .absent) == nil)
        let object = try container.nestedContainer(keyedBy: Key.self, forKey: .object)
        #expect(
            try object.decode(String.self, forKey: .name) == "y" && object.codingPath.map(\.stringValue) == ["object"])
        #expect(try object.decode(Double.self, forKey: .number) == 1.5)
        var list = try container.nestedUnkeyedContainer(forKey: .list)
        #expect(try list.decode(Int.self) == 1 && list.decode([Int].self) == [2, 3])
        #expect(try list.decode([String: String].self) == ["name": "x"] && list.isAtEnd)
        let error = #expect(throws: DecodingError.self) { try container.decode(Int.self, forKey: .name) }
        guard case .typeMismatch(_, let context)? = error else { throw try #require(error) }
        #expect(context.codingPath.map(\.stringValue) == ["name"])
    }

    @Test func storedKeyedContainersStayReadable() throws {
        for inner in [false, true] {
            var json: JSON? = JSON { _, _ in }
            let kept: KeyedDecodingContainer<Key>
            if inner {
                let list = try #require(json).decode([KeepsKeyed].self, from: "[\(Self.text),\(Self.text)]".utf8)
                // Containers of elements differ only in their paths.
                kept = try list[1].container.nestedContainer(keyedBy: Key.self, forKey: .object)
                try json.map(Self.decodeOthers)
                json = nil
                #expect(try kept.decode(String.self, forKey: .name) == "y")
                #expect(kept.codingPath.map(\.stringValue) == ["Index 1", "object"])
                #expect(try list[0].container.decode(String.self, forKey: .name) == "né")
            } else {
                kept = try #require(json).decode(KeepsKeyed.self, from: Self.text.utf8).container
                try Self.check(kept)
                try json.map(Self.decodeOthers)
                try Self.check(kept)
                json = nil
                try Self.check(kept)
            }
        }
    }

    @Test func storedUnkeyedContainersStayReadable() throws {
        var json: JSON? = JSON { _, _ in }
        let kept = try #require(json).decode(KeepsUnkeyed.self, from: #"[1,2,"é",[4,5],{"name":"x"},null]"#.utf8)
        for use in 0..<3 {
            if use == 1 { try json.map(Self.decodeOthers) }
            if use == 2 { json = nil }
            var container = kept.container
            #expect(kept.first == 1 && container.currentIndex == 1 && container.count == 6)
            #expect(try container.decode(Int.self) == 2 && container.decode(String.self) == "é")
            var nested = try container.nestedUnkeyedContainer()
            #expect(try nested.decode(Int.self) == 4 && nested.codingPath.map(\.intValue) == [3])
            let object = try container.nestedContainer(keyedBy: Key.self)
            #expect(try object.decode(String.self, forKey: .name) == "x")
            #expect(try container.decodeNil() && container.isAtEnd)
            #expect(throws: DecodingError.self) { try container.decode(Int.self) }
        }
    }

    @Test func storedDecodersStayReadable() throws {
        var json: JSON? = JSON { _, _ in }
        let kept = try #require(json).decode([String: KeepsDecoder].self, from: #"{"a":\#(Self.text),"b":[7]}"#.utf8)
        for use in 0..<3 {
            if use == 1 { try json.map(Self.decodeOthers) }
            if use == 2 { json = nil }
            let decoder = try #require(kept["a"]?.decoder)
            #expect(decoder.codingPath.map(\.stringValue) == ["a"])
            let value = try JSONValue(from: decoder)
            #expect(value["name"] == "né" && value["object"]?["number"] == 1.5)
            let container = try decoder.container(keyedBy: Key.self)
            #expect(try container.decode(String.self, forKey: .name) == "né")
            #expect(try kept["b"].map { try [Int](from: $0.decoder) } == [7])
            #expect(throws: DecodingError.self) { try decoder.unkeyedContainer() }
        }
    }

    @Test("Stored decoders of absent members")
    func storedDecodersOfAbsentMembersStayReadable() throws {
        var json: JSON? = JSON { _, _ in }
        let kept = try #require(json).decode([KeepsAbsent].self, from: #"[{},{"name":"x"}]"#.utf8)
        for use in 0..<3 {
            if use == 1 { try json.map(Self.decodeOthers) }
            if use == 2 { json = nil }
            #expect(try kept[1].decoder.singleValueContainer().decodeNil())
            #expect(kept[1].decoder.codingPath.map(\.stringValue) == ["Index 1", "super"])
            #expect(kept[0].named.codingPath.map(\.stringValue) == ["Index 0", "absent"])
            let error = #expect(throws: DecodingError.self) { try String(from: kept[1].named) }
            guard case .valueNotFound(_, let context)? = error else { throw try #require(error) }
            #expect(context.codingPath.map(\.stringValue) == ["Index 1", "absent"])
        }
    }

    @Test("Stored containers of a text in another encoding, and of a released array")
    func storedContainersOwnTheText() throws {
        let json = JSON { _, _ in }
        let wide = try #require(Self.text.data(using: .utf16LittleEndian))
        try Self.check(json.decode(KeepsKeyed.self, from: wide).container)
        var bytes: [UInt8]? = Array(Self.text.utf8)
        let kept = try json.decode(KeepsKeyed.self, from: try #require(bytes)).container
        // The bytes are overwritten in place: the container must have its own copy.
        for place in bytes?.indices ?? 0..<0 { bytes?[place] = 0x20 }
        bytes = nil
        try Self.decodeOthers(json)
        try Self.check(kept)
    }

    // MARK: Nested use of the same JSON format

    static let shared = JSON { encoder, _ in encoder.outputFormatting = .sortedKeys }

    /// A value that is encoded as JSON text in a string.
    struct Wrapped: Codable, Equatable {
        var inner: Plain

        init(_ inner: Plain) { self.inner = inner }

        init(from decoder: any Decoder) throws {
            let text = try String(from: decoder)
            inner = try JSONDecoderLifetimeTests.shared.decode(Plain.self, from: text.utf8)
        }

        func encode(to encoder: any Encoder) throws {
            try String(decoding: JSONDecoderLifetimeTests.shared.encode(inner), as: UTF8.self).encode(to: encoder)
        }
    }

    struct Pair: Codable, Equatable {
        var a: Wrapped
        var b: Wrapped
        var plain: Plain
    }

    /// Decodes itself recursively with the same format.
    struct Deep: Decodable {
        let levels: Int

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: Key.self)
            let number = try container.decode(Int.self, forKey: .number)
            let rest =
                number == 0
                ? 0
                : try JSONDecoderLifetimeTests.shared.decode(Deep.self, from: #"{"number":\#(number - 1)}"#.utf8).levels
            // The container must still belong to the outer text.
            levels = try container.decode(Int.self, forKey: .number) == number ? rest + 1 : -1000
        }
    }

    @Test func nestedUseOfTheSameFormatIsSafe() throws {
        let value = (0..<5).map { number in
            Pair(
                a: Wrapped(Plain(name: "a\(number)", list: [number])), b: Wrapped(Plain(name: "b", list: [])),
                plain: Plain(name: "p", list: [1, 2]))
        }
        for _ in 0..<3 {
            let data = try Self.shared.encode(value)
            #expect(try JSONDecoder().decode([Pair].self, from: data) == value)
            #expect(try Self.shared.decode([Pair].self, from: data) == value)
            #expect(try Self.shared.decode(Deep.self, from: #"{"number":40}"#.utf8).levels == 41)
        }
    }

    // MARK: Concurrency

    @Test func concurrentUseByManyTasksIsSafe() async throws {
        let json = JSON { encoder, _ in encoder.outputFormatting = .sortedKeys }
        try await withThrowingTaskGroup(of: Int.self) { group in
            for task in 0..<200 {
                group.addTask {
                    var count = 0
                    for round in 0..<20 {
                        let plain = Plain(name: "task \(task) é \(round)", list: Array(0...(task % 7)))
                        let data = try json.encode(["v": [plain, plain]])
                        if round % 5 == 0 { await Task.yield() }
                        if try json.decode([String: [Plain]].self, from: data) == ["v": [plain, plain]] { count += 1 }
                        let kept = try json.decode(KeepsKeyed.self, from: #"{"name":"\#(task)"}"#.utf8)
                        if try kept.container.decode(String.self, forKey: .name) != "\(task)" { count = -1000 }
                        if (try? json.decode(Plain.self, from: data)) != nil { count = -1000 }
                    }
                    return count
                }
            }
            var total = 0
            for try await count in group { total += count }
            #expect(total == 4000)
        }
    }
}
