// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

@Suite("Serializers with formats", .timeLimit(.minutes(5)))
struct FormatSerializerTests {
    private typealias User = ReadingScene.User

    private func read<T: Decodable & Sendable>(
        _ body: String, as type: T.Type = T.self, by format: (any ResponseFormat)? = nil, _ status: Status = .ok
    ) async throws -> T {
        try await Serializers.Formatted<T>(format).output(from: ReadingScene.response(body, "application/json", status))
    }

    @Test func valuesAreDecoded() async throws {
        #expect(try await read(#"{"name":"Ann"}"#, as: User.self) == User(name: "Ann"))
        #expect(try await read(#" [1, 2] "#) == [1, 2])
        #expect(try await read(#"{"a":[1,null]}"#) == ["a": [1, nil]] as JSONValue)
    }

    @Test("RS-14: optionals are nil for empty bodies and null", arguments: ["", " ", "\n\t\r ", "null", " null\n"])
    func optionalsAreNilForEmptyBodies(body: String) async throws {
        #expect(try await read(body, as: User?.self) == nil)
        #expect(try await read(body, as: User??.self) == User??.none)
        #expect(try await read(body, as: Bool?.self) == nil)
        #expect(try await read(body, as: JSONValue?.self) == JSONValue?.none)
        #expect(try await read(body, as: User?.self, .noContent) == nil)
    }

    @Test func optionalsDecodeNonEmptyBodies() async throws {
        #expect(try await read(#"{"name":"Ann"}"#, as: User?.self) == User(name: "Ann"))
        #expect(try await read("[null,1]", as: [Int?]?.self) == [nil, 1])
        await #expect(throws: NetworkError.self) { try await read("nul", as: User?.self) }
        await #expect(throws: NetworkError.self) { try await read(#"{"name":null}"#, as: User?.self) }
        await #expect(throws: NetworkError.self) { try await read("null", as: User.self) }
    }

    @Test func dataIsTheRawBody() async throws {
        #expect(try await read(#""aGVsbG8=""#, as: Data.self) == Data(#""aGVsbG8=""#.utf8))
        #expect(try await read("", as: Data.self) == Data())
        #expect(try await read("", as: Data?.self) == nil)
        #expect(try await read(" ", as: Data?.self) == Data(" ".utf8))
        #expect(try await read("null", as: Data?.self) == Data("null".utf8))
        #expect(
            Serializers.Formatted<Data>().accepts == [.any]
                && Serializers.Formatted<Data?>(Shouting()).accepts == [.any])
    }

    @Test func customFormatsDefineNull() async throws {
        #expect(try await read("!hey", as: String.self, by: Shouting()) == "hey")
        #expect(try await read("!hey", as: String?.self, by: Shouting()) == "hey")
        #expect(try await read("~", as: String?.self, by: Shouting()) == nil)
        #expect(try await read("", as: String?.self, by: Shouting()) == nil)
        await #expect(throws: NetworkError.self) { try await read("~", as: String.self, by: Shouting()) }
        // White space and JSON's null may be values in other formats.
        for body in [" ", "null"] {
            let error = await #expect(throws: NetworkError.self) {
                try await read(body, as: String?.self, by: Shouting())
            }
            #expect(error?.cause is Shouting.Silence)
        }
    }

    @Test func clientsFormatIsUsedUnlessOneIsGiven() async throws {
        let unbound = Serializers.Formatted<String>()
        #expect(unbound.accepts == JSON().accepts)
        let bound = unbound.bound(to: Shouting())
        #expect(bound.accepts == ["text/x-shouting"])
        #expect(try await bound.output(from: ReadingScene.response("!hey")) == "hey")
        let own = Serializers.Formatted<String>(JSON()).bound(to: Shouting())
        #expect(own.accepts == JSON().accepts)
        #expect(try await own.output(from: ReadingScene.response("\"hey\"")) == "hey")
    }

    @Test func leadingDotSyntaxSelectsTheFormat() async throws {
        func read<S: ResponseSerializer>(_ body: Data, using serializer: S) async throws -> S.Output {
            try await serializer.bound(to: Shouting()).output(from: ReadingScene.response(body))
        }
        let snake = JSON { $1.keyDecodingStrategy = .convertFromSnakeCase }
        let user = Data(#"{"na_me":"Ann"}"#.utf8)
        struct Row: Decodable, Sendable, Equatable {
            var naMe: String
        }
        #expect(try await read(user, using: .json([String: String].self)) == ["na_me": "Ann"])
        #expect(try await read(user, using: .json(Row.self, snake)) == Row(naMe: "Ann"))
        #expect(try await read(try PropertyList().encode([1]), using: .plist([Int].self)) == [1])
    }

    @Test("RS-03: errors of the transfer are not wrapped")
    func transferErrorsAreNotWrapped() async throws {
        let response = ReadingScene.response("{}")
        _ = try await response.collect()
        let error = await #expect(throws: NetworkError.self) {
            try await Serializers.Formatted<User>().output(from: response)
        }
        #expect(error?.kind == .invalidRequest)
    }

    @Test("RS-15, C-07: errors decode their bodies")
    func errorBodiesAreDecoded() {
        func error(_ body: String) -> NetworkError {
            NetworkError(
                .unacceptableStatus, phase: .validating, "x", response: ReadingScene.head(nil), body: Array(body.utf8))
        }
        #expect(error(#"{"name":"Ann"}"#).decode(User.self) == User(name: "Ann"))
        #expect(error("!hey").decode(String.self, by: Shouting()) == "hey")
        #expect(error("<p>").decode(User.self) == nil && error("").decode(JSONValue.self) == nil)
        #expect(NetworkError(.timedOut, phase: .waiting, "x", body: [0x31]).decode(Int.self) == nil)
    }
}
