// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import FoundationEssentials

// The snippets about clients and their parts, as users write them; the documentation names them.

private struct User: Codable, Sendable { var id: Int }
private struct Draft: Codable, Sendable { var name: String }
private struct Photo: Decodable, Sendable {}
private struct Repository: Decodable, Sendable {}
private struct Invalid: Decodable, Sendable { var fields: [String: String] }

// Client/Session+Values.swift
private func snippetOfSessionValue() async throws {
    let user = try await Session.shared.value(for: "https://api.example.com/users/7", as: User.self)
    print(user)
}

// HTTP/HeaderChanges.swift
func snippetOfHeaderChanges() {
    let changes: HeaderChanges = ["X-Trace": 7, .accept: "image/png", .acceptLanguage: nil]
    print(changes)
}

// Request/Request+Options.swift
func snippetOfOptionList(_ request: inout Request) {
    request.options.timeouts = Timeouts(total: .seconds(5))
    request.options.label = "search"
    request.options = [.timeout(.seconds(5)), .priority(.high)]
}

// Client/Path.swift
func snippetOfPath() {
    let user = "../admin?x"
    let path: Path = "users/\(user)/photos?size=\(7)"
    print(path)  // users/..%2Fadmin%3Fx/photos?size=<redacted>
}

// Client/BaseURL.swift
func snippetOfBaseURL(_ environment: [String: String]) throws {
    let base: BaseURL = "https://api.example.com/v1"
    let given = try BaseURL(environment["API"] ?? "")
    print(base, given)
}

// Client/Body.swift
private func snippetOfBody(_ api: JSONClient, _ draft: Draft) async throws {
    try await api.post("users", .encoding(draft))  // in the client's format
    try await api.post("login", .form(["user": "ada", "code": 7]))
    try await api.post("notes", .json(["title": "Alps", "tags": ["a", "b"]]))
    try await api.put("logo.png", .file("/srv/logo.png", type: "image/png"))
}

// Client/Call.swift
private func snippetOfCall(_ api: JSONClient) async throws {
    let call = Call(.get, "users", query: ["page": 2], options: .timeout(.seconds(5)))
    let users = try await api.value(of: call, using: .json([User].self))
    print(users)
}

// Client/ClientConfiguration.swift
func snippetOfClientConfiguration(_ file: Data) throws {
    let configuration = try JSONDecoder().decode(ClientConfiguration.self, from: file)
    let api = Client(configuration)
    print(api)
}

// Client/Client.swift
private func snippetOfClient(_ id: Int, _ draft: Draft) async throws {
    let api = Client("https://api.example.com/v1")
    let user: User = try await api.get("users/\(id)")
    try await api.post("users", .encoding(draft))
    let quick = api.with { $0.options.timeouts.total = .seconds(2) }
    print(user, quick)
}

func snippetOfPinnedClient() throws {
    let bank = try Client(
        "https://pay.example.com",
        trust: .pinned(keys: ["sha256/…"], backup: "sha256/…"))
    print(bank)
}

// Client/APIClient.swift
private struct GitHub: Sendable {
    var api: any APIClient = Client("https://api.github.com")

    func repositories(of login: String) async throws(NetworkError) -> [Repository] {
        try await api.get("users/\(login)/repos")
    }
}

// Client/APIClient+Verbs.swift
private func snippetOfGet(_ api: JSONClient) async throws {
    let user: User = try await api.get("users/42")
    let maybe = try await api.get("users/43", as: User?.self)  // nil for an empty body
    print(user, maybe as Any)
}

// Client/APIClient+Calls.swift
private func snippetOfTransfer(_ api: JSONClient) async throws {
    let task = api.transfer(.post, "photos", .file("alps.jpg", type: "image/jpeg"), as: Photo.self)
    for await progress in task.progress { print(progress.fraction ?? 0) }
    let photo = try await task.value
    print(photo)
}

func snippetOfStream(_ api: JSONClient) async throws {
    var file = Data()
    for try await chunk in api.stream("video") { file.append(contentsOf: chunk) }
}

// Client/Endpoint.swift
private func show(_ user: User) {}
private func mark(_ fields: [String: String]) {}

private func snippetOfEndpoint(_ api: JSONClient, _ draft: Draft) async {
    struct CreateUser: Endpoint {
        typealias Output = User
        typealias Problem = Invalid

        let draft: Draft
        let method = Method.post
        let path: Path = "users"
        var body: Body? { .encoding(draft) }
    }

    do {
        show(try await api.send(CreateUser(draft: draft)))
    } catch {
        mark(error.problem?.fields ?? [:])  // the error is an APIError<Invalid>
    }
}

// Client/APIError.swift
private func snippetOfAPIError(_ api: JSONClient) async {
    struct Ping: Endpoint { let path: Path = "ping" }
    do {
        try await api.send(Ping())
    } catch {
        print(error.problem?.title ?? error.network.message)
    }
}

// Serializers/StreamSerializer.swift
private struct Bytes: StreamSerializer {
    func begin(_ head: ResponseHead) throws {}
    func decode(_ chunk: ByteChunk?, _ state: inout Void) throws -> [UInt8] { chunk.map(Array.init) ?? [] }
}

// Serializers/Form.swift
func snippetOfForm() {
    let api = Client("https://api.example.com", requests: .form)  // forms out, JSON in
    print(api)
}

/// The snippet of `AcceptLanguage`.
func acceptLanguageSnippet() {
    let session = Session { $0.fields[.acceptLanguage] = AcceptLanguage.system }
    _ = session
}
