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

/// An API of one's own: a structure over whatever client it is given, and a function for each thing that can be done.
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

    /// Nil when there is no note yet.
    func latest() async throws(NetworkError) -> Note? { try await api.get("notes/latest") }

    func find(_ words: String) async throws(NetworkError) -> Finding {
        try await api.get(
            "search?q=\(words)",
            using: .oneOf(
                .when(.json(Note.self), Finding.note), .when(.json([Note].self), Finding.notes),
                .when(.text, Finding.text)))
    }

    /// Cold: it can be watched, paused and cancelled, and starts when it is awaited.
    func attach(_ picture: [UInt8], to id: Int) -> Transfer<Receipt> {
        api.transfer(.put, "notes/\(id)/picture", .bytes(picture, type: "image/png"), as: Receipt.self)
    }
}

/// What a search may answer: the content type says which, and then the first that can be read.
enum Finding: Sendable {
    case note(Note)
    case notes([Note])
    case text(String)
}

struct Receipt: Decodable, Sendable {
    var sha256: String
}

// MARK: Calls as values

/// Its output and what a refusal says are types of ours.
struct CreateNote: Endpoint {
    typealias Output = Note
    typealias Problem = Invalid

    let draft: Draft
    let method = Method.post
    let path: Path = "notes"
    var body: Body? { .encoding(draft) }
}

/// What this server says of drafts that it does not take.
struct Invalid: Decodable, Sendable {
    var fields: [String: String]
}

/// Without an output nothing is read; without a problem of its own, a refusal is read as RFC 9457 has it.
struct DeleteNote: Endpoint {
    let id: Int
    let method = Method.delete
    var path: Path { "notes/\(id)" }
}

// MARK: A format of one's own

/// Binary property lists by the name that this API has for them: a format is a media type and a function each way.
struct Packed: WireFormat {
    let contentType: MediaType = "application/vnd.notes"
    var accepts: [MediaType] { [contentType] }

    func encode(_ value: some Encodable) throws -> Data { try PropertyList(.binary).encode(value) }

    func decode<T: Decodable>(_ type: T.Type, from body: Data, of head: ResponseHead) throws -> T {
        try PropertyList().decode(type, from: body, of: head)
    }
}
