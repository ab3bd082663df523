// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

@testable import Curlew

/// Responses without a server, for the tests of serializers.
enum ReadingScene {
    struct User: Codable, Sendable, Hashable {
        struct Address: Codable, Sendable, Hashable {
            var street: String
        }

        var name: String
        var age: Int?
        var addresses: [Address]?
    }

    static let request: Request = "https://h/users/1"

    static func head(_ type: String?, _ status: Status = .ok) -> ResponseHead {
        var fields = HeaderFields()
        fields[.contentType] = type
        return ResponseHead(status: status, fields: fields)
    }

    static func response(
        _ body: some Sequence<UInt8>, _ type: String? = "application/json", _ status: Status = .ok
    ) -> IncomingResponse {
        IncomingResponse(head(type, status), body: body, to: request)
    }

    static func response(_ text: String, _ type: String? = "application/json", _ status: Status = .ok)
        -> IncomingResponse
    {
        response(Array(text.utf8), type, status)
    }
}

/// A custom format: a value is text after a "!", and "~" is null.
struct Shouting: RequestFormat, ResponseFormat {
    struct Silence: Error {}

    let contentType: MediaType = "text/x-shouting"
    let accepts: [MediaType] = ["text/x-shouting"]

    func encode(_ value: some Encodable) throws -> Data { throw Silence() }

    func decode<T: Decodable>(_ type: T.Type, from body: Data, of head: ResponseHead) throws -> T {
        if body.first == UInt8(ascii: "~") {
            throw DecodingError.valueNotFound(type, DecodingError.Context(codingPath: [], debugDescription: ""))
        }
        guard body.first == UInt8(ascii: "!"), let value = String(decoding: body.dropFirst(), as: UTF8.self) as? T
        else { throw Silence() }
        return value
    }
}
