// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// Typical jobs in the code that users write, with access to the public module only.
@Suite(.timeLimit(.minutes(5)))
struct TenJobsTests {
    struct User: Codable, Sendable, Equatable { var id = 1, name = "Ada" }
    struct Photo: Codable, Sendable { var title: String }
    struct Draft: Codable, Sendable { var name: String }
    struct Invalid: Decodable, Sendable { var fields: [String: String] }

    struct CreateUser: Endpoint {
        typealias Output = User
        typealias Problem = Invalid

        let draft: Draft
        let method = Method.post
        let path: Path = "users"
        var body: Body? { .json(draft) }
    }

    struct GitHub: Sendable {
        var api: any APIClient = Client("https://api.github.com").with {
            $0.fields[.accept] = "application/vnd.github+json"
        }

        func repositories(_ login: String, page: Int = 1) async throws(NetworkError) -> [String] {
            try await api.get("users/\(login)/repos", query: ["page": page])
        }
    }

    private func server() throws -> MockServer {
        try MockServer { request in
            switch (request.method, request.path) {
            case ("POST", "/users"): .json(#"{"fields": {"name": "taken"}}"#, status: 422)
            case ("POST", "/photos"): .json(#"{"title": "Alps"}"#)
            case (_, "/users/ada/repos"): .json(#"["engine"]"#)
            case (_, "/users/42"): .json(#"{"id": 42, "name": "Ada"}"#)
            default: .text("video")
            }
        }
    }

    @Test func commonClientTasksWork() async throws {
        let server = try server()
        let api = Client(try BaseURL(server.origin))
        let (name, secret) = ("ada", "s")
        // A decoded value.
        let user: User = try await api.get("users/42")
        #expect(user == User(id: 42))
        // A form whose response is ignored.
        try await api.post("login", .form(["user": name, "password": secret]))
        // An upload with progress.
        let task = api.transfer(.post, "photos", .bytes([1, 2, 3], type: "image/jpeg"), as: Photo.self)
        var fractions: [Double?] = []
        for await progress in task.progress { fractions.append(progress.fraction) }
        #expect(try await task.value.title == "Alps" && fractions.last == 1)
        // A stream that ends early.
        for try await chunk in api.stream("video") where !chunk.isEmpty { break }
        // Another format and another limit for one call.
        let text = try await api.get(
            "x", options: [.timeout(.seconds(5)), .responseLimit(.kibibytes(1))], using: .text)
        #expect(text == "video")
        // Credentials for every call.
        let signed = api.with { $0.fields = [.authorization: Credential.bearer("token")] }
        _ = try await signed.get("x", using: .bytes)
        // A client with pins, which accepts only https.
        let pins = try PinnedPublicKeys(
            [Certificate.PublicKeyHash(sha256: [UInt8](repeating: 1, count: 32))], withoutBackup: "a test")
        #expect(throws: NetworkError.self) { try Client("http://pay.example.com", trust: pins) }
        _ = try Client("https://pay.example.com", trust: pins)
        // An endpoint with a typed problem.
        do {
            _ = try await api.send(CreateUser(draft: Draft(name: name)))
        } catch {
            #expect(error.problem?.fields == ["name": "taken"])
        }
        // A custom API around any client.
        #expect(try await GitHub(api: api).repositories("ada") == ["engine"])
        #expect(server.requests.last?.query == "page=1")
    }

    /// A download with progress and a checked digest, possibly begun by an earlier process.
    @Test func downloadReportsProgressAndChecksTheDigest() async throws {
        let video = PatternBody(seed: 4, length: 300_000)
        let folder = FileManager.default.temporaryDirectory.appending(path: "ten-jobs-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        let server = try MockServer { RangeResource(video).response(to: $0) }
        let api = Client(try BaseURL(server.origin))
        let download = api.downloadTransfer(
            Call(.get, "video.mp4"), to: .directory(folder.path), expecting: .sha256(video.sha256))
        var fractions: [Double?] = []
        for await progress in download.progress { fractions.append(progress.fraction) }
        let file = try await download.value
        #expect(file.path == folder.appending(path: "video.mp4").path && fractions.last == 1)
        #expect(try [UInt8](Data(contentsOf: URL(filePath: file.path))) == video.bytes)
    }

    @Test func concurrentCallsAndMainActorModelWork() async throws {
        let server = try server()
        let api = Client(try BaseURL(server.origin))
        async let first: User = api.get("users/42")
        async let second = api.get("users/42", as: User.self)
        #expect(try await first == second)
        let users = try await withThrowingTaskGroup(of: User.self) { group in
            for _ in 0..<4 { group.addTask { try await api.get("users/42") } }
            return try await group.reduce(into: [User]()) { $0.append($1) }
        }
        #expect(users.count == 4)
        let model = await Model(api)
        await model.load()
        #expect(await model.name == "Ada")
    }

    @MainActor
    final class Model {
        private let api: JSONClient
        var name = ""

        init(_ api: JSONClient) { self.api = api }

        func load() async {
            do {
                name = try await api.get("users/42", as: User.self).name
            } catch {
                name = error.message
            }
        }
    }
}

extension APIClient {
    /// A user's addition for one API.
    fileprivate func user(_ id: Int) async throws(NetworkError) -> TenJobsTests.User { try await get("users/\(id)") }
}

extension APIClient where Self == JSONClient {
    fileprivate static var gitHub: Self { Client("https://api.github.com") }
}

private func generic<Requests, Responses, Trust>(_ api: Client<Requests, Responses, Trust>) async throws -> Int {
    let user = try await api.user(42)
    return user.id
}

private func passed(_ api: some APIClient) -> String { "\(api)" }
private let known = passed(.gitHub)

/// A type that rejects clients without pins at compile time.
private struct Payments<Trust: PinningTrust> { let api: Client<JSON, JSON, Trust> }
