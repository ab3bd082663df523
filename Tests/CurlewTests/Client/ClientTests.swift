// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

struct TestUser: Codable, Equatable, Sendable {
    var id: Int
    var name: String
}

/// Calls with a real server: verbs, values, error responses.
@Suite(.timeLimit(.minutes(5)))
struct ClientTests {
    private let ada = TestUser(id: 7, name: "Ada")
    private let server: MockServer

    init() throws {
        server = try MockServer { request in
            switch request.path {
            case "/v1/users/7": .json(#"{"id": 7, "name": "Ada"}"#)
            case "/v1/empty": .status(204)
            case "/v1/space": .json(" ")
            case "/v1/null": .json("null")
            case "/v1/text": .text("plain")
            case "/v1/html": .text("<html>").field("Content-Type", "text/html")
            case "/v1/broken": .json(#"{"id": "seven", "name": "secret"}"#)
            case "/v1/missing": .json(#"{"reason": "gone"}"#, status: 404)
            case "/v1/refused": .text("<html>", status: 500).field("Content-Type", "text/html")
            default: .json(#"{"method": "\#(request.method)", "query": "\#(request.query ?? "")"}"#)
            }
        }
    }

    private func client() throws -> JSONClient {
        Client(try BaseURL(server.url("/v1")), session: Session())
    }

    private struct Echo: Codable, Equatable { var method: String, query: String }

    /// HS-08, HS-10, HS-12, HS-13, B-130: every verb sends its method, and decodes or discards the response.
    @Test func verbsSendTheirMethodsAndDecodeTheResponse() async throws {
        let api = try client()
        let got: Echo = try await api.get("x", query: ["a": 1])
        #expect(got == Echo(method: "GET", query: "a=1"))
        let posted: Echo = try await api.post("x", .json(ada), query: ["a": 1])
        #expect(posted == Echo(method: "POST", query: "a=1"))
        #expect(try await api.put("x", .json(ada), as: Echo.self).method == "PUT")
        #expect(try await api.patch("x", .json(ada), as: Echo.self).method == "PATCH")
        #expect(try await api.delete("x", as: Echo.self).method == "DELETE")
        #expect(try await api.request("REPORT", "x", as: Echo.self).method == "REPORT")
        #expect(try await api.request("QUERY", "x", .json(ada), as: Echo.self).method == "QUERY")
        try await api.post("x", .json(ada))
        try await api.put("x")
        try await api.patch("x", .form(["a": 1]))
        try await api.delete("x")
        try await api.request(.options, "x")
        let last = server.requests.suffix(5)
        #expect(last.map(\.method) == ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
        // The order of an object's members is the encoder's.
        let length = server.requests[1].bodyLength
        #expect(last.map(\.bodyLength) == [length, 0, 3, 0, 0] && last[last.startIndex + 2].bodyText == "a=1")
        #expect(last.map { $0.field("Content-Length") } == ["\(length)", "0", "3", nil, nil])
        #expect(
            last.map { $0.field("Content-Type") } == [
                "application/json", nil, "application/x-www-form-urlencoded", nil, nil,
            ])
        #expect(server.violations.isEmpty)
    }

    /// HS-09: `head` returns the response head.
    @Test func headReturnsTheResponseHead() async throws {
        let head = try await client().head("users/\(7)")
        #expect(head.status == .ok && head.contentType == "application/json")
        #expect(server.requests.map(\.method) == ["HEAD"])
        await #expect { try await client().head("missing") } throws: { error in
            (error as? NetworkError)?.kind == .unacceptableStatus
        }
    }

    /// HS-13, RQ-17: calls with untyped parameters and untyped JSON.
    @Test func untypedCallsSendParametersAndReturnJSON() async throws {
        let api = try client()
        let got = try await api.request(.get, "users/7", parameters: ["a": 1])
        #expect(got == ["id": 7, "name": "Ada"])
        let none = try await api.request(.delete, "empty", parameters: [:], as: JSONValue?.self)
        #expect(none == nil)
        _ = try await api.request(.post, "x", parameters: ["a": 1])
        #expect(server.requests.map(\.query) == ["a=1", nil, nil])
        #expect(server.requests.last?.bodyText == #"{"a":1}"#)
    }

    /// RS-06, RS-14, B-93: an empty body decodes as nil for optional outputs and fails for others.
    @Test(arguments: ["empty", "space", "null"])
    func emptyBodiesDecodeOnlyAsOptionals(_ path: String) async throws {
        let api = try client()
        let user: TestUser? = try await api.get(Path(raw: path))
        #expect(user == nil)
        try await api.get(Path(raw: path), using: .empty)
        let raw: Data = try await api.get(Path(raw: path))
        let lengths = ["empty": 0, "space": 1, "null": 4]
        #expect(raw.count == lengths[path])
        let error = await #expect(throws: NetworkError.self) {
            try await api.get(Path(raw: path), as: TestUser.self)
        }
        #expect(error?.kind == .decodingFailed && error?.phase == .decoding)
        if path != "null" { #expect(error?.hint?.contains("TestUser?") == true, "\(String(describing: error))") }
    }

    @Test func rawOutputsAreReturned() async throws {
        let api = try client()
        #expect(try await api.get("text", as: Data.self) == Data("plain".utf8))
        #expect(try await api.get("text", using: .bytes) == Data("plain".utf8))
        #expect(try await api.get("text", using: .text) == "plain")
        let user: TestUser? = try await api.get("users/7")
        #expect(user == ada)
        let fields = try await api.get("users/7", using: .json([String: JSONValue].self))
        #expect(fields["id"] == 7)
    }

    /// RS-05, RS-07, RS-28: a content type that the serializer does not accept fails the call.
    @Test func unacceptableContentTypeFails() async throws {
        let api = try client()
        let error = await #expect(throws: NetworkError.self) { try await api.get("html", as: TestUser.self) }
        #expect(error?.kind == .unacceptableContentType && error?.phase == .validating)
        #expect(error?.response?.status == .ok && error?.body == Array("<html>".utf8))
        #expect(try await api.get("html", using: .text) == "<html>")
        await #expect { try await api.get("text", options: .accepting("a/b"), using: .text) } throws: { error in
            (error as? NetworkError)?.kind == .unacceptableContentType
        }
    }

    /// RS-04, RS-08, RS-15, C-07: the error of an unacceptable status has the body; options can accept the status.
    @Test func unacceptableStatusFailsWithTheBody() async throws {
        struct Reason: Decodable { var reason: String }
        let api = try client()
        let error = await #expect(throws: NetworkError.self) { try await api.get("missing", as: TestUser.self) }
        #expect(error?.kind == .unacceptableStatus && error?.response?.status == .notFound)
        #expect(error?.decode(Reason.self)?.reason == "gone")
        #expect(error?.request?.url == server.url("/v1/missing"))
        #expect(try await api.get("missing", options: .statuses(.any), as: Reason.self).reason == "gone")
        #expect(try await api.get("missing", options: .statuses([404]), using: .text).contains("gone"))
        let also = api.with { $0.options = .statuses([200]) }
        await #expect { try await also.get("empty", using: .empty) } throws: { error in
            (error as? NetworkError)?.response?.status == .noContent
        }
    }

    /// RS-09: the error reports the status, its cause the content type.
    @Test func unacceptableStatusAndContentTypeAreBothReported() async throws {
        let api = try client()
        let error = await #expect(throws: NetworkError.self) { try await api.get("refused", as: TestUser.self) }
        #expect(error?.kind == .unacceptableStatus)
        #expect((error?.cause as? NetworkError)?.kind == .unacceptableContentType)
    }

    /// RS-16: decoding errors name the coding path and never the value.
    @Test func decodingErrorsNameThePathAndNotTheValue() async throws {
        let api = try client()
        let error = await #expect(throws: NetworkError.self) { try await api.get("broken", as: TestUser.self) }
        #expect(error?.kind == .decodingFailed && error?.message.contains("id") == true)
        #expect(error?.detailedDescription.contains("seven") == false && error?.cause is DecodingError)
    }

    /// A call as a transfer provides its value, its response, its progress and its bytes.
    @Test func transfersProvideValueResponseProgressAndBytes() async throws {
        let api = try client()
        let task = api.transfer(.get, "users/7", as: TestUser.self)
        var last: TransferProgress?
        for await progress in task.progress { last = progress }
        #expect(last?.isFinished == true)
        #expect(try await task.value == ada)
        let response = try await task.response()
        #expect(response.value == ada && response.status == .ok && response.metrics.responseBodyBytes == 24)
        #expect(server.requests.count == 1)
        let refused = api.transfer(.get, "missing", as: TestUser.self)
        await #expect { try await refused.value } throws: { ($0 as? NetworkError)?.kind == .unacceptableStatus }
        var bytes: [UInt8] = []
        for try await chunk in api.transfer(.get, "missing").bytes { bytes += chunk }
        #expect(bytes == Array(#"{"reason": "gone"}"#.utf8), "the bytes are not validated")
        try await api.transfer(.post, "x", .json(ada)).value
        let cancelled = api.transfer(.get, "x", using: .text)
        cancelled.cancel()
        await #expect { try await cancelled.value } throws: { ($0 as? NetworkError)?.isCancellation == true }
    }

    /// HS-16, RQ-41: an invalid call fails when its result is awaited, without a request.
    @Test func invalidCallsFailWithoutARequest() async throws {
        let api = try client()
        let none = ""
        for transfer in [
            api.transfer(.get, "users/\(none)", using: .bytes),
            api.transfer(.post, "x", .json(Double.nan), using: .bytes),
        ] {
            let error = await #expect(throws: NetworkError.self) { try await transfer.value }
            #expect(error?.phase == .preparing)
            #expect(transfer.state == .finished)
            var kinds: [String] = []
            for await event in transfer.events { if event.isLast { kinds.append("\(event.kind)") } }
            #expect(kinds.count == 1)
        }
        await #expect { for try await _ in api.stream("users/\(none)") {} } throws: { error in
            (error as? NetworkError)?.kind == .invalidRequest
        }
        #expect(server.requestCount == 0)
    }

    /// Cancelling the task cancels the call.
    @Test func taskCancellationCancelsTheCall() async throws {
        let server = try MockServer { _ in .silence }
        let api = Client(try BaseURL(server.url("/")))
        let task = Task { try await api.get("x", as: TestUser.self) }
        _ = await server.nextRequest()
        task.cancel()
        let result = await task.result
        let error = #expect(throws: NetworkError.self) { try result.get() }
        #expect(error?.isCancellation == true)
    }

    /// HS-20, RQ-30, SW-03: copies of a client share only the session and its connections.
    @Test func copiesShareTheSessionsConnections() async throws {
        let api = try client()
        let changed = api.with { $0.fields["X-A"] = "b" }
        #expect(api.fields["X-A"] == nil && changed.session === api.session)
        for client in [api, changed, api.with { $0.options.label = "x" }] { try await client.get("x", using: .empty) }
        #expect(server.connectionCount == 1)
        #expect(server.requests.map { $0.field("X-A") } == [nil, "b", nil])
        async let users = (0..<50).map { _ in 7 }.forEachConcurrent(limit: 20) { id in
            let user: TestUser = try await api.get("users/\(id)")
            #expect(user.id == 7)
            #expect(try await api.get("text", using: .text) == "plain")
        }
        try await users
    }

    @Test func interceptorsSurroundTheCall() async throws {
        let api = try client().with {
            $0.interceptors = [.adapt { $0.fields["X-Signed"] = "yes" }]
        }
        _ = try await api.get("users/7", as: TestUser.self)
        #expect(server.requests.first?.field("X-Signed") == "yes")
        // An interceptor that returns its own responses replaces the server in tests.
        let stub = Session(interceptors: [
            .intercept { request, _, _ in
                IncomingResponse(
                    ResponseHead(status: .ok, fields: [.contentType: "application/json"]),
                    body: Data(#"{"id": 1, "name": "stub"}"#.utf8), to: request)
            }
        ])
        let user: TestUser = try await Client("https://nowhere.invalid", session: stub).get("users/1")
        #expect(user == TestUser(id: 1, name: "stub"))
    }

    /// A wrapper of a client needs three functions; the verbs are extensions.
    @Test func clientWrappersGetTheVerbs() async throws {
        struct Shouting<Inner: APIClient>: APIClient {
            let inner: Inner

            private func loud(_ call: Call) -> Call {
                var call = call
                call.fields["X-Loud"] = "yes"
                return call
            }

            func transfer<S: ResponseSerializer>(_ call: Call, using serializer: S) -> Transfer<S.Output> {
                inner.transfer(loud(call), using: serializer)
            }

            func stream<S: StreamSerializer>(_ call: Call, using serializer: S) -> TransferSequence<S.Element> {
                inner.stream(loud(call), using: serializer)
            }

            func downloadTransfer(
                _ call: Call, to destination: DownloadDestination?, overwrite: DownloadDestination.Overwrite,
                expecting checksum: Checksum?, downloadOptions: DownloadOptions
            ) -> Transfer<DownloadedFile> {
                inner.downloadTransfer(
                    loud(call), to: destination, overwrite: overwrite, expecting: checksum,
                    downloadOptions: downloadOptions)
            }
        }
        let api: any APIClient = Shouting(inner: try client())
        let user: TestUser = try await api.get("users/7")
        #expect(user == ada)
        for try await _ in api.stream("text") {}
        #expect(server.requests.map { $0.field("X-Loud") } == ["yes", "yes"])
    }
}
