// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTerminal
import FoundationEssentials

// Every snippet of README.md, word for word, so that it compiles as users compile it. SnippetTests compares both.

private struct User: Codable, Sendable { var id: Int }
private struct Draft: Codable, Sendable { var name: String }
private struct Photo: Decodable, Sendable { var size: Int }

private func show(_ user: User) { print(user.id) }
private func offerRetry() {}

/// README.md, the top.
private func readmeTop(_ id: Int, _ draft: Draft) async throws {
    let api = Client("https://api.example.com/v1")
    let user: User = try await api.get("users/\(id)")
    try await api.post("users", .encoding(draft))

    let session = Session.shared
    let (data, head) = try await session.data(for: "https://example.com/users/42")
    print(head.status, data.count)

    let transfer = session.transfer("https://example.com/archive.tar")
    for try await element in transfer.stream {
        switch element {
        case .head(let head): print(head.status)
        case .progress(let progress): print(progress.fraction ?? 0)
        case .bytes(let chunk): print(chunk.count)
        default: break
        }
    }
    print(user)
}

/// README.md, requests.
func readmeRequests() async throws {
    var request = Request(.post, "https://example.com/notes", body: .text("remember the milk"))
    request.fields[.contentType] = "text/plain; charset=utf-8"
    request.options.timeouts = Timeouts(connect: .seconds(5), idle: .seconds(20), total: .seconds(60))
    let (answer, head) = try await Session.shared.data(for: request)
    print(answer.count, head.status)
}

/// README.md, errors.
func readmeErrors() async {
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

/// README.md, errors in closures.
func readmeClosures(_ api: JSONClient) async throws {
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

/// README.md, a client.
private func readmeClient(
    _ token: String, _ id: Int, _ words: String, _ name: String, _ secret: String
) async throws {
    let api = Client("https://api.example.com/v1").with {
        $0.fields.set(.authorization, Credential.bearer(token))
        $0.options.timeouts.total = .seconds(30)
    }
    let maybe = try await api.get("users/\(id)", as: User?.self)  // nil for an empty body
    let found: [User] = try await api.get("users", query: ["q": words, "page": 2])
    try await api.post("login", .form(["user": name, "password": secret]))
    let photo = try await api.put("photos/7", .file("alps.jpg", type: "image/jpeg"), as: Photo.self)
    let about = try await api.get("about", options: .timeout(.seconds(2)), using: .text)
    let status = try await api.request(.get, "status", parameters: [:])  // whatever JSON it is

    let upload = api.transfer(.post, "photos", .file("alps.jpg", type: "image/jpeg"), as: Photo.self)
    for await progress in upload.progress { print(progress.fraction ?? 0) }
    for try await chunk in api.stream("export") { print(chunk.count) }
    print(maybe as Any, found, photo, about, status as Any)
}

/// README.md, formats and serializers.
func readmeFormats() async throws {
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

/// README.md, a session with scripted responses.
func readmeAnswering() async throws {
    let answering = Session(interceptors: [
        .intercept { request, _, _ in
            let head = ResponseHead(status: .ok, fields: [.contentType: "application/json"])
            return IncomingResponse(head, body: Data(#"{"id": 1}"#.utf8), to: request)
        }
    ])
    let user: User = try await Client("https://api.example.com", session: answering).get("users/1")
    print(user)
}

/// README.md, interceptors.
func readmeInterceptors() -> Session {
    let token = "…"
    let session = Session(interceptors: [
        LoggingInterceptor(),
        .adapt { $0.fields[.authorization] = "Bearer \(token)" },
    ])
    return session
}

/// README.md, a private certificate authority.
func readmeTrust(pem: String) throws -> Session {
    let session = try Session(trust: CustomRoots(pem: pem))
    return session
}

/// README.md, pins.
func readmePins() throws -> PinnedPublicKeys {
    let pins = try PinnedPublicKeys(
        ["sha256/Xz1qoP27S5NQLw1Z7IRjPDHtJ0qHdYYdQp0K0FMRzSs="],
        backup: "sha256/YLh1dUR9y6Kja30RrAn7JKnbQG/uEtLMkBgFF2Fuihg=")
    return pins
}

/// README.md, the trust of each host.
func readmeStore(_ session: Session) async throws {
    let store = try await TransferStore(at: "/var/lib/mirror/transfers")
    await store.reattach(session)
    try await store.download("https://example.com/big.iso", on: session, to: .directory("/srv/iso"))
    for await report in store.reports {
        if report == .drained { break }
        print(report)
    }
}

func readmeHosts(pins: PinnedPublicKeys) throws -> Session {
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

func readmeDevelopment() throws -> Session {
    let session = try Session(trust: CustomRoots(file: "dev.crt").applying(.authoritiesAsServers))
    return session
}

/// README.md, "What it does": a file.
private func readmeDownload() async throws {
    let iso = try await Session.shared.download("https://example.com/big.iso", to: .directory("/srv/iso"))
    print(iso.path, iso.bytes, iso.resumedFrom)
}

/// README.md, "What it does": files with bars.
private func readmeBars(_ urls: [String]) async {
    let display = TerminalProgress()
    let downloads = urls.map { Session.shared.downloadTransfer(Request($0), to: .directory("/srv/iso")) }
    for download in downloads { display.watch(download) }
    for download in downloads { _ = try? await download.value }
    await display.finish()
}
