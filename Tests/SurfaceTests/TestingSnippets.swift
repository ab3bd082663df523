// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting

// The snippets of the doc comments in Sources/CurlewTesting, word for word; parameters provide the values that a
// snippet assumes.

// Bindings/SHA256Stream.swift
private func snippetOfDigest() {
    var digest = SHA256Stream()
    digest.update(Array("ab".utf8))
    digest.update(Array("c".utf8))
    print(digest.hex)  // ba7816bf…
}

// BodyReading.swift
private func snippetOfBodyReading(_ server: MockServer, _ gate: Gate) {
    server.on("POST", "/early", .status(413), reading: .none)
    server.on("POST", "/slow", .status(200), reading: .whole.stalling(at: gate, after: 1000))
}

// Gate.swift
private func snippetOfGate(_ server: MockServer) async {
    let gate = Gate()
    server.on("GET", "/slow", .text("done").fault(.stall(gate), at: .body(2)))
    // start the request …
    await gate.waitUntilReached()  // two bytes of the body are sent
    gate.open()
}

// MockResponse.swift
private func snippetOfMockResponses(_ full: [UInt8]) -> [MockResponse] {
    let responses: [MockResponse] = [
        .json(#"{"id":1}"#),
        .text("gone", status: 410).field("Cache-Control", "no-store"),
        .pattern(PatternBody(seed: 1, length: 1 << 30)).chunked(size: 4096).fault(.reset, at: .body(100_000)),
        .bytes(full).fault(.close, at: .body(40)),  // fewer bytes than the Content-Length
        .text("ok").fault(.close, at: .end),  // the connection closes while the client's pool keeps it
    ]
    return responses
}

// MockServer.swift
private func snippetOfMockServer() async throws -> RecordedRequest? {
    let server = try MockServer()
    server.on("GET", "/users/1", .json(#"{"id":1}"#))
    server.on("POST", "/echo") { request in .bytes(request.body) }
    let gate = Gate()
    server.on("GET", "/slow", .text("done").fault(.stall(gate), at: .start))
    // … requests to server.url("/users/1") …
    let request = await server.nextRequest()
    return request
}

// PatternBody.swift
private func snippetOfPatternBody(_ server: MockServer) {
    let body = PatternBody(seed: 7, length: 1 << 30)
    server.on("GET", "/big", .pattern(body))
    // … compare the digest of the received bytes with body.sha256
}

// TLS/CertificateOptions.swift
private func snippetOfCertificateOptions(_ authority: TestAuthority, _ old: TestIdentity) throws {
    let weak = try authority.issue(CertificateOptions(key: .rsa(1024)))
    let clientsOnly = try authority.issue(CertificateOptions(extendedKeyUsages: [.clientAuth]))
    let rotated = try authority.issue(CertificateOptions(privateKeyPEM: old.privateKeyPEM))
    let narrow = try authority.intermediate(CertificateOptions(permittedNames: [.dns("example.com")]))
    _ = (weak, clientsOnly, rotated, narrow)
}

// TLS/TestAuthority.swift
private func snippetOfTestAuthority() throws {
    let authority = try TestAuthority()
    let server = try MockServer(tls: authority.issue())
    // the client under test trusts authority.certificatePEM
    let expired = try authority.issue(validity: .expired)
    let wrong = try authority.issue(hosts: ["wrong.test"])
    let nameless = try authority.issue(hosts: [], commonName: "localhost")
    let weak = try authority.issue(CertificateOptions(key: .rsa(1024), digest: .sha1))
    _ = (server, expired, wrong, nameless, weak)
}

// TLS/TestIdentity.swift
private func snippetOfTestIdentity(_ identity: TestIdentity, _ root: TestAuthority) {
    let incomplete = identity.serving(intermediates: [])
    let shuffled = identity.serving(intermediates: identity.intermediates.reversed())
    let withRoot = identity.serving(intermediates: identity.intermediates + [root.certificate])
    _ = (incomplete, shuffled, withRoot)
}
