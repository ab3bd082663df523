// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

@Suite("RS-25: one of several serializers", .timeLimit(.minutes(5)))
struct OneOfTests {
    private typealias User = ReadingScene.User

    private struct Refusal: Error {}

    enum Reply: Sendable, Hashable {
        case user(ReadingScene.User)
        case problem(ProblemDetails)
        case text(String)
        case image(Data)
        case nothing
    }

    private static let all: OneOf<Reply> = .oneOf(
        .when(.text, Reply.text), .when(.json(User.self), Reply.user),
        .when(.bytes(accepting: ["image/*"]), Reply.image),
        .when(Serializers.Formatted<ProblemDetails>(Exactly()), Reply.problem))

    /// JSON that accepts only application/problem+json.
    struct Exactly: ResponseFormat {
        let accepts: [MediaType] = [.problem]

        func decode<T: Decodable>(_ type: T.Type, from body: Data, of head: ResponseHead) throws -> T {
            try JSON().decode(type, from: body, of: head)
        }
    }

    static let rows: [(String?, String, Reply)] = [
        // An exact type wins over ranges in any order; suffixes win over `type/*`, and `type/*` wins over `*/*`.
        ("application/json", #"{"name":"A"}"#, .user(User(name: "A"))),
        ("application/problem+json", #"{"title":"T"}"#, .problem(ProblemDetails(title: "T"))),
        ("application/vnd.x+json; v=1", #"{"name":"A"}"#, .user(User(name: "A"))),
        ("image/png", "png", .image(Data("png".utf8))), ("text/plain", #"{"name":"A"}"#, .text(#"{"name":"A"}"#)),
        ("text/json", #"{"name":"A"}"#, .user(User(name: "A"))), ("application/x-odd", "x", .text("x")),
        // The accepting serializers are attempted in order: decoding a user fails, so the next one is used.
        ("application/json", #"{"title":"T"}"#, .text(#"{"title":"T"}"#)),
        ("application/problem+json", "[]", .text("[]")),
        // Without a valid Content-Type, all serializers are attempted in order.
        (nil, #"{"name":"A"}"#, .text(#"{"name":"A"}"#)), ("odd", "x", .text("x")),
    ]

    @Test(arguments: rows)
    func serializerIsChosenByContentType(type: String?, body: String, reply: Reply) async throws {
        #expect(try await Self.all.output(from: ReadingScene.response(body, type)) == reply)
    }

    @Test func acceptListsAllAlternatives() {
        let accepts = ["text/*", "*/*; q=0.1"] + JSON().accepts.map(\.description)
        #expect(Self.all.accepts.map(\.description) == accepts + ["image/*", "application/problem+json"])
        let twice: OneOf<Reply> = .oneOf(
            .when(.json(User.self), Reply.user), .when(.json(ProblemDetails.self), Reply.problem))
        #expect(twice.accepts == JSON().accepts)
    }

    @Test func emptyBodyIsReadByTheEmptySerializer() async throws {
        let reply = OneOf<Reply>.oneOf(.when(.json(User.self), Reply.user), .when(.empty) { _ in .nothing })
        #expect(try await reply.output(from: ReadingScene.response("", nil, .noContent)) == .nothing)
        #expect(try await reply.output(from: ReadingScene.response(#"{"name":"A"}"#)) == .user(User(name: "A")))
    }

    @Test func allAreTriedForUnacceptedContentTypes() async throws {
        let reply = OneOf<Reply>.oneOf(
            .when(.json(ProblemDetails.self), Reply.problem), .when(.json(User.self), Reply.user))
        #expect(
            try await reply.output(from: ReadingScene.response(#"{"title":"T"}"#, "text/html"))
                == .problem(ProblemDetails(title: "T")))
    }

    @Test func throwingTransformFallsThroughToTheNext() async throws {
        let reply = OneOf<Reply>.oneOf(
            .when(.json(User.self)) { user throws in
                guard user.age != nil else { throw Refusal() }
                return .user(user)
            },
            .when(.text, Reply.text))
        #expect(try await reply.output(from: ReadingScene.response(#"{"name":"A"}"#)) == .text(#"{"name":"A"}"#))
    }

    @Test func firstFailureIsThrownWithTheOthersInItsMessage() async throws {
        let reply = OneOf<Reply>.oneOf(.when(.json(User.self), Reply.user), .when(.json([Int].self)) { _ in .nothing })
        let error = await #expect(throws: NetworkError.self) {
            try await reply.output(from: ReadingScene.response(#"{"name":7}"#))
        }
        #expect(
            error?.message
                == "Decoding User failed at name (column 9): expected String, found number. Other serializers failed: "
                + "Decoding Array<Int> failed (column 1): expected Array<Any>, found a dictionary.")
        #expect(error?.kind == .decodingFailed && error?.cause is DecodingError && error?.body.count == 10)
        #expect(error?.request != nil && error?.response != nil)
    }

    @Test func singleFailureIsThrownUnchanged() async throws {
        let one = OneOf<Reply>.oneOf(.when(.json(User.self), Reply.user))
        let error = await #expect(throws: NetworkError.self) { try await one.output(from: ReadingScene.response("[]")) }
        #expect(error?.message == "Decoding User failed (column 1): expected Dictionary<String, Any>, found an array.")
        let none = await #expect(throws: NetworkError.self) {
            try await OneOf<Reply>([]).output(from: ReadingScene.response("[]"))
        }
        #expect(none?.message == "There is no serializer to read the body.")
    }

    @Test func cancellationStopsTrying() async throws {
        let reply = OneOf<Reply>.oneOf(
            .when(Serializers.Closure<String> { _ in throw CancellationError() }, Reply.text), .when(.text, Reply.text))
        let error = await #expect(throws: NetworkError.self) {
            try await reply.output(from: ReadingScene.response("x"))
        }
        #expect(error?.isCancellation == true)
    }

    @Test func alternativesAreBoundToTheClientsFormat() async throws {
        let reply = OneOf<Reply>.oneOf(
            .when(Serializers.Formatted<String>(), Reply.text), .when(.json(User.self), Reply.user)
        ).bound(to: Shouting())
        #expect(reply.accepts == Shouting().accepts + JSON().accepts)
        #expect(try await reply.output(from: ReadingScene.response("!hey", "text/x-shouting")) == .text("hey"))
        #expect(try await reply.output(from: ReadingScene.response(#"{"name":"A"}"#)) == .user(User(name: "A")))
    }
}
