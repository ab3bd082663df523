// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// Endpoints: calls as values, with typed outputs and typed problems (C-07, B-121, D-10).
@Suite(.timeLimit(.minutes(5)))
struct EndpointTests {
    private struct Invalid: Decodable, Equatable { var fields: [String: String] }

    private struct CreateUser: Endpoint {
        typealias Output = TestUser
        typealias Problem = Invalid

        let name: String
        let method = Method.post
        let path: Path = "users"
        var body: Body? { .encoding(["name": name]) }
    }

    private struct Ping: Endpoint { let path: Path = "ping" }

    private struct Logo: Endpoint {
        typealias Output = Data

        let path: Path = "logo"
        let query: Request.Query = ["size": 3]
    }

    private struct Motd: Endpoint {
        let path: Path = "motd"
        let serializer = Serializers.Text()
        var fields: HeaderChanges { ["X-A": "b"] }
        var options: Request.Options { .label("motd") }
    }

    private struct Maybe: Endpoint {
        typealias Output = TestUser?

        let path: Path
    }

    private func api(_ respond: @escaping @Sendable (RecordedRequest) -> MockResponse) throws -> (
        MockServer, JSONClient
    ) {
        let server = try MockServer(respond)
        return (server, Client(try BaseURL(server.url("/"))))
    }

    @Test func typedOutputsAreDecoded() async throws {
        let (server, api) = try api { request in
            switch request.path {
            case "/users": .json(#"{"id": 1, "name": "Ada"}"#, status: 201)
            case "/logo": .bytes([1, 2, 3])
            case "/none": .status(204)
            default: .text("hello")
            }
        }
        #expect(try await api.send(CreateUser(name: "Ada")) == TestUser(id: 1, name: "Ada"))
        try await api.send(Ping())
        #expect(try await api.send(Logo()) == Data([1, 2, 3]))
        #expect(try await api.send(Motd()) == "hello")
        #expect(try await api.send(Maybe(path: "none")) == nil)
        #expect(try await api.transfer(CreateUser(name: "Ada")).response().status == .created)
        #expect(server.requests.map(\.target) == ["/users", "/ping", "/logo?size=3", "/motd", "/none", "/users"])
        #expect(server.requests[0].bodyText == #"{"name":"Ada"}"# && server.requests[3].field("X-A") == "b")
        // HS-15: the call's options override the endpoint's.
        let transfer = api.transfer(Motd(), options: .label("call"))
        #expect(transfer.label == "call" && api.transfer(Motd()).label == "motd")
    }

    private struct Layered: Endpoint {
        let path: Path = "x"
        let query: Request.Query = ["page": 3, "endpoint": true]
        let fields: HeaderChanges = ["X-3": "endpoint", "X-4": nil]
        let options: Request.Options = [.label("endpoint"), .priority(.low)]
    }

    /// Fields, query and options: the call overrides the endpoint, the endpoint the client, the client the session.
    @Test func callOverridesEndpointClientAndSession() async throws {
        let server = try MockServer { _ in .text("x") }
        let session = Session {
            for name in ["X-1", "X-2", "X-3", "X-4"] as [HeaderName] { $0.fields[name] = "session" }
        }
        let api = Client(try BaseURL(server.url("/")), session: session).with {
            $0.fields = ["X-2": "client", "X-3": "client"]
            $0.query = ["page": 1, "client": true]
            $0.options = [.label("client"), .responseLimit(.kibibytes(1))]
        }
        try await api.send(Layered())
        let sent = try #require(server.requests.first)
        let fields = ["X-1", "X-2", "X-3", "X-4"].map { sent.field($0) }
        #expect(fields == ["session", "client", "endpoint", nil])
        #expect(sent.query?.split(separator: "&").sorted() == ["client=1", "endpoint=1", "page=3"])
        let transfer = api.transfer(Layered(), options: .label("call"))
        #expect(transfer.label == "call" && transfer.priority == .low)
        #expect(transfer.request.options.responseLimit == .kibibytes(1))
    }

    @Test func typedProblemsAreThrown() async throws {
        let (server, api) = try api { _ in .json(#"{"fields": {"name": "too short"}}"#, status: 422) }
        do {
            _ = try await api.send(CreateUser(name: ""))
            Issue.record("the call must fail with a problem")
        } catch {
            // The type of `error` is inferred.
            #expect(error.problem == Invalid(fields: ["name": "too short"]))
            #expect(error.network.response?.status == .unprocessableContent)
            if case .failed = error { Issue.record("\(error)") }
        }
        #expect(server.requestCount == 1)
    }

    @Test func problemDetailsAreThrown() async throws {
        let (server, api) = try api { _ in
            .json(#"{"type": "https://e.test/full", "title": "Full", "status": 507, "disk": 3}"#, status: 507)
                .field("Content-Type", "application/problem+json")
        }
        let error = await #expect(throws: APIError<ProblemDetails>.self) { try await api.send(Ping()) }
        #expect(error?.problem?.title == "Full" && error?.problem?.extensions["disk"] == 3)
        #expect("\(try #require(error))".contains("507") && server.requestCount == 1)
    }

    /// A body that is no problem, is empty or too large, or has an acceptable status, throws without a problem.
    @Test func bodiesWithoutAProblemFail() async throws {
        let (server, api) = try api { request in
            switch request.path {
            case "/a": .text("<html>", status: 500)
            case "/b": .status(503)
            case "/c": .json(#"{"other": 1}"#)
            default: .bytes([UInt8](repeating: 0x20, count: 100_000), status: 400).chunked()
            }
        }
        for (path, kind, kept): (String, NetworkError.Kind, Int) in [
            ("a", .unacceptableStatus, 6), ("b", .unacceptableStatus, 0), ("c", .decodingFailed, 12),
            ("d", .unacceptableStatus, 65_536),
        ] {
            let error = await #expect(throws: APIError<ProblemDetails>.self) {
                try await api.send(Maybe(path: Path(raw: path)))
            }
            #expect(error?.problem == nil && error?.network.kind == kind, "\(path)")
            #expect(error?.network.body.count == kept, "\(path)")
        }
        server.stop()
        let error = await #expect(throws: APIError<ProblemDetails>.self) { try await api.send(Ping()) }
        #expect(error?.network.kind == .cannotConnect || error?.network.kind == .connectionLost)
    }

    /// Descriptions omit the problem, because it may contain secrets.
    @Test func descriptionsHideTheProblem() throws {
        let network = NetworkError(.unacceptableStatus, phase: .validating, "Request failed.")
        let error = APIError.rejected(Invalid_(word: "secret"), network)
        var text = "\(error)"
        dump(error, to: &text)
        #expect(!text.contains("secret") && text.contains("Request failed."))
    }

    private struct Invalid_: Decodable { var word: String }
}
