// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// Types of a user with access to the public module only, one for each protocol of a client.
@Suite(.timeLimit(.minutes(5)))
struct ConformanceTests {
    private struct User: Codable, Equatable, Sendable { var id: Int, name: String }
    private struct Unreadable: Error {}

    /// JSON in Base64.
    private struct Wrapped: RequestFormat, ResponseFormat {
        let contentType: MediaType = "application/x-wrapped"
        let accepts: [MediaType] = ["application/x-wrapped"]

        func encode(_ value: some Encodable) throws -> Data {
            Data(try JSON().encode(value).base64EncodedString().utf8)
        }

        func decode<T: Decodable>(_ type: T.Type, from body: Data, of head: ResponseHead) throws -> T {
            guard let json = Data(base64Encoded: String(decoding: body, as: UTF8.self)) else { throw Unreadable() }
            return try JSON().decode(type, from: json, of: head)
        }
    }

    /// The rows of a table, read from the whole body.
    private struct Table: ResponseSerializer {
        let accepts: [MediaType] = ["text/csv", "text/plain;q=0.5"]

        func output(from response: IncomingResponse) async throws -> [[String]] {
            let text = String(decoding: try await response.collect(), as: UTF8.self)
            guard !text.contains("\"") else { throw Unreadable() }
            return text.split(separator: "\n").map { $0.split(separator: ",").map(String.init) }
        }
    }

    /// A sum over a body that is never in memory as a whole.
    private struct Sum: ResponseSerializer {
        func output(from response: IncomingResponse) async throws -> UInt64 {
            var sum: UInt64 = 0
            for try await chunk in response.bytes { sum = chunk.reduce(sum) { $0 &* 31 &+ UInt64($1) } }
            return sum
        }
    }

    /// The value of the member "data", decoded with the client's format.
    private struct Enveloped<T: Decodable & Sendable>: ResponseSerializer {
        private struct Envelope: Decodable, Sendable { var data: T }

        private var format: any ResponseFormat = JSON()
        var accepts: [MediaType] { format.accepts }

        func output(from response: IncomingResponse) async throws -> T {
            try format.decode(Envelope.self, from: try await response.collect(), of: response.head).data
        }

        func bound(to format: any ResponseFormat) -> Self {
            var copy = self
            copy.format = format
            return copy
        }
    }

    /// Records of a two-byte length followed by that number of bytes.
    private struct Records: StreamSerializer {
        let accepts: [MediaType] = ["application/octet-stream"]

        func begin(_ head: ResponseHead) throws -> [UInt8] {
            guard head.contentLength != 0 else { throw Unreadable() }
            return []
        }

        func decode(_ chunk: ByteChunk?, _ rest: inout [UInt8]) throws -> [[UInt8]] {
            guard let chunk else {
                guard rest.isEmpty else { throw Unreadable() }
                return []
            }
            rest += chunk
            var records: [[UInt8]] = []
            while rest.count >= 2, rest.count >= 2 + Int(rest[0]) << 8 + Int(rest[1]) {
                let end = 2 + Int(rest[0]) << 8 + Int(rest[1])
                records.append(Array(rest[2..<end]))
                rest.removeFirst(end)
            }
            return records
        }
    }

    /// A client that adds a version to every path and counts its calls.
    private struct Versioned<Inner: APIClient>: APIClient {
        actor Counter {
            private(set) var values = 0
            func count() { values += 1 }
        }

        let inner: Inner
        let counter = Counter()

        private func versioned(_ call: Call) -> Call {
            var call = call
            call.path = Path(raw: "v2/" + call.path.text)
            return call
        }

        func value<S: ResponseSerializer>(
            of call: Call, using serializer: S
        ) async throws(NetworkError) -> S.Output {
            await counter.count()
            return try await inner.value(of: versioned(call), using: serializer)
        }

        func transfer<S: ResponseSerializer>(_ call: Call, using serializer: S) -> Transfer<S.Output> {
            inner.transfer(versioned(call), using: serializer)
        }

        func stream<S: StreamSerializer>(_ call: Call, using serializer: S) -> TransferSequence<S.Element> {
            inner.stream(versioned(call), using: serializer)
        }

        func downloadTransfer(
            _ call: Call, to destination: DownloadDestination?, overwrite: DownloadDestination.Overwrite,
            expecting checksum: Checksum?, downloadOptions: DownloadOptions
        ) -> Transfer<DownloadedFile> {
            inner.downloadTransfer(
                versioned(call), to: destination, overwrite: overwrite, expecting: checksum,
                downloadOptions: downloadOptions)
        }
    }

    /// An endpoint whose problems are a line of text and the value of a custom field.
    private struct Rename: Endpoint {
        struct Problem: Decodable, Equatable, Sendable { var reason: String, code: String? }
        typealias Output = User

        let method = Method.patch
        let path: Path = "users/1"
        var body: Body? { .form(["name": "Ada"]) }

        func problem(in refusal: NetworkError, as format: any ResponseFormat) -> Problem? {
            guard refusal.response?.status == .conflict else { return nil }
            return Problem(
                reason: String(decoding: refusal.body, as: UTF8.self), code: refusal.response?["X-Code"])
        }
    }

    private struct Version: HeaderValue {
        var major: Int, minor: Int
        var fieldValue: String { "\(major).\(minor)" }
    }

    @Test func customWireFormatIsUsed() async throws {
        let server = try MockServer { request in
            if request.path == "/odd" { return .text("?").field("Content-Type", "x/y") }
            let body = request.path == "/broken" ? Array("?".utf8) : request.body
            return .status(200, [("Content-Type", "application/x-wrapped")], body: body)
        }
        func client(_ format: some WireFormat) throws -> some APIClient {
            Client(try BaseURL(server.origin), requests: format, responses: format)
        }
        let api = try client(Wrapped())
        let user = User(id: 1, name: "Ada")
        #expect(try await api.post("users", .encoding(user)) == user)
        let sent = server.requests.last
        #expect(sent?.field("Content-Type") == "application/x-wrapped")
        #expect(sent?.field("Accept") == "application/x-wrapped")
        let read = try Wrapped().decode(User.self, from: Data(sent?.body ?? []), of: ResponseHead(status: .ok))
        #expect(read == user)
        let maybe: User? = try await api.get("none")
        #expect(maybe == nil)
        // Use another format for one body.
        let json = try await api.post("users", .json(user), using: .bytes)
        #expect(try JSONDecoder().decode(User.self, from: json) == user)
        #expect(server.requests.last?.field("Content-Type") == "application/json")
        let broken = await #expect(throws: NetworkError.self) { try await api.get("broken", as: User.self) }
        #expect(broken?.kind == .decodingFailed && broken?.cause is Unreadable)
        let odd = await #expect(throws: NetworkError.self) { try await api.get("odd", as: User.self) }
        #expect(odd?.kind == .unacceptableContentType)
        let failed = await #expect(throws: NetworkError.self) { try await api.post("x", .encoding(Double.nan)) }
        #expect(failed?.kind == .encodingFailed)
    }

    @Test func customResponseSerializersAreUsed() async throws {
        let server = try MockServer { request in
            switch request.path {
            case "/table": .text("a,b\nc").field("Content-Type", "text/csv; header=absent")
            case "/quoted": .text("\"a\"")
            case "/large": .pattern(PatternBody(seed: 3, length: 300_000))
            default: .json(#"{"data": {"id": 1, "name": "Ada"}}"#)
            }
        }
        let api = Client(try BaseURL(server.origin))
        #expect(try await api.get("quoted", using: .text) == "\"a\"")
        let quoted = await #expect(throws: NetworkError.self) { try await api.get("quoted", using: Table()) }
        #expect(quoted?.kind == .decodingFailed && quoted?.cause is Unreadable && quoted?.body == Array("\"a\"".utf8))
        #expect(server.requests.last?.field("Accept") == "text/csv, text/plain; q=0.5")
        let expected = PatternBody(seed: 3, length: 300_000).bytes.reduce(0 as UInt64) { $0 &* 31 &+ UInt64($1) }
        #expect(try await api.get("large", using: Sum()) == expected)
        #expect(try await api.transfer(.get, "large", using: Sum()).value == expected)
        #expect(try await api.get("user", using: Enveloped<User>()) == User(id: 1, name: "Ada"))
        let wrong = await #expect(throws: NetworkError.self) { try await api.get("large", using: Table()) }
        #expect(wrong?.kind == .unacceptableContentType)
    }

    /// Settings that a serializer leaves open are those of the client.
    @Test func serializerUsesTheFormatOfTheClient() async throws {
        let body = try Wrapped().encode(["data": User(id: 1, name: "Ada")])
        let server = try MockServer { _ in .status(200, [("Content-Type", "application/x-wrapped")], body: Array(body))
        }
        let api = Client(try BaseURL(server.origin), responses: Wrapped())
        #expect(try await api.get("user", using: Enveloped<User>()).name == "Ada")
        #expect(server.requests.last?.field("Accept") == "application/x-wrapped")
    }

    @Test func customStreamSerializerIsUsed() async throws {
        let bytes: [UInt8] = [0, 1, 7, 0, 0, 1, 0] + [UInt8](repeating: 9, count: 256)
        let server = try MockServer { request in
            switch request.path {
            case "/cut": .bytes(bytes.dropLast())
            case "/text": .text("")
            default: .bytes(bytes).chunked(size: 5)
            }
        }
        let api = Client(try BaseURL(server.origin))
        var records: [[UInt8]] = []
        for try await record in api.stream("x", using: Records()) { records.append(record) }
        #expect(records == [[7], [], [UInt8](repeating: 9, count: 256)])
        for path: Path in ["cut", "text"] {
            let error = await #expect(throws: NetworkError.self) {
                for try await _ in api.stream(path, using: Records()) {}
            }
            #expect(error?.kind == .decodingFailed && error?.cause is Unreadable, "\(path)")
        }
    }

    @Test func wrappedAPIClientProvidesAllCalls() async throws {
        let server = try MockServer { _ in .json(#"{"id": 1, "name": "Ada"}"#) }
        let api = Versioned(inner: Client(try BaseURL(server.origin)))
        let user: User = try await api.get("users/\(1)")
        #expect(user.name == "Ada")
        #expect(try await api.transfer(.get, "a", as: User.self).value == user)
        for try await _ in api.stream("b") {}
        _ = try? await api.send(Rename())
        let erased: any APIClient = api
        #expect(try await erased.get("c", as: User.self) == user)
        #expect(server.requests.map(\.path) == ["/v2/users/1", "/v2/a", "/v2/b", "/v2/users/1", "/v2/c"])
        #expect(await api.counter.values == 3)
    }

    @Test func endpointWithCustomProblemThrowsIt() async throws {
        let server = try MockServer()
        server.on(
            "PATCH", "/users/1",
            inOrder: [
                .text("taken", status: 409).field("X-Code", "E7"), .text("gone", status: 410),
                .json(#"{"id": 1, "name": "Ada"}"#),
            ])
        let api = Client(try BaseURL(server.origin))
        let taken = await #expect(throws: APIError<Rename.Problem>.self) { try await api.send(Rename()) }
        #expect(taken?.problem == Rename.Problem(reason: "taken", code: "E7"))
        let gone = await #expect(throws: APIError<Rename.Problem>.self) { try await api.send(Rename()) }
        #expect(gone?.problem == nil && gone?.network.body == Array("gone".utf8))
        #expect(try await api.send(Rename()) == User(id: 1, name: "Ada"))
        #expect(server.requests.map(\.bodyText) == ["name=Ada", "name=Ada", "name=Ada"])
    }

    @Test func customHeaderValueIsSent() async throws {
        let server = try MockServer { _ in .status(204) }
        let api = Client(try BaseURL(server.origin)).with {
            $0.fields["X-Version"] = Version(major: 1, minor: 0).fieldValue
        }
        var changes: HeaderChanges = ["X-Version": Version(major: 2, minor: 1)]
        changes.append("X-Also", Version(major: 3, minor: 0))
        changes.append("X-Also", 4)
        try await api.get("x", using: .empty)
        try await api.get("x", fields: changes, using: .empty)
        #expect(server.requests.map { $0.field("X-Version") } == ["1.0", "2.1"])
        #expect(server.requests.last?.fields("X-Also") == ["3.0", "4"])
    }
}
