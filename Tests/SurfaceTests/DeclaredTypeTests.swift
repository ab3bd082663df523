// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// The types of public declarations state which values may be missing and which type a generic call returns.
@Suite(.timeLimit(.minutes(5)))
struct DeclaredTypeTests {
    private struct User: Codable, Equatable, Sendable { var id: Int }

    private func typeName<Root, Value>(of property: KeyPath<Root, Value>) -> String { "\(Value.self)" }

    @Test func onlyPropertiesThatMayBeMissingAreOptional() {
        #expect(typeName(of: \ResponseHead.contentLength) == "Optional<Int64>")
        #expect(typeName(of: \ResponseHead.contentType) == "Optional<String>")
        #expect(typeName(of: \ResponseHead.status) == "Status")
        #expect(typeName(of: \NetworkError.response) == "Optional<ResponseHead>")
        #expect(typeName(of: \NetworkError.resumeToken) == "Optional<ResumeToken>")
        #expect(typeName(of: \NetworkError.kind) == "Kind")
        #expect(typeName(of: \NetworkError.message) == "String")
        #expect(typeName(of: \TransferProgress.expectedToReceive) == "Optional<Int64>")
        #expect(typeName(of: \TransferProgress.received) == "Int64")
        #expect(typeName(of: \DownloadedFile.checksum) == "Optional<Checksum>")
        #expect(typeName(of: \DownloadedFile.path) == "String")
        #expect(typeName(of: \Request.url) == "String")
        let field = ResponseHead(status: .ok)["X-Missing"]
        #expect("\(type(of: field))" == "Optional<String>" && field == nil)
    }

    @Test func callsReturnTheTypeOfTheirGenericArgument() async throws {
        let server = try MockServer { $0.path == "/none" ? .status(204) : .json(#"[{"id":1}]"#) }
        let api = Client(try BaseURL(server.origin))
        let transfer: Transfer<[User]> = api.transfer(.get, "users", as: [User].self)
        let response: Response<[User]> = try await transfer.response()
        let users: [User] = response.value
        #expect(users == [User(id: 1)])
        // A value that may be missing needs an optional type.
        let none: User? = try await api.get("none")
        #expect(none == nil)
        let error = await #expect(throws: NetworkError.self) { try await api.get("none", as: User.self) }
        #expect(error?.kind == .decodingFailed)
        let download: Transfer<DownloadedFile> = Session.shared.downloadTransfer("http://127.0.0.1:1/", to: .file("/x"))
        #expect(download.state == .idle)
    }
}
