// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import FoundationEssentials

struct Note: Codable, Sendable {
    var id: Int
    var title: String
    var tags: [String]
}

struct Draft: Encodable, Sendable {
    var title: String
    var tags: [String] = []
}

/// A typed API: a structure around any client, with a function for each operation.
struct Notes: Sendable {
    let api: any APIClient

    func note(_ id: Int) async throws(NetworkError) -> Note { try await api.get("notes/\(id)") }

    func notes(tagged tag: String, page: Int = 1) async throws(NetworkError) -> [Note] {
        try await api.get("notes", query: ["tag": tag, "page": page])
    }

    func post(_ draft: Draft) async throws(NetworkError) -> Note { try await api.post("notes", .json(draft)) }

    func logIn(_ user: String, password: String) async throws(NetworkError) {
        try await api.post("login", .form(["user": user, "password": password]))
    }

    /// Returns the latest note; nil if there is no note yet.
    func latest() async throws(NetworkError) -> Note? { try await api.get("notes/latest") }

    func find(_ words: String) async throws(NetworkError) -> Finding {
        try await api.get(
            "search?q=\(words)",
            using: .oneOf(
                .when(.json(Note.self), Finding.note), .when(.json([Note].self), Finding.notes),
                .when(.text, Finding.text)))
    }

    /// Returns a cold transfer, which starts when its value is awaited and can be observed, paused and cancelled.
    func attach(_ picture: [UInt8], to id: Int) -> Transfer<Receipt> {
        api.transfer(.put, "notes/\(id)/picture", .bytes(picture, type: "image/png"), as: Receipt.self)
    }
}

/// The possible responses to a search; the content type selects the case, or else the first case that can be decoded.
enum Finding: Sendable {
    case note(Note)
    case notes([Note])
    case text(String)
}

struct Receipt: Decodable, Sendable {
    var sha256: String
}

// MARK: Calls as values

/// An endpoint with its own types for the output and for the problem of an error response.
struct CreateNote: Endpoint {
    typealias Output = Note
    typealias Problem = Invalid

    let draft: Draft
    let method = Method.post
    let path: Path = "notes"
    var body: Body? { .encoding(draft) }
}

/// The problem in the server's response to an invalid draft.
struct Invalid: Decodable, Sendable {
    var fields: [String: String]
}

/// An endpoint without an output, so the body is ignored, and without its own problem type, so RFC 9457 applies.
struct DeleteNote: Endpoint {
    let id: Int
    let method = Method.delete
    var path: Path { "notes/\(id)" }
}

// MARK: A custom format

/// Binary property lists under this API's media type: a format is a media type and a function for each direction.
struct Packed: WireFormat {
    let contentType: MediaType = "application/vnd.notes"
    var accepts: [MediaType] { [contentType] }

    func encode(_ value: some Encodable) throws -> Data { try PropertyList(.binary).encode(value) }

    func decode<T: Decodable>(_ type: T.Type, from body: Data, of head: ResponseHead) throws -> T {
        try PropertyList().decode(type, from: body, of: head)
    }
}
