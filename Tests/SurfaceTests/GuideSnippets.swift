// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTerminal
import FoundationEssentials

// Every snippet of the guides in Documentation, word for word; parameters provide the values that a snippet assumes.
// ClientSnippets has the endpoint of Clients.md.

private struct User: Codable, Sendable { var id: Int }
private struct Photo: Decodable, Sendable { var size: Int }

private func show(_ user: User) { print(user.id) }
private func offerRetry() {}

// MARK: Clients.md

private func guideToVerbs(
    _ api: JSONClient, _ id: Int, _ words: String, _ name: String, _ secret: String
) async throws {
    let maybe = try await api.get("users/\(id)", as: User?.self)  // nil for an empty body
    let found: [User] = try await api.get("users", query: ["q": words, "page": 2])
    try await api.post("login", .form(["user": name, "password": secret]))
    let photo = try await api.put("photos/7", .file("alps.jpg", type: "image/jpeg"), as: Photo.self)
    let about = try await api.get("about", options: .timeout(.seconds(2)), using: .text)
    let status = try await api.request(.get, "status", parameters: [:])  // any JSON

    let upload = api.transfer(.post, "photos", .file("alps.jpg", type: "image/jpeg"), as: Photo.self)
    for await progress in upload.progress { print(progress.fraction ?? 0) }
    for try await chunk in api.stream("export") { print(chunk.count) }
    print(maybe as Any, found, photo, about, status as Any)
}

func guideToErrors() async {
    do {
        let (data, _) = try await Session.shared.data(for: "https://example.com/")
        print(data.count)
    } catch {
        switch error.kind {
        case .timedOut: print("too slow in phase", error.phase)
        case .cancelled: break
        default: print(error.detailedDescription)
        }
    }
}

func guideToErrorsInClosures(_ api: JSONClient) async throws {
    let reload = {
        do throws(NetworkError) {
            show(try await api.get("users/42"))
        } catch {
            if !error.isCancellation { print(error.message) }
        }
    }
    let load = {
        do {
            show(try await api.get("users/42"))
        } catch NetworkError.Kind.timedOut {
            offerRetry()
        }
    }
    await reload()
    try await load()
}

func guideToFormats() async throws {
    struct Packed: WireFormat {
        let contentType: MediaType = "application/vnd.example"
        var accepts: [MediaType] { [contentType] }

        func encode(_ value: some Encodable) throws -> Data { try PropertyList(.binary).encode(value) }
        func decode<T: Decodable>(_ type: T.Type, from body: Data, of head: ResponseHead) throws -> T {
            try PropertyList().decode(type, from: body, of: head)
        }
    }

    let packed = Client("https://api.example.com", requests: Packed(), responses: Packed())
    let size = try await packed.get("logo", using: Serializers.Closure { try await $0.collect().count })
    print(size)
}

// MARK: Downloads.md

func guideToDownloads() async throws {
    let iso = try await Session.shared.download("https://example.com/big.iso", to: .directory("/srv/iso"))
    print(iso.path, iso.bytes, iso.resumedFrom)
}

func guideToBars(_ urls: [String]) async {
    let display = TerminalProgress()
    let downloads = urls.map { Session.shared.downloadTransfer(Request($0), to: .directory("/srv/iso")) }
    for download in downloads { display.watch(download) }
    for download in downloads { _ = try? await download.value }
    await display.finish()
}

// MARK: JSON.md

private func guideToJSON(_ bytes: [UInt8]) throws {
    let user = try JSON().decode(User.self, from: bytes)  // Data, [UInt8], text.utf8, any collection of bytes
    let data = try JSON().encode(user)
    let value = try JSONValue(parsing: bytes)  // JSON without a type
    print(data, value)
}

// MARK: Testing.md

func guideToTesting() async throws {
    let answering = Session(interceptors: [
        .intercept { request, _, _ in
            let head = ResponseHead(status: .ok, fields: [.contentType: "application/json"])
            return IncomingResponse(head, body: Data(#"{"id": 1}"#.utf8), to: request)
        }
    ])
    let user: User = try await Client("https://api.example.com", session: answering).get("users/1")
    print(user)
}

// MARK: Trust.md

func guideToRoots(pem: String) throws -> Session {
    let session = try Session(trust: CustomRoots(pem: pem))
    return session
}

func guideToPins() throws -> PinnedPublicKeys {
    let pins = try PinnedPublicKeys(
        ["sha256/Xz1qoP27S5NQLw1Z7IRjPDHtJ0qHdYYdQp0K0FMRzSs="],
        backup: "sha256/YLh1dUR9y6Kja30RrAn7JKnbQG/uEtLMkBgFF2Fuihg=")
    return pins
}

func guideToHosts(pins: PinnedPublicKeys) throws -> Session {
    let inside = try CustomRoots(file: "our-ca.pem").checkingRevocation(
        lists: Certificate.RevocationList.all(file: "our-ca.crl"))
    let identity = try ClientIdentity(certificateFile: "client.crt", keyFile: "client.key")
    let session = Session(
        trust: try HostTrust(["api.example.com": pins, "**.internal.example": inside], otherwise: SystemTrust()),
        identities: try ClientIdentities(["**.internal.example": identity])
    ) { configuration in
        configuration.tls.isRequired = true
    }
    return session
}

func guideToDevelopmentServers() throws -> Session {
    let session = try Session(trust: CustomRoots(file: "dev.crt").applying(.authoritiesAsServers))
    return session
}
