// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import FoundationEssentials

// Snippets of the doc comments about formats and serializers, word for word; parameters and the types here provide the
// declarations that a snippet assumes.

private struct User: Codable, Sendable {
    var name: String
}

private func pack(_ value: some Encodable) throws -> Data { try JSON().encode(value) }

private func unpack<T: Decodable>(_ type: T.Type, _ body: Data) throws -> T {
    try PropertyList().decode(type, from: body, of: ResponseHead(status: .ok))
}

// HTTP/MediaType.swift
func snippetOfMediaType() {
    let type: MediaType = "application/problem+json; charset=utf-8"
    print(type.matches("application/*+json"))  // true
    print(type[parameter: "charset"] ?? "")  // utf-8
}

// HTTP/StatusSet.swift
func snippetOfStatusSet() {
    let accepted = StatusSet.success.inserting(.notModified)
    print(accepted.contains(404))  // false
    print(accepted)  // 200…299, 304
}

// Serializers/RequestFormat.swift
enum SnippetOfRequestFormat {
    struct MessagePack: RequestFormat {
        let contentType: MediaType = "application/vnd.msgpack"
        func encode(_ value: some Encodable) throws -> Data { try pack(value) }
    }
}

// Serializers/ResponseFormat.swift
enum SnippetOfResponseFormat {
    struct MessagePack: ResponseFormat {
        let accepts: [MediaType] = ["application/vnd.msgpack"]

        func decode<T: Decodable>(_ type: T.Type, from body: Data, of head: ResponseHead) throws -> T {
            try unpack(type, body)
        }
    }
}

// Serializers/ResponseSerializer.swift
func snippetOfResponseSerializer(_ api: JSONClient) async throws -> Int {
    struct LineCount: ResponseSerializer {
        func output(from response: IncomingResponse) async throws -> Int {
            try await response.collect().count { $0 == UInt8(ascii: "\n") }
        }
    }

    let lines = try await api.get("log.txt", using: LineCount())
    return lines
}

// Serializers/NetworkError+Decode.swift
func snippetOfErrorDecode(_ error: NetworkError) {
    if let problem = error.decode(ProblemDetails.self) { print(problem.title ?? "") }
}

// JSON/JSON.swift
private func snippetOfJSON(_ bytes: [UInt8]) throws -> User {
    let json = JSON { encoder, decoder in
        encoder.dateEncodingStrategy = .iso8601
        decoder.dateDecodingStrategy = .iso8601
    }
    let user = try json.decode(User.self, from: bytes)
    return user
}

private func snippetOfJSONDecode(_ bytes: [UInt8]) throws -> User {
    let user = try JSON().decode(User.self, from: bytes)
    return user
}

// JSON/JSONFault.swift
private func snippetOfJSONFault(_ bytes: [UInt8]) throws {
    do {
        let user = try JSON().decode(User.self, from: bytes)
        print(user.name)
    } catch DecodingError.typeMismatch(_, let context) {
        if let fault = context.underlyingError as? JSON.Fault { print(fault.line, fault.excerpt) }
    }
}

// JSON/JSONValue+Coding.swift
private func snippetOfJSONValueParsing() throws -> JSONValue {
    let value = try JSONValue(parsing: #"{"size": 3}"#.utf8)
    return value
}

// Serializers/PropertyList.swift
func snippetOfPropertyList() throws -> Data {
    let body = try PropertyList(.binary).encode(["volume": 11])
    return body
}

// JSON/JSONValue.swift
func snippetOfJSONValue() {
    let value: JSONValue = ["users": [["name": "Ann", "age": 41]], "next": nil]
    print(value["users"]?[0]?["name"]?.asString ?? "")  // Ann
    print(value.removingNulls())  // {"users":[{"age":41,"name":"Ann"}]}
}

// Serializers/FormatSerializer.swift
private func snippetOfFormatSerializer() -> Serializers.Formatted<[User]> {
    let users = Serializers.Formatted<[User]>(JSON { $1.keyDecodingStrategy = .convertFromSnakeCase })
    return users
}

// Serializers/BytesSerializer.swift
func snippetOfBytesSerializer() -> Serializers.Bytes {
    let sound = Serializers.Bytes(accepting: ["audio/mpeg", "audio/ogg;q=0.5"])
    return sound
}

// Serializers/TextSerializer.swift
func snippetOfTextSerializer() -> Serializers.Text {
    let page = Serializers.Text(assuming: .windows1252, lossy: true)
    return page
}

// Serializers/EmptySerializer.swift
func snippetOfEmptySerializer(_ api: JSONClient) async throws {
    try await api.delete("users/42", using: Serializers.Empty())
}

// Serializers/ClosureSerializer.swift
func snippetOfClosureSerializer() -> Serializers.Closure<Int> {
    let size = Serializers.Closure(accepts: ["image/*"]) { response in try await response.collect().count }
    return size
}

// Serializers/OneOf.swift
func snippetOfOneOf() -> [MediaType] {
    enum Reply: Sendable { case user(User), problem(ProblemDetails), text(String) }

    let reply: OneOf<Reply> = .oneOf(
        .when(.json(User.self), Reply.user),
        .when(.json(ProblemDetails.self), Reply.problem),
        .when(.text, Reply.text))
    return reply.accepts
}

// Serializers/ProblemDetails.swift
func snippetOfProblemDetails(_ error: NetworkError) {
    if let problem = error.decode(ProblemDetails.self), problem.type == "https://example.com/out-of-credit" {
        print(problem.detail ?? "", problem.extensions["balance"] ?? .null)
    }
}
