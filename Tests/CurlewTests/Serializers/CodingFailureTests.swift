// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

@Suite("RS-16: messages of decoding and encoding errors", .timeLimit(.minutes(5)))
struct CodingFailureTests {
    private typealias User = ReadingScene.User

    private static func failure<T: Decodable & Sendable>(
        _ body: String, as type: T.Type = T.self, by format: any ResponseFormat = JSON()
    ) async throws -> NetworkError {
        try #require(
            await #expect(throws: NetworkError.self) {
                try await Serializers.Formatted<T>(format).output(from: ReadingScene.response(body))
            })
    }

    static let users: [(String, String)] = [
        (#"{"users":[{"name":"s3cret"},{"name":null}]}"#, " at users[1].name (column 37): expected String, found null"),
        (#"{"users":[{"name":17}]}"#, " at users[0].name (column 19): expected String, found number"),
        (
            #"{"users":[{"name":"s3cret","age":"s3cret"}]}"#,
            " at users[0].age (column 34): expected Int, found a string"
        ),
        (#"{"users":[{"name":true}]}"#, " at users[0].name (column 19): expected String, found bool"),
        (#"{"users":[{"name":["s3cret"]}]}"#, " at users[0].name (column 19): expected String, found an array"),
        (#"{"users":[{"name":{"s3cret":1}}]}"#, " at users[0].name (column 19): expected String, found a dictionary"),
        (#"{"users":[{"age":7}]}"#, " at users[0] (column 11): nothing for the key “name”"),
        (
            #"{"users":[{"name":"x","addresses":[{"street":"s3cret"},{}]}]}"#,
            " at users[0].addresses[1] (column 56): nothing for the key “street”"
        ),
        (#"["s3cret"]"#, " (column 1): expected Dictionary<String, Any>, found an array"),
        (#""s3cret""#, " (column 1): expected Dictionary<String, Any>, found a string"),
        (#"{"users":s3cret}"#, ": the body is not valid JSON (column 10: expected a value)"),
    ]

    @Test("The message has the coding path and no values", arguments: users)
    func decodingErrorsNameThePath(body: String, place: String) async throws {
        let error = try await Self.failure(body, as: [String: [User]].self)
        #expect(error.message == "Decoding Dictionary<String, Array<User>> failed\(place).")
        #expect(error.kind == .decodingFailed && error.phase == .decoding && error.cause is DecodingError)
        #expect(error.request?.url == "https://h/users/1" && error.response?.status == .ok)
        #expect(error.body == Array(body.utf8))
        for text in [error.description, error.detailedDescription, error.hint ?? ""] {
            #expect(!text.contains("s3cret"))
        }
    }

    private enum Color: String, Codable { case red }

    @Test func decodingErrorsHideQuotedValues() async throws {
        let error = try await Self.failure(#"["red","s3cret"]"#, as: [Color].self)
        #expect(
            error.message == "Decoding Array<Color> failed at [1] (column 8): the value is malformed or out of range.")
        #expect(!error.detailedDescription.contains("s3cret"))
        #expect(error.detailedDescription.contains("cause: DecodingError.dataCorrupted"))
        let other = DecodingError.typeMismatch(
            Int.self, DecodingError.Context(codingPath: [], debugDescription: "wanted Int but found s3cret instead."))
        #expect(Self.failure(of: other).message == "Decoding Int failed: expected Int.")
    }

    private static func failure(of error: any Error, as type: Any.Type? = Int.self) -> NetworkError {
        .decoding(error, as: type, of: ReadingScene.head(nil), body: Data("body".utf8), request: ReadingScene.request)
    }

    private struct Key: CodingKey {
        var stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    @Test func codingPathsAreShortenedAndEscaped() {
        let keys: [any CodingKey] = (0..<20).map { Key(stringValue: "k\($0)") }
        let context = DecodingError.Context(codingPath: keys, debugDescription: "")
        let end = (4..<20).map { ".k\($0)" }.joined()
        #expect(
            Self.failure(of: DecodingError.dataCorrupted(context)).message
                == "Decoding Int failed at …\(end): the value is malformed or out of range.")
        let bad = Key(stringValue: "\u{1B}" + String(repeating: "x", count: 99))
        let missing = DecodingError.keyNotFound(bad, DecodingError.Context(codingPath: [bad], debugDescription: ""))
        let shown = "\\u{1B}" + String(repeating: "x", count: 63)
        #expect(Self.failure(of: missing).message == "Decoding Int failed at \(shown): nothing for the key “\(shown)”.")
        let marks = String(repeating: "\u{301}", count: 999)
        let one = DecodingError.Context(codingPath: [Key(stringValue: "e" + marks)], debugDescription: "")
        #expect(Self.failure(of: DecodingError.dataCorrupted(one)).message.utf8.count < 200)
        #expect(Self.failure(of: missing).hint == "Make the property Optional if the server may leave it out.")
    }

    private struct Odd: Error, CustomStringConvertible {
        var description: String { "s3cret" }
    }

    @Test func errorsOfOtherTypesAreNamed() {
        let error = Self.failure(of: Odd(), as: nil)
        #expect(error.message == "Decoding failed: Odd." && error.cause is Odd && error.body == Array("body".utf8))
        #expect(Self.failure(of: CancellationError()).isCancellation)
        #expect(NetworkError.encoding(Odd()).message == "Encoding failed: Odd.")
        #expect(NetworkError.encoding(CancellationError(), request: "https://h").isCancellation)
    }

    @Test func networkErrorsAreKeptAndCompleted() {
        let plain = Self.failure(of: NetworkError(.unsupported, phase: .decoding, "x"))
        #expect(plain.kind == .unsupported && plain.request?.url == "https://h/users/1" && plain.body.count == 4)
        let foreign = Self.failure(of: NetworkError(.timedOut, phase: .waiting, "x", request: "https://other"))
        #expect(foreign.request?.url == "https://other" && foreign.response == nil && foreign.body.isEmpty)
        let other = ResponseHead(status: .notFound)
        let answered = Self.failure(of: NetworkError(.timedOut, phase: .waiting, "x", response: other))
        #expect(answered.response == other && answered.request == nil)
        let encoding = NetworkError.encoding(NetworkError(.bodyFailed, phase: .preparing, "x"), request: "https://h")
        #expect(encoding.kind == .bodyFailed && encoding.request?.url == "https://h")
        #expect(NetworkError.encoding(foreign, request: "https://h").request?.url == "https://other")
    }

    @Test func encodingErrorsNameThePath() throws {
        let error = try #require(
            #expect(throws: EncodingError.self) { try JSON().encode(["secrets": [1, Double.infinity]]) })
        let failure = NetworkError.encoding(error, request: "https://h")
        #expect(failure.message == "Encoding failed at secrets[1]: the Double cannot be encoded.")
        #expect(failure.kind == .encodingFailed && failure.phase == .preparing && failure.cause is EncodingError)
        #expect(failure.request?.url == "https://h" && failure.hint == nil)
        #expect(failure.detailedDescription.contains("cause: EncodingError.invalidValue"))
        #expect((failure.cause as? any DetailedCause)?.hint == nil && !failure.detailedDescription.contains(" try:"))
    }

    private struct Both: Encodable, Sendable {
        func encode(to encoder: any Encoder) throws {
            _ = encoder.unkeyedContainer()
            try "s3cret".encode(to: encoder)
        }
    }

    static let queries: [(Request.Query, Request.QueryEncoder, String)] = [
        (
            .encoding(["s3cret"]), Request.QueryEncoder(),
            ": A query has names: encode a structure or a dictionary, and put lists and texts into one."
        ),
        (
            ["ids": [["s3cret"]]], Request.QueryEncoder(arrays: .commaJoined),
            " at ids[0]: Arrays that are joined by commas hold plain values only."
        ),
        (["a\n": Both()], Request.QueryEncoder(), " at a\\n: A value encoded itself in two ways at once."),
        (["o": [["s3cret"]: 1]], Request.QueryEncoder(), " at o: The key of a dictionary must be one text or number."),
        (
            ["q": Request.Query.percentEncoded("s3cret")], Request.QueryEncoder(),
            " at q: A percent-encoded text can be sent but not encoded."
        ),
    ]

    @Test("RQ-12: errors of query encoding have a reason", arguments: queries)
    func queryEncodingErrorsHaveAReason(query: Request.Query, encoder: Request.QueryEncoder, reason: String) throws {
        let error = try #require(#expect(throws: EncodingError.self) { try query.text(encoder) })
        let failure = NetworkError.encoding(error, request: "https://h")
        #expect(failure.message == "Encoding failed" + reason && failure.kind == .encodingFailed)
        #expect(!failure.detailedDescription.contains("s3cret"))
    }

    @Test func encodingErrorTextsAreEscapedAndShortened() {
        let context = EncodingError.Context(
            codingPath: [], debugDescription: "a\n" + String(repeating: "x", count: 999))
        let message = NetworkError.encoding(EncodingError.invalidValue(Int.self, context)).message
        #expect(message == "Encoding failed: a\\n" + String(repeating: "x", count: 254))
    }

    @Test("RS-14, B-93: an empty body fails with a hint", arguments: ["", " ", "\r\n\t"])
    func emptyBodiesFailWithAHint(body: String) async throws {
        let error = try await Self.failure(body, as: User.self)
        #expect(error.kind == .decodingFailed && error.message == "The body is empty, where a User was expected.")
        #expect(error.hint?.contains("`User?`") == true && error.hint?.contains("using: .empty") == true)
        #expect(try await Self.failure(body, as: String.self).hint == "For the body itself as text: `using: .text`.")
    }

    @Test func plainTextBodyHintsAtTheTextSerializer() async throws {
        #expect(
            try await Self.failure("hello", as: String.self).hint == "For the body itself as text: `using: .text`.")
    }
}
