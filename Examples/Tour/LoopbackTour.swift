// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials

/// The tour without an argument: six uses of a session, each checked against the server's records.
struct LoopbackTour {
    private let server: MockServer
    private let secureServer: MockServer
    private let session: Session

    init() throws {
        let authority = try TestAuthority()
        server = try MockServer()
        secureServer = try MockServer(tls: authority.issue())
        session = try Session(trust: CustomRoots(pem: authority.certificatePEM))
    }

    func run() async throws {
        try await getJSON()
        try await download()
        try await upload()
        try await cancel()
        try await showError()
        try await getSecurely()
        try await session.shutdown()
        say("\nEvery byte, digest, status and cancellation was as expected.")
    }

    private struct Bird: Decodable, Equatable {
        var name: String
        var wingspan: Int
    }

    private func getJSON() async throws {
        say("1. GET JSON and decode it")
        server.on("GET", "/bird", .json(#"{"name": "Numenius arquata", "wingspan": 95}"#))

        let response = try await session.transfer(Request(server.url("/bird"))).response()
        let bird = try JSON().decode(Bird.self, from: response.value)

        say("   \(response.status): \(bird.name), \(bird.wingspan) cm", "   \(response.metrics)")
        try expect("the status", response.status, is: .ok)
        try expect("the bird", bird, is: Bird(name: "Numenius arquata", wingspan: 95))
    }

    private func download() async throws {
        let body = PatternBody(seed: 2, length: 512 << 20)
        say("\n2. Stream \(ByteCount(Int64(body.length))), never more than a megabyte of it in memory")
        server.on("GET", "/large", .pattern(body))

        let transfer = session.transfer(Request(server.url("/large")))
        let received = try await watch(transfer)

        try sayMetrics(of: transfer)
        try expect("the status", received.status, is: .ok)
        try expect("the length", received.length, is: body.length)
        try expect("the digest", received.sha256, is: body.sha256)
    }

    private func upload() async throws {
        let body = PatternBody(seed: 3, length: 256 << 20)
        say("\n3. Upload \(ByteCount(Int64(body.length))) that are generated during the upload")
        server.on("POST", "/upload") { request in .text(request.bodySHA256, status: 201) }

        let source = PatternChunks(body: body)
        let request = Request(.post, server.url("/upload"), body: .stream(source, length: Int64(body.length)))
        let transfer = session.transfer(request)
        let received = try await watch(transfer)

        try sayMetrics(of: transfer)
        try expect("the status", received.status, is: .created)
        try expect("the digest the server computed", received.text, is: body.sha256)
    }

    private func cancel() async throws {
        say("\n4. Cancel a transfer midway")
        let server = try MockServer()
        server.on("GET", "/endless", .pattern(PatternBody(seed: 4, length: 1 << 40)))

        let transfer = session.transfer(Request(server.url("/endless")))
        var received = 0
        let error = await failure {
            for try await chunk in transfer.bytes {
                received += chunk.count
                if received >= 8 << 20 { transfer.cancel() }
            }
        }
        let isClosed = await within(.seconds(10)) { await server.waitUntil(openConnections: 0) }

        say("   after \(ByteCount(Int64(received))): \(error?.description ?? "no error")")
        say("   the server sees \(server.openConnections) open connections")
        try sayMetrics(of: transfer)
        try expect("the kind of error", error?.kind, is: .cancelled)
        try expect("that the server saw its connection close", isClosed, is: true)
    }

    private func showError() async throws {
        say("\n5. An error: a server that the system has no reason to trust")
        let stranger = Session(trust: SystemTrust())

        let transfer = stranger.transfer(Request(secureServer.url("/")))
        let error = await failure { _ = try await transfer.value }

        say("   " + (error?.detailedDescription ?? "no error").replacing("\n", with: "\n   "))
        try sayMetrics(of: transfer)
        try expect("the kind of error", error?.kind, is: .untrusted)
        try expect("the number of requests the server saw", secureServer.requests.count, is: 0)
    }

    private func getSecurely() async throws {
        say("\n6. GET over TLS, with a root certificate of our own")
        secureServer.on("GET", "/", .text("Only this client can read this."))

        let response = try await session.transfer(Request(secureServer.url("/"))).response()

        let metrics = response.metrics
        say(
            "   \(response.status), \(metrics.tlsVersion ?? "no TLS"), \(metrics.tlsCipher ?? "no cipher")",
            "   \(metrics)")
        try expect("the status", response.status, is: .ok)
        try expect("the body", String(decoding: response.value, as: UTF8.self), is: "Only this client can read this.")
        try expect("the TLS version", metrics.tlsVersion, is: "TLSv1.3")
    }

    private func sayMetrics(of transfer: Transfer<Data>) throws {
        guard let metrics = transfer.metrics else { throw UnexpectedResult("A finished transfer has no metrics.") }
        say("   \(metrics)")
    }
}
